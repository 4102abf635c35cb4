import RTP
import Secure
import Wire

struct WaitingPacket {
  var bytes: [UInt8]
  var path: Int
  var from: Int
  var isRTCP: Bool
  var at: Instant
  var ecn: ECNMark?
}

/// Packets that wait for keys, oldest first.
struct WaitingPackets {
  private var items: [WaitingPacket?] = []
  private var head = 0
  private(set) var byteCount = 0

  var count: Int { items.count - head }

  mutating func append(_ packet: WaitingPacket) {
    byteCount += packet.bytes.count
    items.append(packet)
  }

  mutating func popFirst() -> WaitingPacket? {
    guard head < items.count, let packet = items[head].take() else { return nil }
    head += 1
    byteCount -= packet.bytes.count
    if head == items.count || head > 1024 && head > items.count / 2 {
      items.removeFirst(head)
      head = 0
    }
    return packet
  }
}

extension WaitingPackets {
  /// Returns the first packet of each sender and SSRC, up to a limit.
  func firstOfEachSource(limit: Int) -> [WaitingPacket] {
    var found: [WaitingPacket] = []
    var seen: Set<UInt64> = []
    for case let packet? in items[head...] {
      let offset = packet.isRTCP ? 4 : 8
      guard packet.bytes.count >= offset + 4 else { continue }
      let source = UInt64(packet.bytes.span.bytes.uint32(at: offset))
      guard seen.insert(source << 1 | UInt64(packet.from)).inserted else { continue }
      found.append(packet)
      if found.count == limit { break }
    }
    return found
  }
}

/// A transport's RTP protection, and the keys for it.
struct MediaOpener {
  enum Protection: Hashable {
    case unknown
    /// Unencrypted RTP.
    case clear
    case protected
  }

  enum Opening {
    case opened
    case repeated
    /// No key fits.
    case refused
    /// There is no key for the sender.
    case noKey
  }

  /// The maximum number of keys per end: media may continue with the previous association's keys.
  private static let receiversMaximum = 4
  /// The number of examined packets after which RTP packets are no longer examined individually.
  private static let looksMaximum = 500
  /// The maximum number of attempts with candidate keys per end.
  private static let attemptsMaximum = 64

  private(set) var protection = Protection.unknown
  /// The number of packets examined.
  private(set) var looks = 0
  var waiting = WaitingPackets()
  private var receivers: [[SRTPReceiver]] = [[], []]
  private var attempts = [0, 0]
  private var clearMedia = ClearMedia()

  /// Returns whether there are keys for an end's packets.
  @inline(__always)
  func hasKeys(_ end: Int) -> Bool { !receivers[end].isEmpty }

  /// Sets the protection, as determined by signaling, DTLS or RTCP.
  mutating func settle(_ protection: Protection) { self.protection = protection }

  // MARK: Waiting packets

  mutating func removeWaiting() -> WaitingPackets {
    defer { waiting = WaitingPackets() }
    return waiting
  }

  // MARK: Keys

  /// Adds a key for an end's packets; it is tried before older keys.
  mutating func add(_ receiver: SRTPReceiver, for end: Int) {
    protection = .protected
    receivers[end].insert(receiver, at: 0)
    if receivers[end].count > Self.receiversMaximum { receivers[end].removeLast() }
  }

  mutating func open(_ packet: inout [UInt8], from end: Int, isRTCP: Bool) -> Opening {
    if receivers[end].count == 1 { return open(&packet, receivers[end][0], isRTCP) }
    guard !receivers[end].isEmpty else { return .noKey }
    for index in receivers[end].indices {
      var copy = packet
      let opening = open(&copy, receivers[end][index], isRTCP)
      guard case .refused = opening else {
        packet = copy
        // Moves the key to the front, since it most likely fits the next packet too.
        if index > 0 { receivers[end].swapAt(0, index) }
        return opening
      }
    }
    return .refused
  }

