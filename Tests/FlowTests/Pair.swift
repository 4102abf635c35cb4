import RTP
import Seeded
import Wire

@testable import Flow

extension SeededGenerator {
  mutating func chance(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &self) < probability
  }
}

/// A path's effect on packets in one direction.
struct Link {
  var delay = Interval.milliseconds(20)
  /// The maximum random extra delay, which lets packets overtake each other.
  var jitter = Interval.zero
  var loss = 0.0
  var duplication = 0.0
  /// Bits per second, nil without a limit.
  ///
  /// Packets that would wait longer than `queue` are dropped.
  var rate: Double?
  var queue = Interval.milliseconds(300)
}

/// Two flows joined by a network in virtual time: side 0 sends the media, side 1 receives.
final class Pair {
  var flows: [MediaFlow]
  var links: [Link]
  private(set) var now = Instant.zero
  /// Each side's outputs except packets, with the time.
  private(set) var outputs: [[(at: Instant, output: MediaFlow.Output)]] = [[], []]
  /// Every packet that a side sent.
  private(set) var packets: [[(at: Instant, bytes: [UInt8])]] = [[], []]
  /// Each side's RTP packets that the network lost.
  private(set) var lost: [[[UInt8]]] = [[], []]
  private(set) var duplicatedCount = [0, 0]
  /// The times at which a side stepped only because its deadline was reached.
  private(set) var wakes: [[Instant]] = [[], []]
  /// Returns whether to lose a packet, given its side, whether it is RTP, and its bytes.
  var drop: (Int, Bool, [UInt8]) -> Bool = { _, _, _ in false }
  /// Called with every output of a side; returns frames to send in response.
  var onOutput: (Int, MediaFlow.Output) -> Void = { _, _ in }

  private var inFlight: [(arrival: Instant, order: Int, to: Int, input: MediaFlow.Input)] = []
  private var order = 0
  private var lineFree: [Instant] = [.zero, .zero]
  private var generator: SeededGenerator

  init(
    sections: [[FlowSection]], link: Link = Link(), seed: UInt64 = 1,
    at start: Instant = .zero
  ) {
    generator = SeededGenerator(seed: seed)
    links = [link, link]
    now = start
    flows = (0..<2).map { side in
      let entropy = Entropy(seed: [UInt8(side + 1), UInt8(truncatingIfNeeded: seed)])
      return MediaFlow(
        entropy: entropy.stream("flow"),
        wallClock: WallClock(unixNanosecondsAtZero: 1_795_000_000_000_000_000),
        cname: "side\(side)")
    }
    for side in 0..<2 {
      step(side, .configure(sections[side]))
      step(side, .writable(true))
    }
  }

  func step(_ side: Int, _ input: MediaFlow.Input) {
    var outbox = Outbox<MediaFlow.Output>()
    flows[side].step(input, at: now, into: &outbox)
    for output in outbox.drain() {
      switch output {
      case .rtp(let bytes): send(bytes, isRTP: true, from: side)
      case .rtcp(let bytes): send(bytes, isRTP: false, from: side)
      default:
        outputs[side].append((now, output))
        onOutput(side, output)
      }
    }
  }

  /// Advances the time to `end`: packets arrive and deadlines are met.
  func run(until end: Instant) {
    while true {
      let packet = inFlight.indices.min {
        (inFlight[$0].arrival, inFlight[$0].order) < (inFlight[$1].arrival, inFlight[$1].order)
      }
      var next = end
      if let packet { next = min(next, inFlight[packet].arrival) }
      var timer: Int?
      for side in 0..<2 {
        if let deadline = flows[side].deadline, max(deadline, now) < next {
          next = max(deadline, now)
          timer = side
        }
      }
      now = next
      if let timer {
        wakes[timer].append(now)
        step(timer, .deadline)
      } else if let packet, inFlight[packet].arrival == next, next <= end {
        let arrived = inFlight.remove(at: packet)
        step(arrived.to, arrived.input)
      } else {
        return
      }
    }
  }

