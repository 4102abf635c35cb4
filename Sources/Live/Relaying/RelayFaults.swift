import Dispatch
import Peer
import SDP
import Synchronization
import Wire

/// A fault between a relay's legs, and the packets that it affects.
///
///     drop rtp video 5%                drop near rtp ssrc=7 every=3
///     delay 80ms audio                 duplicate rtcp            corrupt sctp 1%
///     rate 800kbps queue=300ms         jitter 20ms               wifi
///
/// `near` or `far` names the end whose packets are affected; without either, both ends' packets
/// are.
package struct RelayFault: Hashable, Sendable, CustomStringConvertible {
  enum Action: Hashable, Sendable {
    case drop
    case duplicate
    case corrupt
    /// The delay in nanoseconds.
    case delay(Int64)
    /// The maximum of a random delay in nanoseconds; packets stay in order.
    case jitter(Int64)
    /// The rate in bits per second, and the longest time in the queue in nanoseconds.
    case rate(Double, queue: Int64)
  }

  var action: Action
  var side: RelaySide?
  var packet: ClearPacket.Kind?
  /// `audio` or `video`; nil for both.
  var media: String?
  var ssrc: UInt32?
  var payloadType: UInt8?
  var every = 1
  var probability = 1.0
  /// Whether losses come in bursts.
  var isBursty = false
  /// The fault as the user wrote it.
  package var description: String

  /// The names of sets of faults that imitate typical paths.
  package static let presets = [
    "wifi", "lossy-wifi", "congested-wifi", "cellular", "satellite",
  ]

  private static func faults(ofPreset name: String) -> [String]? {
    switch name {
    case "wifi": ["delay 3ms", "jitter 8ms", "drop 0.1%"]
    case "lossy-wifi": ["delay 5ms", "jitter 25ms", "drop 4% bursts"]
    case "congested-wifi":
      ["rate 1500kbps queue=400ms", "delay 5ms", "jitter 40ms", "drop 1% bursts"]
    case "cellular":
      [
        "rate near 1000kbps queue=500ms", "rate far 3000kbps queue=500ms", "delay 45ms",
        "jitter 20ms", "drop 0.5%",
      ]
    case "satellite": ["rate 5000kbps queue=300ms", "delay 280ms", "jitter 10ms", "drop 0.3%"]
    default: nil
    }
  }

  /// Parses a fault, or a preset's name, which expands to several faults.
  ///
  /// - Throws: `SignalingRefusal` with the reason as a sentence.
  package static func list(parsing text: String) throws(SignalingRefusal) -> [RelayFault] {
    var words = text.split(separator: " ").map(String.init)
    if words.first == "packet" { words.removeFirst() }
    let sides = words.filter { $0 == "near" || $0 == "far" }
    if let name = words.first(where: { $0 != "near" && $0 != "far" }),
      let parts = faults(ofPreset: name), words.count == sides.count + 1
    {
      var faults: [RelayFault] = []
      for part in parts {
        var fault = try RelayFault(part)
        if let side = sides.first { fault.side = fault.side ?? (side == "near" ? .near : .far) }
        fault.description = text
        faults.append(fault)
      }
      return faults
    }
    return [try RelayFault(text)]
  }

  private init(_ text: String) throws(SignalingRefusal) {
    description = text
    var words = text.split(separator: " ").map(String.init)
    let verb = words.isEmpty ? "" : words.removeFirst()
    var length: Double?
    action = .drop
    switch verb {
    case "drop": action = .drop
    case "duplicate": action = .duplicate
    case "corrupt": action = .corrupt
    case "delay", "jitter", "rate": break
    default:
      throw SignalingRefusal(
        "\"\(text.prefix(60))\" is not a fault: it begins with drop, delay, duplicate, "
          + "corrupt, jitter or rate, as in 'drop rtp video 5%', or is one of "
          + RelayFault.presets.joined(separator: ", "))
    }
    var queue = 0.2
    for word in words {
      if let value = RelayFault.seconds(word), verb == "delay" || verb == "jitter" {
        length = value
      } else if let value = RelayFault.bitrate(word), verb == "rate" {
        length = value
      } else if word.hasPrefix("queue="), verb == "rate",
        let value = RelayFault.seconds(String(word.dropFirst(6)))
      {
        queue = value
      } else {
        try select(word, text)
      }
    }
    guard verb == "delay" || verb == "jitter" || verb == "rate" else { return }
    guard let length else {
      throw SignalingRefusal(
        verb == "rate"
          ? "\"\(text.prefix(60))\" needs a bit rate from 1 to 10000000 kbps, as in "
            + "'rate 800kbps queue=300ms'"
          : "\"\(text.prefix(60))\" needs a length from 0 to 60000 ms, as in '\(verb) 80ms'")
    }
    let nanoseconds = Int64(length * 1e9)
    switch verb {
    case "delay": action = .delay(nanoseconds)
    case "jitter": action = .jitter(nanoseconds)
    default: action = .rate(length, queue: Int64(queue * 1e9))
    }
  }

  /// Parses a word that selects packets.
  private mutating func select(_ word: String, _ text: String) throws(SignalingRefusal) {
    let sides = word.split(separator: "=", maxSplits: 1).map(String.init)
    let value = sides.count == 2 ? sides[1] : ""
    switch sides.first {
    case "packet": break
    case "near": side = .near
    case "far": side = .far
    case "rtp": packet = .rtp
    case "rtcp": packet = .rtcp
    case "sctp": packet = .sctp
    case "audio", "video":
      media = word
      packet = .rtp
    case "bursts": isBursty = true
    case "ssrc":
      guard let number = UInt32(value) else { throw RelayFault.refusal(word, text) }
      ssrc = number
    case "type", "payload_type":
      guard let number = UInt8(value), number < 128 else { throw RelayFault.refusal(word, text) }
      payloadType = number
    case "every":
      guard let number = Int(value), number > 0 else { throw RelayFault.refusal(word, text) }
      every = number
    default:
      let digits = sides.first == "probability" ? value : word
      guard digits.hasSuffix("%"), let percent = Double(digits.dropLast()),
        (0...100).contains(percent)
      else { throw RelayFault.refusal(word, text) }
      probability = percent / 100
    }
  }

  private static func refusal(_ word: String, _ text: String) -> SignalingRefusal {
    SignalingRefusal(
      "\"\(text.prefix(60))\": \(word.prefix(60)) selects no packets; try rtp, rtcp, sctp, "
        + "audio, video, near, far, ssrc=N, type=N, every=N, or a share from 0 to 100 as in 5%")
  }

  private static func seconds(_ word: String) -> Double? {
    let isMilliseconds = word.hasSuffix("ms")
    guard isMilliseconds || word.hasSuffix("s"), !word.hasSuffix("bps"),
      let number = Double(word.dropLast(isMilliseconds ? 2 : 1))
    else { return nil }
    let seconds = isMilliseconds ? number / 1000 : number
    return (0...60).contains(seconds) ? seconds : nil
  }

  private static func bitrate(_ word: String) -> Double? {
    for (unit, factor) in [("kbps", 1e3), ("Mbps", 1e6), ("bps", 1.0)] where word.hasSuffix(unit) {
      guard let number = Double(word.dropLast(unit.count)) else { return nil }
      return (1e3...1e10).contains(number * factor) ? number * factor : nil
    }
    return nil
  }
}