  private func open(_ packet: inout [UInt8], _ receiver: SRTPReceiver, _ isRTCP: Bool) -> Opening {
    do throws(SRTPReceiver.Refusal) {
      try receiver.open(&packet, isRTCP: isRTCP)
      return .opened
    } catch {
      return error == .replayed ? .repeated : .refused
    }
  }

  /// Returns whether candidate keys may still be tried for an end.
  func mayProbe(_ end: Int) -> Bool { attempts[end] < Self.attemptsMaximum }

  /// Tries candidate keys on an end's packet; returns a receiver for the key that decrypts it, with
  /// its suite, or nil if none does.
  mutating func probe(
    _ packet: WaitingPacket, _ keys: [SRTPKey], findsIdentifiers: Bool
  ) -> (SRTPReceiver, SRTPSuite)? {
    func receiver(_ key: SRTPKey, _ suite: SRTPSuite) -> SRTPReceiver? {
      try? SRTPReceiver(
        suite, key: key.bytes, identifier: key.identifier, findsIdentifiers: findsIdentifiers)
    }
    for key in keys {
      for suite in key.suites {
        guard attempts[packet.from] < Self.attemptsMaximum else { return nil }
        attempts[packet.from] += 1
        guard let trial = receiver(key, suite) else { continue }
        var copy = packet.bytes
        guard case .opened = open(&copy, trial, packet.isRTCP), let fresh = receiver(key, suite)
        else { continue }
        return (fresh, suite)
      }
    }
    return nil
  }

  /// Copies the protection and the keys of the transport that this transport continues.
  mutating func inherit(_ other: MediaOpener, isFlipped: Bool) {
    protection = other.protection
    receivers = isFlipped ? other.receivers.reversed() : other.receivers
  }

  /// Resets the counts of attempts, so that candidate keys are tried again.
  mutating func renewAttempts() { attempts = [0, 0] }

  /// Whether packets may soon turn out to be unencrypted.
  var isUndecided: Bool { protection == .unknown && looks < Self.looksMaximum }

  /// Whether packets may still turn out to be unencrypted, because no key has decrypted any and
  /// signaling about encryption may be wrong.
  var mayBeClear: Bool { protection != .clear && receivers[0].isEmpty && receivers[1].isEmpty }

  /// Marks the media as unencrypted because its packets prove it, even if signaling says otherwise.
  mutating func showClear() { protection = .clear }

  /// Examines a packet; returns the protection that it reveals, or `unknown` if it reveals none.
  mutating func look(at packet: RawSpan, isRTCP: Bool, from end: Int) -> Protection {
    if isRTCP {
      looks += 1
      return MediaOpener.protection(shownBy: packet)
    }
    guard let header = try? RTPHeader(parsing: packet, isProtected: true) else { return .unknown }
    if clearMedia.isShown(by: header, packet, from: end) { return .clear }
    guard isUndecided else { return .unknown }
    looks += 1
    return MediaOpener.showsClear(header, packet) ? .clear : .unknown
  }

  /// Returns whether a single packet is evidently unencrypted.
  private static func showsClear(_ header: RTPHeader, _ packet: RawSpan) -> Bool {
    // PCMU, PCMA and G.722 payloads are multiples of 80 bytes per 10 ms (RFC 3551 section 4.5).
    let isSamples = [0, 8, 9].contains(header.payloadType)
    let isWhole = isSamples && header.payload.count > 0 && header.payload.count % 80 == 0
    guard !isWhole, header.payload.count > 10 else { return isWhole }
    // A key frame's start code also proves that the packet is unencrypted.
    let shown = StreamDeduction.videoFrame(packet.extracting(header.payload))
    return shown == "vp8" || shown == "vp9"
  }

  /// Derives the protection from an RTCP packet: if its last part ends where the packet ends, there
  /// is no authentication tag.
  private static func protection(shownBy packet: RawSpan) -> Protection {
    var offset = 0
    var count = 0
    while offset + 4 <= packet.byteCount {
      guard packet.byte(at: offset) >> 6 == 2, (192...223).contains(packet.byte(at: offset + 1))
      else { return count > 0 ? .protected : .unknown }
      offset += 4 + 4 * Int(packet.uint16(at: offset + 2))
      count += 1
    }
    return offset == packet.byteCount ? .clear : .protected
  }
}

