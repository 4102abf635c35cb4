import Peer
import RTP
import Secure
import Tape
import Wire

/// Recovers the encoded frames of a take without media from the packets that carried them.
///
/// The packets are decrypted with the take's keys, and read only as far as needed: they follow
/// their frame within the pacer's delay.
final class SentFrames {
  /// A frame as the rows describe it.
  struct Wanted {
    var peer: UInt32
    var ssrc: UInt32
    var rtpTime: UInt32
    var size: Int
    var at: Instant
  }

  /// An outgoing stream of a peer.
  private struct Source: Hashable {
    var peer: UInt32
    var ssrc: UInt32
  }

  /// The packets with one RTP timestamp.
  private struct Group {
    var timestamp: UInt32
    var bytes: [UInt8] = []
  }

  private struct Stream {
    let codec: Codec
    var groups: [Group] = []
    /// The offset between the rows' RTP timestamps and the packets'; nil until known.
    var offset: UInt32?
  }

  /// The time after a frame in which its packets are searched for.
  private static let patience = Interval.seconds(10)
  /// More bytes than any encoded frame has.
  private static let frameMaximum = 2 << 20
  /// The number of first frames matched with the first packets to find the offset.
  private static let firstFrames = 64

  private let connection: SQLiteConnection
  private let packets: SQLiteStatement
  private let wire: WireCursor
  private var openers: [UInt32: [PacketOpener]] = [:]
  private var streams: [Source: Stream] = [:]
  private var firstFrames: [Source: [(rtpTime: UInt32, size: Int)]] = [:]
  private var readUntil = Instant.zero
  private var isAtEnd = false

  /// Opens a take; throws if it lacks its packets' keys.
  init(path: String) throws(TapeError) {
    connection = try TakeFile.open(path, cacheKilobytes: TapeReader.cacheKilobytes)
    do throws(SQLiteError) {
      packets = try connection.prepare(
        """
        SELECT store.at_ns, store.size, store.ssrc & 0xffffffff, path.peer,
          store.marker_type IS NOT NULL AND path.direction = 'out'
        FROM packet_store AS store CROSS JOIN path USING (path) ORDER BY store.row
        """)
      wire = try WireCursor(connection, table: "wire")
      try readKeys()
      try readStreams()
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
    guard streams.keys.allSatisfy({ openers[$0.peer]?.isEmpty == false }) else {
      throw TapeError(
        path: path, place: "",
        reason: "it was recorded without its media and without the keys of its packets, so the "
          + "codecs cannot be skipped; replay it whole")
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

  /// Finds the streams with encoded frames, and their first frames.
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

  /// Returns a frame's bytes; if it was not sent completely, the sent part padded with zeros, and
  /// false.
  func bytes(of wanted: Wanted) -> (bytes: [UInt8], isWhole: Bool) {
    let source = Source(peer: wanted.peer, ssrc: wanted.ssrc)
    let limit = wanted.at + SentFrames.patience
    while true {
      if let found = consume(wanted, source, isLast: isAtEnd || readUntil > limit) {
        let rest = wanted.size - found.count
        if rest == 0 { return (found, true) }
        // The size comes from the file, so an impossible one is not padded.
        let zeros = rest <= SentFrames.frameMaximum ? max(0, rest) : 0
        return (
          Array(found.prefix(max(0, wanted.size))) + [UInt8](repeating: 0, count: zeros), false
        )
      }
      read()
    }
  }

  /// Returns a frame's sent bytes; nil if more of it may follow.
  private func consume(_ wanted: Wanted, _ source: Source, isLast: Bool) -> [UInt8]? {
    guard var stream = streams[source] else { return [] }
    if stream.offset == nil, isLast || stream.groups.count > SentFrames.firstFrames {
      stream.offset = offset(stream.groups, firstFrames[source] ?? [])
      streams[source] = stream
    }
    guard let offset = stream.offset else { return isLast ? [] : nil }
    let timestamp = wanted.rtpTime &+ offset
    guard let index = stream.groups.firstIndex(where: { $0.timestamp == timestamp }) else {
      // Frames are sent in order, so packets of a later one mean that this one was dropped.
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

  /// Returns the timestamp offset with which most of the first frames match the first packets; in a
  /// tie, the offset with which the stream starts at its first frame.
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

  /// Reads the next packet.
  private func read() {
    guard (try? packets.step()) == true else {
      isAtEnd = true
      return
    }
    let (at, size, ssrc, peer, isSent) = packets.values(
      Instant.self, Int64.self, UInt32?.self, UInt32.self, Bool.self)
    readUntil = max(readUntil, at)
    guard let bytes = try? wire.read(size) else {
      isAtEnd = true
      return
    }
    guard isSent, let ssrc, streams[Source(peer: peer, ssrc: ssrc)] != nil else { return }
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

/// Decrypts the packets that a peer sent, with the keys of one of its DTLS associations.
final class PacketOpener {
  private var context: SRTPContext

  /// Creates an opener; fails if the association has no SRTP keys.
  init?(_ secured: SecuredText, _ secrets: DTLSSecrets) {
    guard let profile = SRTPProtection(rawValue: secured.profile)?.profile,
      let role = DTLSRole(rawValue: secured.role),
      let keys = secrets.srtpKeys(profile, cipherSuite: secured.cipherSuite, role: role),
      // Sent packets are decrypted like received ones, so the keys are swapped.
      let context = try? SRTPContext(profile: profile, sendKey: keys.receive, receiveKey: keys.send)
    else { return nil }
    self.context = context
  }

  /// Decrypts a packet in place; returns false if the key does not fit or the packet was seen
  /// before.
  func open(_ packet: inout [UInt8]) -> Bool {
    var opened = packet
    guard (try? context.unprotectRTP(&opened)) != nil else { return false }
    packet = opened
    return true
  }
}