extension RelayFault {
  /// Whether the fault affects all packets of a side; if so, a delay keeps the packets in order.
  fileprivate var isWhole: Bool {
    packet == nil && ssrc == nil && payloadType == nil && every == 1 && probability == 1
  }
}

// MARK: - RelayPath

/// Applies the faults to packets between a call's legs, and queues delayed packets.
final class RelayPath: Sendable {
  /// The treatment of a packet that is not lost.
  private struct Fate {
    var bytes: [UInt8]
    var copies = 1
    /// The delay in nanoseconds.
    var delay: Int64 = 0
  }

  private struct Held {
    var due: UInt64
    var packet: RelayedPacket
    var deliver: @Sendable (RelayedPacket, Bool) -> Void
  }

  private struct State {
    var faults: [RelayFault] = []
    var counts: [Int] = []
    var isLosing: [Bool] = []
    /// The time at which each fault's bottleneck is free again, for each side.
    var free: [[Int64]] = []
    /// The time at which each side's last packet departs; later packets must not overtake it.
    var last: [Int64] = [0, 0]
    /// The delayed packets, in order of departure.
    var held: [Held] = []
    /// The kind of media of each payload type.
    var media: [UInt8: String] = [:]
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "relay path", qos: .userInteractive)

  /// The maximum number of delayed packets; further ones are lost.
  private static let heldMaximum = 20_000

  /// Replaces the faults from now on.
  func set(_ faults: [RelayFault]) {
    state.withLock { state in
      state.faults = faults
      state.counts = faults.map { _ in 0 }
      state.isLosing = faults.map { _ in false }
      state.free = faults.map { _ in [0, 0] }
    }
  }

  /// Records whether each payload type in a description is audio or video.
  func learn(_ document: SDPDocument) {
    state.withLock { state in
      for section in document.sections {
        for map in section.rtpMaps {
          state.media[map.payloadType] = section.kind == .audio ? "audio" : "video"
        }
      }
    }
  }