// MARK: - KeyRing

/// Supplied keys and key logs, and the number of packet bytes waiting for more keys.
struct KeyRing {
  private static let givenMaximum = 4096

  private(set) var log = NSSKeyLog()
  private(set) var given: [SRTPKey] = []
  /// The indexes of keys that have not decrypted anything so far.
  private var unused: Set<Int> = []
  /// Whether keys from sources other than the user are in use.
  private(set) var hasOthers = false
  /// Whether more keys may arrive.
  private(set) var areAwaited: Bool
  /// The bytes of waiting packets in all transports, and their limit.
  private var waitingBytes = 0
  private let waitingBytesMaximum: Int

  init(awaitsKeys: Bool, waitingBytesMaximum: Int) {
    areAwaited = awaitsKeys
    self.waitingBytesMaximum = waitingBytesMaximum
  }

  /// Adds bytes of a key log; returns the client randoms with new secrets.
  mutating func append(_ bytes: [UInt8]) -> [[UInt8]] { log.append(bytes) }

  /// Adds a key; returns false if there are too many.
  mutating func add(_ key: SRTPKey) -> Bool {
    guard given.count < KeyRing.givenMaximum else { return false }
    unused.insert(given.count)
    given.append(key)
    return true
  }

  /// The number of supplied keys that decrypted nothing.
  var unusedCount: Int { unused.count }

  /// Records that a key decrypted a packet.
  mutating func use(_ key: SRTPKey, isGiven: Bool) {
    if isGiven {
      for index in given.indices where given[index] == key { unused.remove(index) }
    }
    hasOthers = hasOthers || !isGiven
  }

  /// Records that keys negotiated over DTLS are in use.
  mutating func useThoseOfDTLS() { hasOthers = true }

  /// Declares that no more keys will arrive.
  mutating func stopWaiting() { areAwaited = false }

  // MARK: Waiting packets

  var holdsTooMuch: Bool { waitingBytes > waitingBytesMaximum }

  mutating func hold(bytes: Int) { waitingBytes += bytes }

  mutating func release(bytes: Int) { waitingBytes -= bytes }
}

// MARK: - ClearMedia

/// Infers from a transport's payloads whether its RTP is unencrypted, if nothing else reveals it.
///
/// SRTP output is uniformly random, independently in every packet (RFC 3711 section 4.1, RFC 7714).
/// Unencrypted payloads are not: each codec's payloads begin with a header that has few values (the
/// TOC of Opus, the descriptors of VP8 and VP9, NAL unit types, the aggregation header of AV1, the
/// block header of RED, the mode of AMR). If the first byte has few distinct values, the media is
/// unencrypted. The probability that 16 random bytes have at most 3 values is at most C(256,3) *
/// (3/256)^16 = 4e-25; for 32 bytes with 8 values it is 3e-34, for 64 bytes with 16 values 9e-53:
/// an encrypted source is misjudged once in 10^24, however long it lasts.
///
/// Payloads that consist of samples (G.711, G.729, GSM, G.723.1, iLBC) have lengths that match
/// their duration. SRTP's tag adds a constant length, so an encrypted stream never has the right
/// ratio.
struct ClearMedia {
  /// The maximum number of sources to examine, and of packets from each.
  private static let sourcesMaximum = 64
  private static let packetsMaximum = 64
  /// The maximum number of distinct first bytes that proves unencrypted media, by number of
  /// packets.
  private static let limits: [(packets: Int, values: Int)] = [(16, 3), (32, 8), (64, 16)]
  /// The number of consecutive packets whose length must match their duration.
  ///
  /// For G.723.1, a short frame with a four-byte tag is as long as a longer frame, so the two
  /// length bits must match as well, which happens by chance once in 4^40 (10^24).
  private static let lengthsMinimum = 8
  private static let g723Minimum = 40

