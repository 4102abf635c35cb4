import Foundation
import Lab
import Media
import Peer
import RTP
import SCTP
import Tape
import Wire

/// What the mutations begin with: packets of real and virtual calls, descriptions of real stacks.
enum Samples {
  private static var tests: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  }

  /// RTP and RTCP of a call from Chromium, in the clear.
  static func clearPackets() throws -> (rtp: [[UInt8]], rtcp: [[UInt8]]) {
    let file = tests.appending(path: "RTPTests/Samples/chromium-call.txt")
    let packets = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
      line -> [UInt8] in
      let digits = line.split(separator: " ").last.map { $0.compactMap(\.hexDigitValue) } ?? []
      return stride(from: 0, to: digits.count - 1, by: 2).map {
        UInt8(digits[$0] << 4 | digits[$0 + 1])
      }
    }
    let rtp = packets.filter { DatagramClass($0.span.bytes) == .rtp }
    return (rtp, packets.filter { DatagramClass($0.span.bytes) == .rtcp })
  }

  /// Descriptions that browsers and servers gave.
  static func descriptions() throws -> [[UInt8]] {
    let folder = tests.appending(path: "SDPTests/Samples")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
      Array(try Data(contentsOf: folder.appending(path: $0)))
    }
  }

  /// A call between two peers with sound and small pictures, before anything was signaled.
  static func call(seed: UInt64) -> VirtualCall {
    let call = VirtualCall(seed: seed)
    call.addMedia(pictures: .pattern(width: 64, height: 48, framesPerSecond: 5))
    return call
  }

  /// Every datagram that both peers of a short call received, in order.
  static func datagrams(seed: UInt64, milliseconds: Int64) -> [(peer: Int, datagram: Datagram)] {
    var received: [(peer: Int, datagram: Datagram)] = []
    let call = VirtualCall(seed: seed) { step in
      if case .datagram(let datagram, _) = step.input {
        received.append((Int(step.peer) - 1, datagram))
      }
    }
    call.addMedia()
    call.negotiate()
    call.run(for: .milliseconds(milliseconds))
    return received
  }

  /// An association with channels and messages under way, and every packet that it got so far.
  static func associations() -> (association: SCTPAssociation, packets: [[UInt8]], now: Instant) {
    var sides = [0, 1].map { side in
      SCTPAssociation(entropy: Entropy(seed: [UInt8(side)]).stream("sctp"))
    }
    var packets: [[UInt8]] = []
    var now = Instant.zero
    var outbox = Outbox<SCTPAssociation.Output>()
    var waiting: [(to: Int, bytes: [UInt8])] = []
    func drive(_ side: Int, _ input: SCTPAssociation.Input) {
      sides[side].step(input, at: now, into: &outbox)
      while let output = outbox.next() {
        if case .packet(let bytes) = output { waiting.append((1 - side, bytes)) }
      }
    }
    for side in 0..<2 { drive(side, .start(SCTPParameters(isClient: side == 0))) }
    for ordered in [true, false] { drive(0, .open(DataChannelInit(label: "c", ordered: ordered))) }
    for round in 0..<200 {
      now = now + .milliseconds(20)
      for side in 0..<2 {
        if let due = sides[side].deadline, due <= now { drive(side, .deadline) }
        for channel in sides[side].channelNumbers {
          let bytes = [UInt8](repeating: UInt8(round), count: round * 37 % 3000)
          drive(side, .send(channel, binary: round % 2 == 0, bytes))
        }
      }
      let sent = waiting
      waiting = []
      for (number, packet) in sent.enumerated() {
        // Some are lost, so that there are gaps, retransmissions and forwards.
        if (number + round) % 11 == 7 { continue }
        if packet.to == 1 { packets.append(packet.bytes) }
        drive(packet.to, .packet(packet.bytes))
      }
    }
    return (sides[1], packets, now)
  }
}