  private func send(_ bytes: [UInt8], isRTP: Bool, from side: Int) {
    packets[side].append((now, bytes))
    let link = links[side]
    if drop(side, isRTP, bytes) || generator.chance(link.loss) {
      if isRTP { lost[side].append(bytes) }
      return
    }
    var arrival = now
    if let rate = link.rate {
      let free = max(lineFree[side], now)
      if free - now > link.queue {
        if isRTP { lost[side].append(bytes) }
        return
      }
      lineFree[side] = free + Interval(nanoseconds: Int64(Double(bytes.count + 28) * 8e9 / rate))
      arrival = lineFree[side]
    }
    deliver(bytes, isRTP: isRTP, to: 1 - side, at: arrival + link.delay, jitter: link.jitter)
    if generator.chance(link.duplication) {
      if isRTP { duplicatedCount[side] += 1 }
      deliver(bytes, isRTP: isRTP, to: 1 - side, at: arrival + link.delay, jitter: link.jitter)
    }
  }

  private func deliver(
    _ bytes: [UInt8], isRTP: Bool, to side: Int, at time: Instant, jitter: Interval
  ) {
    let more =
      jitter == .zero ? 0 : Int64.random(in: 0..<jitter.nanoseconds, using: &generator)
    let arrival = time + Interval(nanoseconds: more)
    order += 1
    inFlight.append(
      (
        arrival, order, side,
        isRTP ? .rtp(bytes, arrival: arrival) : .rtcp(bytes, arrival: arrival)
      ))
  }
}

extension Pair {
  func received(_ side: Int, mid: String = "v") -> [ReceivedFrame] {
    outputs[side].compactMap {
      if case .received(let frame) = $0.output, frame.mid == mid { frame } else { nil }
    }
  }

  /// Returns the RTCP blocks of one type that a side recorded.
  func records(_ side: Int, _ type: String, inbound: Bool) -> [RTCPRecord] {
    outputs[side].compactMap {
      if case .rtcpBlock(let record) = $0.output, record.type == type, record.isInbound == inbound {
        record
      } else {
        nil
      }
    }
  }

  /// Returns the RTP packets that a side sent, with their headers.
  func sent(_ side: Int) -> [(at: Instant, header: RTPHeader, bytes: [UInt8])] {
    packets[side].compactMap { packet in
      guard DatagramClass(packet.bytes.span.bytes) == .rtp,
        let header = try? RTPHeader(parsing: packet.bytes.span.bytes)
      else { return nil }
      return (packet.at, header, packet.bytes)
    }
  }
}

/// The sections that both sides negotiated in tests.
enum Agreed {
  static let extensions: [FlowSection.HeaderExtensionID] = [
    .init(uri: HeaderExtensionURI.audioLevel.rawValue, id: 1),
    .init(uri: HeaderExtensionURI.absoluteSendTime.rawValue, id: 2),
    .init(uri: HeaderExtensionURI.transportSequence.rawValue, id: 3),
    .init(uri: HeaderExtensionURI.mid.rawValue, id: 4),
  ]
  static let map: HeaderExtensionMap = {
    var map = HeaderExtensionMap()
    for agreed in extensions { map.add(uri: agreed.uri, id: agreed.id) }
    return map
  }()
  static let allFeedback = ["nack", "nack pli", "ccm fir", "goog-remb", "transport-cc"]
  static let videoSSRC: UInt32 = 0x1000_0001
  static let rtxSSRC: UInt32 = 0x1000_0002
  static let audioSSRC: UInt32 = 0x2000_0001

  static func videoFrame(
    _ name: CodecName, feedback: [String] = allFeedback, rtx: Bool = true
  ) -> FlowSection.Codec {
    FlowSection.Codec(
      payloadType: 96, name: name, clockRate: 90_000, rtxPayloadType: rtx ? 97 : nil,
      feedback: feedback)
  }

  static let opus = FlowSection.Codec(
    payloadType: 111, name: .opus, clockRate: 48_000, rtxPayloadType: nil,
    feedback: ["transport-cc"])

