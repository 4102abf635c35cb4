import Peer
import RTP
import Secure
import Tape
import Wire

/// Recovers encoded frames from the packets that carried them, for takes without media.
///
/// The packets are decrypted with the take's keys. The pacer sends a frame's packets soon after the
/// frame is encoded, so only a few seconds are read ahead.
final class SentFrames {
  /// A frame to recover, as its row describes it.
  struct Wanted {
    var peer: UInt32
    var ssrc: UInt32
    var rtpTime: UInt32
    var size: Int
    var at: Instant
  }

  /// A stream that a peer sends.
  private struct Source: Hashable {
    var peer: UInt32
    var ssrc: UInt32
  }

  /// The joined payloads of consecutive packets with the same RTP timestamp.
  private struct Group {
    var timestamp: UInt32
    var bytes: [UInt8] = []
  }

  private struct Stream {
    let codec: Codec
    var groups: [Group] = []
    /// The offset from RTP timestamps in rows to those in packets; nil until it is known.
    var offset: UInt32?
  }

  /// How long after a frame to search for its packets.
  private static let patience = Interval.seconds(10)
  /// The maximum number of zero bytes added to a frame; real frames are smaller.
  private static let frameMaximum = 2 << 20
  /// The maximum number of a stream's first frames that are matched with packets to find the
  /// offset.
  private static let firstFrames = 64

  private let connection: SQLiteConnection
  private let packets: SQLiteStatement
  private let wire: WireReader
  private var openers: [UInt32: [PacketOpener]] = [:]
  private var streams: [Source: Stream] = [:]
  private var firstFrames: [Source: [(rtpTime: UInt32, size: Int)]] = [:]
  private var readUntil = Instant.zero
  private var isAtEnd = false

