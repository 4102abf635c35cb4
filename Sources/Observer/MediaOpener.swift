import RTP
import Secure
import Wire

/// A packet that waits until it is known whether it can be opened.
struct WaitingPacket {
  var bytes: [UInt8]
  var path: Int
  var from: Int
  var isRTCP: Bool
  var at: Instant
  var ecn: ECNMark?
}

/// Packets that wait, the oldest first.
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
  /// The first packet of each sender and source, a few.
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

/// What protects the RTP of a transport, and the keys that open it.
struct MediaOpener {
  enum Protection: Hashable {
    /// Nothing tells yet.
    case unknown
    /// RTP as it is: encryption is switched off.
    case clear
    case protected
  }

  /// What became of a packet.
  enum Opening {
    case opened
    /// It came before.
    case repeated
    /// No key fits.
    case refused
    /// There is no key for its sender.
    case noKey
  }

  /// How many keys of an end are kept: media goes on with the keys of the former association.
  private static let receiversMaximum = 4
  /// How many packets are looked at to see whether they are protected.
  private static let looksMaximum = 500
  /// How often keys that may fit are tried for an end.
  private static let attemptsMaximum = 64

  private(set) var protection = Protection.unknown
  /// How many packets were looked at without showing it.
  private(set) var looks = 0
  private(set) var waiting = WaitingPackets()
  private var receivers: [[SRTPReceiver]] = [[], []]
  private var attempts = [0, 0]
  private var clearMedia = ClearMedia()

  /// Whether there are keys for what an end sends.
  @inline(__always)
  func hasKeys(_ end: Int) -> Bool { !receivers[end].isEmpty }

  /// Something other than the packets tells whether they are protected.
  mutating func settle(_ protection: Protection) { self.protection = protection }

  // MARK: What waits

  mutating func hold(_ packet: WaitingPacket) { waiting.append(packet) }

  mutating func popWaiting() -> WaitingPacket? { waiting.popFirst() }

  /// Gives all that waits out of hand.
  mutating func takeWaiting() -> WaitingPackets {
    defer { waiting = WaitingPackets() }
    return waiting
  }

  // MARK: Keys

  /// Takes a key for what an end sends; it is tried before older ones.
  mutating func add(_ receiver: SRTPReceiver, for end: Int) {
    protection = .protected
    receivers[end].insert(receiver, at: 0)
    if receivers[end].count > Self.receiversMaximum { receivers[end].removeLast() }
  }

  /// Turns a packet into a clear one in place.
  mutating func open(_ packet: inout [UInt8], from end: Int, isRTCP: Bool) -> Opening {
    if receivers[end].count == 1 { return open(&packet, receivers[end][0], isRTCP) }
    guard !receivers[end].isEmpty else { return .noKey }
    for index in receivers[end].indices {
      var copy = packet
      let opening = open(&copy, receivers[end][index], isRTCP)
      guard case .refused = opening else {
        packet = copy
        // The next packet most likely has the same key.
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

  /// Whether keys may still be tried for an end.
  func mayProbe(_ end: Int) -> Bool { attempts[end] < Self.attemptsMaximum }

  /// Tries keys that may be for an end on one of its packets; gives the one that opened it.
  mutating func probe(_ packet: WaitingPacket, _ keys: [SRTPKey]) -> (SRTPReceiver, SRTPSuite)? {
    for key in keys {
      for suite in key.suites {
        guard attempts[packet.from] < Self.attemptsMaximum else { return nil }
        attempts[packet.from] += 1
        guard
          let receiver = try? SRTPReceiver(suite, key: key.bytes, identifier: key.identifier)
        else { continue }
        var copy = packet.bytes
        guard case .opened = open(&copy, receiver, packet.isRTCP),
          let fresh = try? SRTPReceiver(suite, key: key.bytes, identifier: key.identifier)
        else { continue }
        return (fresh, suite)
      }
    }
    return nil
  }

  /// Takes the keys of a transport that this one goes on for.
  mutating func inherit(_ other: MediaOpener, isFlipped: Bool) {
    protection = other.protection
    receivers = isFlipped ? other.receivers.reversed() : other.receivers
  }

  /// Lets keys be tried again.
  mutating func renewAttempts() { attempts = [0, 0] }

  /// Whether it may still show soon that packets are in the clear.
  var isUndecided: Bool { protection == .unknown && looks < Self.looksMaximum }

  /// Whether packets may still show that they are in the clear: nothing opened one, and what says
  /// that they are protected may be wrong.
  var mayBeClear: Bool { protection != .clear && receivers[0].isEmpty && receivers[1].isEmpty }

  /// The packets show it, whatever else says something else.
  mutating func showClear() { protection = .clear }

  /// Looks whether a packet shows the protection.
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

  /// Whether a single packet shows that it is in the clear.
  private static func showsClear(_ header: RTPHeader, _ packet: RawSpan) -> Bool {
    // PCMU, PCMA and G.722 send whole steps of 10 ms, with 80 bytes each (RFC 3551 section 4.5).
    let isSamples = [0, 8, 9].contains(header.payloadType)
    let isWhole = isSamples && header.payload.count > 0 && header.payload.count % 80 == 0
    guard !isWhole, header.payload.count > 10 else { return isWhole }
    // So do the start codes of key frames.
    let shown = StreamDeduction.videoFrame(packet.extracting(header.payload))
    return shown == "vp8" || shown == "vp9"
  }

  /// What a packet of RTCP shows of the protection: one that fits together to its end has no tag.
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
