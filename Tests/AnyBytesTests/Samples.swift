import Foundation
import Lab
import Media
import Peer
import RTP
import Tape
import Wire

@testable import SCTP

/// Starting points for mutations: packets of real and virtual calls, descriptions of real stacks.
enum Samples {
  private static var tests: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  }

  /// Returns the RTP and RTCP of a Chromium call, decrypted.
  static func clearPackets() throws -> (rtp: [[UInt8]], rtcp: [[UInt8]]) {
    let file = tests.appending(path: "RTPTests/Samples/chromium-call.txt")
    let packets = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
      line -> [UInt8] in
      line.split(separator: " ").last.flatMap { [UInt8](hexadecimal: $0) } ?? []
    }
    let rtp = packets.filter { DatagramClass($0.span.bytes) == .rtp }
    return (rtp, packets.filter { DatagramClass($0.span.bytes) == .rtcp })
  }

  /// Returns the session descriptions of browsers and servers in the samples of `SDPTests`.
  static func descriptions() throws -> [[UInt8]] {
    let folder = tests.appending(path: "SDPTests/Samples")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
      Array(try Data(contentsOf: folder.appending(path: $0)))
    }
  }

  /// Returns a call between two peers with audio and small video frames, before any signaling.
  static func call(seed: UInt64) -> VirtualCall {
    let call = VirtualCall(seed: seed)
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 5))
    return call
  }

  /// Returns every datagram that both peers of a short call received, in order.
  static func datagrams(seed: UInt64, milliseconds: Int64) -> [(peer: Int, datagram: Datagram)] {
    var received: [(peer: Int, datagram: Datagram)] = []
    let call = VirtualCall(seed: seed) { step in
      if case .datagram(let datagram, _) = step.peerInput {
        received.append((Int(step.actor) - 1, datagram))
      }
    }
    call.addMedia()
    call.negotiate()
    call.run(for: .milliseconds(milliseconds))
    return received
  }

  /// Returns an association with open channels and messages in flight, and every packet it
  /// received.
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
        // Drops some packets, to cause gaps, retransmissions and forward TSNs.
        if (number + round) % 11 == 7 { continue }
        if packet.to == 1 { packets.append(packet.bytes) }
        drive(packet.to, .packet(packet.bytes))
      }
    }
    return (sides[1], packets, now)
  }

  /// Returns whether the association's memory stays within its limits.
  static func isBounded(_ association: SCTPAssociation) -> Bool {
    association.receiver.streams.heldBytes <= 2 * association.parameters.receiveWindow
      && association.receiver.streams.heldFragments <= 2 * SCTPLimits.fragmentsHeld
      && association.receiver.numbers.ranges.count <= SCTPLimits.gaps
      && association.sender.sent.count <= SCTPLimits.chunksInFlight
      && association.channelNumbers.count <= SCTPLimits.channels
  }

  /// Returns an association in each state that can receive packets: in the handshake, with data,
  /// closing channels, and in each stage of the shutdown.
  ///
  /// All of them have the same verification tag.
  static func states(of model: SCTPAssociation, at now: Instant) -> [SCTPAssociation] {
    var outbox = Outbox<SCTPAssociation.Output>()
    var waiting = SCTPAssociation(entropy: Entropy(seed: [9]).stream("sctp"))
    let identity = AssociationIdentity(
      cookieKey: CookieKey(first: 1, second: 2), tag: model.handshake.localTag, firstNumber: 1)
    waiting.start(model.parameters, identity, at: now, into: &outbox)
    var echoed = waiting
    let cookie = [UInt8](repeating: 3, count: 100)
    let answer = packet(
      to: model, .initiationAcknowledgement, model.handshake.peer.body(cookie: cookie))
    echoed.step(.packet(answer), at: now, into: &outbox)
    var closing = model
    for channel in model.channelNumbers { closing.step(.close(channel), at: now, into: &outbox) }
    var ending = model
    ending.step(.shutdown, at: now, into: &outbox)
    // The peer acknowledges all data, until there is nothing left to send.
    var shut = closing
    var last = ByteWriter()
    for _ in 0..<100 where !shut.sender.isDrained {
      last = ByteWriter()
      last.uint32(shut.sender.sent.nextNumber &- 1)
      var all = last
      all.uint32(1 << 20)
      all.uint32(0)
      let acknowledgement = packet(to: model, .selectiveAcknowledgement, all.bytes)
      shut.step(.packet(acknowledgement), at: now, into: &outbox)
    }
    shut.step(.shutdown, at: now, into: &outbox)
    var ended = shut
    ended.step(.packet(packet(to: model, .shutdown, last.bytes)), at: now, into: &outbox)
    // The peer shuts down before it has received all data.
    var first = ByteWriter()
    first.uint32(model.sender.sent.firstNumber &- 1)
    var received = model
    for channel in model.channelNumbers {
      received.step(.send(channel, binary: true, [1, 2, 3]), at: now, into: &outbox)
    }
    received.step(.packet(packet(to: model, .shutdown, first.bytes)), at: now, into: &outbox)
    return [waiting, echoed, model, closing, ending, shut, received, ended]
  }

  /// Makes a packet with one chunk for an association.
  private static func packet(
    to association: SCTPAssociation, _ type: ChunkType, _ body: [UInt8]
  ) -> [UInt8] {
    var builder = PacketBuilder(limit: 1160)
    builder.begin(from: 5000, to: 5000, tag: association.handshake.localTag)
    builder.chunk(type, body)
    return builder.finish(checksum: true)
  }
}
