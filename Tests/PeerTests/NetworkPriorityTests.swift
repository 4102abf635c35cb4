import JSEP
import Lab
import Media
import SCTP
import Testing
import Wire

@testable import Peer

/// Packets' DSCP code points, by the priority of their content (RFC 8837).
struct NetworkPriorityTests {
  /// The code points of a peer's datagrams, by content.
  private final class Marks {
    var audio: Set<UInt8> = []
    var video: Set<UInt8> = []
    var rtcp: Set<UInt8> = []
    var dtls: [UInt8] = []
    var stun: Set<UInt8> = []

    func add(_ datagram: Datagram) {
      let first = datagram.bytes.first ?? 0
      let second = datagram.bytes.count > 1 ? datagram.bytes[1] : 0
      switch (first, second & 0x7f) {
      case (0...3, _): stun.insert(datagram.codePoint)
      case (20...63, _): dtls.append(datagram.codePoint)
      case (128...191, 64...95): rtcp.insert(datagram.codePoint)
      case (128...191, 111): audio.insert(datagram.codePoint)
      case (128...191, _): video.insert(datagram.codePoint)
      default: break
      }
    }
  }

  private func call(
    isEnabled: Bool, audio: NetworkPriority, video: NetworkPriority, data: DataChannelPriority
  ) throws -> Marks {
    var configuration = PeerConfiguration()
    if isEnabled { configuration.enablesDSCP = true }
    let call = VirtualCall(seed: 7, configurations: [configuration, configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat", priority: data)))
    #expect(call.negotiate() == nil)
    for (transceiver, priority) in [(1 as UInt32, audio), (2, video)] {
      guard
        case .parameters(var parameters) = call.call(0, .getParameters(transceiver: transceiver))
      else {
        Issue.record("there are no parameters")
        continue
      }
      for index in parameters.encodings.indices {
        parameters.encodings[index].networkPriority = priority
      }
      let reply = call.call(0, .setParameters(transceiver: transceiver, parameters))
      #expect(reply.error == nil)
    }
    let marks = Marks()
    call.onDatagram = { peer, datagram in
      if peer == 0 { marks.add(datagram) }
    }
    call.run(for: .seconds(2))
    return marks
  }

  @Test(arguments: [
    (NetworkPriority.veryLow, 8, 8), (.low, 0, 0), (.medium, 46, 36), (.high, 46, 34),
  ])
  func packetsAreMarkedByTheirPriority(
    priority: NetworkPriority, audio: UInt8, video: UInt8
  ) throws {
    let marks = try call(isEnabled: true, audio: priority, video: priority, data: .high)
    #expect(marks.audio == [audio] && marks.video == [video])
    #expect(marks.rtcp == [audio] && marks.stun == [0])
    // The handshake has no priority; later records carry the channel.
    #expect(marks.dtls.first == 0 && marks.dtls.last == 18)
  }

  @Test func withoutTheSettingNothingIsMarked() throws {
    let marks = try call(isEnabled: false, audio: .high, video: .high, data: .high)
    #expect(marks.audio == [0] && marks.video == [0] && marks.rtcp == [0])
    #expect(marks.dtls.allSatisfy { $0 == 0 })
  }
}