  /// Opens a take; throws if it lacks the keys of its packets.
  init(path: String) throws(TapeError) {
    connection = try TakeFile.open(path, cacheKilobytes: TapeReader.cacheKilobytes)
    do throws(SQLiteError) {
      packets = try connection.prepare(
        """
        SELECT store.at_ns, store.size, store.position, store.ssrc & 0xffffffff, path.peer,
          store.marker_type IS NOT NULL AND path.direction = 'out'
        FROM packet_store AS store CROSS JOIN path USING (path) ORDER BY store.row
        """)
      wire = try WireReader(connection)
      try readKeys()
      try readStreams()
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
    guard streams.keys.allSatisfy({ openers[$0.peer]?.isEmpty == false }) else {
      throw TapeError(
        path: path, place: "",
        reason: "it was recorded without its media and without the keys of its packets, so the "
          + "codecs cannot be skipped; replay it with its codecs")
    }
  }

  private func readKeys() throws(SQLiteError) {
    let events = try connection.prepare(
      "SELECT peer, type, detail FROM event WHERE type IN ('secured', 'keylog') ORDER BY row")
    var secured: [UInt32: SecuredText] = [:]
    while try events.step() {
      let (peer, type, detail) = events.values(UInt32.self, String.self, String.self)
      if type == "secured" {
        secured[peer] = CanonicalJSON.value(SecuredText.self, from: detail)
      } else if let secured = secured[peer],
        let log = CanonicalJSON.value(KeyLogText.self, from: detail)?.log,
        let opener = PacketOpener(secured, log.secrets)
      {
        openers[peer, default: []].append(opener)
      }
    }
  }

  /// Finds the streams that have encoded frames, and the first frames of each.
  private func readStreams() throws(SQLiteError) {
    let formats = try connection.prepare(
      "SELECT format, peer, ssrc, codec FROM format WHERE outcome = 'encoded' ORDER BY format")
    var numbers: [Source: [String]] = [:]
    while try formats.step() {
      let (number, peer, ssrc, codec) = formats.values(
        Int64.self, UInt32.self, UInt32.self, String.self)
      guard let codec = Codec.named(codec) else { continue }
      let source = Source(peer: peer, ssrc: ssrc)
      streams[source] = Stream(codec: codec)
      numbers[source, default: []].append(String(number))
    }
    for (source, numbers) in numbers {
      let frames = try connection.prepare(
        """
        SELECT rtp_time & 0xffffffff, size FROM frame_store
        WHERE format IN (\(numbers.joined(separator: ", "))) ORDER BY row
        LIMIT \(SentFrames.firstFrames)
        """)
      while try frames.step() {
        firstFrames[source, default: []].append(frames.values(UInt32.self, Int.self))
      }
    }
  }

  // MARK: Frames

  /// Returns the bytes of a frame; if it was not sent completely, the rest is zeros and `isWhole`
  /// is false.
  func bytes(of wanted: Wanted) -> (bytes: [UInt8], isWhole: Bool) {
    let source = Source(peer: wanted.peer, ssrc: wanted.ssrc)
    let limit = wanted.at + SentFrames.patience
    while true {
      if let found = consume(wanted, source, isLast: isAtEnd || readUntil > limit) {
        let rest = wanted.size - found.count
        if rest == 0 { return (found, true) }
        // The size comes from the file and may be impossible; then the frame is not padded.
        let zeros = rest <= SentFrames.frameMaximum ? max(0, rest) : 0
        return (
          Array(found.prefix(max(0, wanted.size))) + [UInt8](repeating: 0, count: zeros), false
        )
      }
      read()
    }
  }

  /// Returns the part of a frame that was sent; nil if more of it may follow.
  private func consume(_ wanted: Wanted, _ source: Source, isLast: Bool) -> [UInt8]? {
    guard var stream = streams[source] else { return [] }
    if stream.offset == nil, isLast || stream.groups.count > SentFrames.firstFrames {
      stream.offset = offset(stream.groups, firstFrames[source] ?? [])
      streams[source] = stream
    }
    guard let offset = stream.offset else { return isLast ? [] : nil }
    let timestamp = wanted.rtpTime &+ offset
    guard let index = stream.groups.firstIndex(where: { $0.timestamp == timestamp }) else {
      // Frames are sent in order: if a later frame's packet has been seen, this frame was never
      // sent.
      let isPast = stream.groups.contains { Int32(bitPattern: $0.timestamp &- timestamp) > 0 }
      return isLast || isPast ? [] : nil
    }
    guard
      isLast || index + 1 < stream.groups.count
        || stream.groups[index].bytes.count >= wanted.size
    else { return nil }
    let bytes = stream.groups[index].bytes
    streams[source]?.groups.removeSubrange(...index)
    return bytes
  }

  /// Finds the timestamp offset at which as many first frames as possible match packets in size.
  ///
  /// If several offsets match equally well, the first packet is assumed to belong to the earliest
  /// frame.
  private func offset(_ groups: [Group], _ frames: [(rtpTime: UInt32, size: Int)]) -> UInt32? {
    guard let first = groups.first else { return nil }
    var sizes: [UInt32: Int] = [:]
    for group in groups { sizes[group.timestamp] = group.bytes.count }
    var best: (offset: UInt32, fits: Int)?
    for frame in frames {
      let offset = first.timestamp &- frame.rtpTime
      let fits = frames.count { sizes[$0.rtpTime &+ offset] == $0.size }
      if fits > best?.fits ?? 0 { best = (offset, fits) }
    }
    return best?.offset
  }

  // MARK: Packets

  /// Reads and decrypts the next packet; sets `isAtEnd` if there is none, or after an error.
  private func read() {
    guard (try? packets.step()) == true else {
      isAtEnd = true
      return
    }
    let (at, size, position, ssrc, peer, isSent) = packets.values(
      Instant.self, Int64.self, Int64.self, UInt32?.self, UInt32.self, Bool.self)
    readUntil = max(readUntil, at)
    guard isSent, let ssrc, streams[Source(peer: peer, ssrc: ssrc)] != nil else { return }
    guard let bytes = try? wire.bytes(at: position, count: size), bytes.count == Int(size) else {
      isAtEnd = true
      return
    }
    var packet = RelayedBytes.inside(bytes)
    for index in openers[peer]?.indices ?? 0..<0 where openers[peer]?[index].open(&packet) == true {
      add(packet, to: Source(peer: peer, ssrc: ssrc))
      return
    }
  }

  private func add(_ packet: [UInt8], to source: Source) {
    guard let codec = streams[source]?.codec,
      let header = try? RTPHeader(parsing: packet.span.bytes),
      !header.payload.isEmpty
    else { return }
    var part = Array(packet[header.payload])
    if codec.kind == .video {
      guard let read = codec.payload.read(part.span.bytes) else { return }
      switch read.content {
      case .slice(let range): part = Array(part[range])
      case .bytes(let bytes): part = bytes
      }
    }
    let timestamp = header.timestamp
    if streams[source]?.groups.last?.timestamp != timestamp {
      streams[source]?.groups.append(Group(timestamp: timestamp))
    }
    if let last = streams[source]?.groups.indices.last {
      streams[source]?.groups[last].bytes += part
    }
  }
}

/// Decrypts packets that a peer sent, with the keys of a DTLS association.
final class PacketOpener {
  private var context: SRTPContext

  /// Derives the SRTP keys of an association; fails if it has none.
  init?(_ secured: SecuredText, _ secrets: DTLSSecrets) {
    guard let profile = SRTPProtection(rawValue: secured.profile)?.profile,
      let role = DTLSRole(rawValue: secured.role),
      let keys = secrets.srtpKeys(profile, cipherSuite: secured.cipherSuite, role: role),
      // A sent packet is decrypted as if it had been received, so the keys are swapped.
      let context = try? SRTPContext(profile: profile, sendKey: keys.receive, receiveKey: keys.send)
    else { return nil }
    self.context = context
  }

  /// Decrypts a packet in place; returns false if the key is wrong or the packet has already been
  /// decrypted.
  func open(_ packet: inout [UInt8]) -> Bool {
    var opened = packet
    guard (try? context.unprotectRTP(&opened)) != nil else { return false }
    packet = opened
    return true
  }
}