  /// Forwards a packet: now, later, changed, several times, or not at all.
  ///
  /// - Parameter deliver: receives the packet, and whether it was delayed.
  func pass(
    _ packet: RelayedPacket, from side: RelaySide, at now: Instant,
    _ deliver: @escaping @Sendable (RelayedPacket, _ isHeld: Bool) -> Void
  ) {
    let present = DispatchTime.now().uptimeNanoseconds
    let (ready, wake) = state.withLock { state -> ([RelayedPacket], UInt64?) in
      guard !state.faults.isEmpty || !state.held.isEmpty else { return ([packet], nil) }
      guard let fate = RelayPath.fate(of: packet, side, now.nanoseconds, &state) else {
        return ([], nil)
      }
      var packet = packet
      packet.bytes = fate.bytes
      let copies = Array(repeating: packet, count: fate.copies)
      guard fate.delay > 0 else { return (copies, nil) }
      guard state.held.count < RelayPath.heldMaximum else { return ([], nil) }
      let due = present + UInt64(fate.delay)
      let place = state.held.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
      state.held.insert(
        contentsOf: copies.map { Held(due: due, packet: $0, deliver: deliver) }, at: place)
      return ([], due)
    }
    for packet in ready { deliver(packet, false) }
    guard let wake else { return }
    queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: wake)) { [self] in deliverDue() }
  }

  /// Forwards the packets whose delay is over, in order.
  private func deliverDue() {
    let present = DispatchTime.now().uptimeNanoseconds
    let due = state.withLock { state in
      let count = state.held.prefix { $0.due <= present }.count
      defer { state.held.removeFirst(count) }
      return state.held.prefix(count)
    }
    for held in due { held.deliver(held.packet, true) }
  }

  /// Returns the treatment of a packet; nil if it is lost.
  private static func fate(
    of packet: RelayedPacket, _ side: RelaySide, _ now: Int64, _ state: inout State
  ) -> Fate? {
    var fate = Fate(bytes: packet.bytes)
    var (lane, late): (Int64, Int64) = (0, 0)
    for index in state.faults.indices {
      let fault = state.faults[index]
      guard selects(fault, packet, side, state.media) else { continue }
      state.counts[index] += 1
      guard (state.counts[index] - 1) % fault.every == 0, isHit(fault, index, &state) else {
        continue
      }
      switch fault.action {
      case .drop: return nil
      case .duplicate: fate.copies = min(fate.copies + 1, 4)
      case .corrupt: if let last = fate.bytes.indices.last { fate.bytes[last] ^= 0xff }
      case .delay(let length): if fault.isWhole { lane += length } else { late += length }
      case .jitter(let length): lane += Int64.random(in: 0...length)
      case .rate(let rate, let queue):
        let start = max(now, state.free[index][side.rawValue])
        guard start - now <= queue else { return nil }
        state.free[index][side.rawValue] = start + Int64(Double(fate.bytes.count) * 8e9 / rate)
        lane += state.free[index][side.rawValue] - now
      }
    }
    state.last[side.rawValue] = max(state.last[side.rawValue], now + lane)
    fate.delay = state.last[side.rawValue] - now + late
    return fate
  }

  private static func isHit(_ fault: RelayFault, _ index: Int, _ state: inout State) -> Bool {
    guard fault.probability < 1 else { return true }
    guard fault.isBursty else { return Double.random(in: 0..<1) < fault.probability }
    // Gilbert's two-state model, with the requested share of loss in bursts of four packets on
    // average.
    let ending = 0.25
    let beginning = fault.probability * ending / (1 - fault.probability)
    let chance = state.isLosing[index] ? 1 - ending : beginning
    state.isLosing[index] = Double.random(in: 0..<1) < chance
    return state.isLosing[index]
  }

  private static func selects(
    _ fault: RelayFault, _ packet: RelayedPacket, _ side: RelaySide, _ media: [UInt8: String]
  ) -> Bool {
    if let wanted = fault.side, wanted != side { return false }
    if let kind = fault.packet, kind != packet.kind { return false }
    guard fault.media != nil || fault.ssrc != nil || fault.payloadType != nil else { return true }
    guard packet.kind == .rtp, packet.bytes.count >= 12 else { return false }
    let type = packet.bytes[1] & 0x7f
    if let wanted = fault.payloadType, wanted != type { return false }
    if let wanted = fault.media, media[type] != wanted { return false }
    guard let wanted = fault.ssrc else { return true }
    let ssrc = packet.bytes[8..<12].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return ssrc == wanted
  }
}