  /// Counters for one of a source's payload types.
  private struct Source {
    let end: Int
    let ssrc: UInt32
    let payloadType: UInt8
    var packets = 0
    /// A bitmap of the first byte's values.
    var values: [4 of UInt64] = .init(repeating: 0)
    var valueCount = 0
    var sequence: UInt16 = 0
    var timestamp: UInt32 = 0
    var length = 0
    var first: UInt8 = 0
    /// The number of consecutive packets whose length matched their duration.
    var fitting = 0

    init(_ header: RTPHeader, from end: Int) {
      (self.end, ssrc, payloadType) = (end, header.ssrc, header.payloadType)
    }

    mutating func add(first: UInt8) {
      let (word, bit) = (Int(first >> 6), UInt64(1) << UInt64(first & 63))
      guard values[word] & bit == 0 else { return }
      values[word] |= bit
      valueCount += 1
    }
  }

  private var sources: [Source] = []

  /// Examines an end's packet; returns true once this packet and earlier ones prove that the media
  /// is unencrypted.
  mutating func isShown(by header: RTPHeader, _ packet: RawSpan, from end: Int) -> Bool {
    guard let place = place(of: header, from: end) else { return false }
    let source = sources[place]
    guard source.packets < Self.packetsMaximum, !header.payload.isEmpty,
      header.payload.upperBound <= packet.byteCount
    else { return false }
    // A duplicate or late packet adds no evidence.
    let step = header.sequence &- source.sequence
    guard source.packets == 0 || (1..<0x8000).contains(step) else { return false }
    if source.packets > 0, step == 1 {
      let ticks = header.timestamp &- source.timestamp
      let fits = Self.lasts(source.length, ticks, source.payloadType, source.first)
      // A mismatch only restarts the count: the last packet before a pause is shorter than the gap
      // to the next timestamp.
      sources[place].fitting = fits ? source.fitting + 1 : 0
    }
    sources[place].packets += 1
    sources[place].sequence = header.sequence
    sources[place].timestamp = header.timestamp
    sources[place].length = header.payload.count
    sources[place].first = packet.byte(at: header.payload.lowerBound)
    sources[place].add(first: sources[place].first)
    let now = sources[place]
    let isG723 = now.payloadType == 4
    if now.fitting >= (isG723 ? Self.g723Minimum : Self.lengthsMinimum) { return true }
    for (packets, values) in Self.limits where now.packets == packets && now.valueCount <= values {
      return true
    }
    return false
  }

  private mutating func place(of header: RTPHeader, from end: Int) -> Int? {
    let known = sources.firstIndex {
      $0.ssrc == header.ssrc && $0.payloadType == header.payloadType && $0.end == end
    }
    if let known { return known }
    guard sources.count < Self.sourcesMaximum else { return nil }
    sources.append(Source(header, from: end))
    return sources.count - 1
  }

  /// Returns whether a number of bytes corresponds to a number of ticks in a constant-rate codec
  /// that the payload type may denote (RFC 3551 sections 4.5 and 6, RFC 3952 section 3).
  private static func lasts(
    _ bytes: Int, _ ticks: UInt32, _ payloadType: UInt8, _ first: UInt8
  ) -> Bool {
    // The limits are 2.5 ms at 8 kHz and 240 ms at 44.1 kHz.
    guard (20...10_584).contains(ticks), bytes > 0 else { return false }
    let ticks = Int(ticks)
    switch payloadType {
    case 0, 8, 9: return bytes == ticks
    case 3: return bytes * 160 == 33 * ticks
    case 4:
      return first & 3 == 0 && bytes * 240 == 24 * ticks
        || first & 3 == 1 && bytes * 240 == 20 * ticks
    case 5, 6, 16, 17: return bytes == 4 + ticks / 2
    case 10, 11: return bytes == (payloadType == 10 ? 4 : 2) * ticks
    case 15: return bytes * 40 == 10 * ticks
    case 18: return bytes * 80 == 10 * ticks
    // G.711 with a dynamic payload type, or iLBC with 20 or 30 ms.
    case 96...127:
      return bytes == ticks || bytes * 160 == 38 * ticks || bytes * 240 == 50 * ticks
    default: return false
    }
  }
}