  /// Returns the sending and the receiving side of a video section.
  static func video(
    _ name: CodecName = .vp8, feedback: [String] = allFeedback, rtx: Bool = true,
    announced: Bool = true,
    reducedSize: Bool = true
  ) -> [FlowSection] {
    let codec = videoFrame(name, feedback: feedback, rtx: rtx)
    let sending = FlowSection.Sending(
      ssrc: videoSSRC, rtxSSRC: rtx ? rtxSSRC : nil, codec: codec)
    let receiving = FlowSection.Receiving(
      codecs: [codec], ssrcs: announced ? [videoSSRC] : [],
      rtxSSRCs: announced ? [rtx ? rtxSSRC : nil] : [])
    return [
      FlowSection(
        mid: "v", kind: .video, sending: sending, receiving: nil, extensions: extensions,
        reducedSizeRTCP: reducedSize),
      FlowSection(
        mid: "v", kind: .video, sending: nil, receiving: receiving, extensions: extensions,
        reducedSizeRTCP: reducedSize),
    ]
  }

  /// Returns the sending and the receiving side of an audio section.
  static func audio() -> [FlowSection] {
    [
      FlowSection(
        mid: "a", kind: .audio,
        sending: FlowSection.Sending(ssrc: audioSSRC, rtxSSRC: nil, codec: opus), receiving: nil,
        extensions: extensions, reducedSizeRTCP: true),
      FlowSection(
        mid: "a", kind: .audio, sending: nil,
        receiving: FlowSection.Receiving(codecs: [opus], ssrcs: [audioSSRC], rtxSSRCs: [nil]),
        extensions: extensions, reducedSizeRTCP: true),
    ]
  }
}

/// Makes frames as an encoder does: each contains its number, and is a key frame if requested.
final class Camera {
  private(set) var frames: [EncodedFrame] = []
  private var generator = SeededGenerator(seed: 99)
  private let codec: CodecName
  var wantsKey = true
  var keySize = 12_000
  var size = 3_000

  init(_ codec: CodecName = .vp8) { self.codec = codec }

  func frame(at now: Instant) -> EncodedFrame {
    let length = wantsKey ? keySize : size
    var bytes: [UInt8] = []
    bytes.reserveCapacity(length + 7)
    while bytes.count < length {
      withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) }
    }
    bytes.removeLast(bytes.count - length)
    switch codec {
    case .vp9:
      bytes.replaceSubrange(0..<5, with: [wantsKey ? 0x82 : 0x86, 0x49, 0x83, 0x42, 0x20])
    case .h264:
      // No zeros, so that the bytes contain no start code.
      bytes = bytes.map { max(1, $0) }
      let parameters: [UInt8] = [0, 0, 0, 1, 0x67, 1, 2, 3] + [0, 0, 0, 1, 0x68, 1]
      let head: [UInt8] = [0, 0, 0, 1, wantsKey ? 0x65 : 0x41]
      bytes = (wantsKey ? parameters : []) + head + bytes
    default: bytes[0] = bytes[0] & 0xfe | (wantsKey ? 0 : 1)
    }
    let frame = EncodedFrame(
      kind: .video, codec: codec, mediaTime: UInt32(truncatingIfNeeded: now.milliseconds90),
      bytes: bytes, isKey: wantsKey, width: 640, height: 360)
    frames.append(frame)
    wantsKey = false
    return frame
  }
}

extension Instant {
  /// The instant in units of 1/90000 s, rounded down to milliseconds.
  var milliseconds90: Int64 { nanoseconds / 1_000_000 * 90 }
}

extension Pair {
  /// Sends a video frame every 40 ms for some time, with key frames when the receiver requests
  /// them.
  func film(_ camera: Camera, milliseconds: Int64, settle: Int64 = 2000) {
    onOutput = { side, output in
      if side == 0, case .keyframeRequested = output { camera.wantsKey = true }
    }
    let end = now + .milliseconds(milliseconds)
    while now < end {
      step(0, .frame(mid: "v", camera.frame(at: now)))
      run(until: now + .milliseconds(40))
    }
    run(until: now + .milliseconds(settle))
  }
}
