import RTP
import Testing
import Wire

@testable import Flow

/// Tests how payload formats affect frame assembly and recovery.
struct CodecFlowTests {
  @Test(arguments: [CodecName.vp8, .vp9, .h264], [0.05, 0.3])
  func framesOfEveryCodecArriveIntactDespiteLoss(codec: CodecName, loss: Double) throws {
    let pair = Pair(sections: Agreed.video(codec).map { [$0] }, seed: 5)
    pair.links[0] = Link(jitter: .milliseconds(4), loss: loss, duplication: 0.02)
    pair.links[1] = Link(loss: loss)
    let camera = Camera(codec)
    pair.film(camera, milliseconds: 6000)
    let received = pair.received(1)
    var place = 0
    for frame in received {
      let sent = camera.frames[place...].firstIndex { $0.bytes == frame.bytes }
      place = try #require(sent) + 1
      #expect(frame.codec == codec && frame.isKey == camera.frames[place - 1].isKey)
    }
    #expect(received.first?.isKey == true)
    #expect(received.count > camera.frames.count * (loss < 0.1 ? 9 : 5) / 10)
  }

  private func packet(_ sequence: UInt16, _ time: UInt32, _ hex: String, marker: Bool = false)
    -> [UInt8]
  {
    var header = OutgoingHeader(
      payloadType: 96, sequence: sequence, timestamp: time, ssrc: Agreed.videoSSRC)
    header.marker = marker
    var writer = ByteWriter()
    header.write(into: &writer, map: Agreed.map)
    writer.append([UInt8](hexadecimal: hex.filter { !$0.isWhitespace }) ?? [])
    return writer.bytes
  }

  /// H.264 does not mark a frame's first packet, so the packets before it show where the frame
  /// starts.
  @Test func aSliceStartsAFrameAfterAnotherEnded() {
    var receiver = ReceivingTests.Receiver([Agreed.video(.h264)[1]])
    // A key frame's parameter sets and two slices, each in a packet; then two frames of two slices.
    let packets = [
      packet(1, 0, "67aa"), packet(2, 0, "68aa"), packet(3, 0, "65aa"),
      packet(4, 0, "65bb", marker: true), packet(5, 3000, "41aa"),
      packet(6, 3000, "41bb", marker: true), packet(7, 6000, "41cc"),
      packet(8, 6000, "41dd", marker: true),
    ]
    for index in [0, 1, 2, 3, 6, 7, 5, 4] { receiver.rtp(packets[index]) }
    #expect(receiver.frames.map(\.firstSequence) == [1, 5, 7])
    #expect(receiver.frames.map(\.isKey) == [true, false, false])
    #expect(receiver.frames[1].bytes == [0, 0, 0, 1, 0x41, 0xaa, 0, 0, 0, 1, 0x41, 0xbb])
    #expect(receiver.flow.inbound[0].keyFramesReceived == 1)
  }

  /// A frame without its first packets must not pass for a complete one.
  @Test func aKeyFrameWithoutItsParametersIsNotDelivered() {
    var receiver = ReceivingTests.Receiver([Agreed.video(.h264)[1]])
    receiver.rtp(packet(1, 0, "67aa"))
    receiver.rtp(packet(2, 0, "65aa", marker: true))
    receiver.rtp(packet(4, 3000, "65aa"))
    receiver.rtp(packet(5, 3000, "65bb", marker: true))
    receiver.wait(.seconds(3))
    receiver.rtp(packet(6, 9000, "67aa"))
    receiver.rtp(packet(7, 9000, "65cc", marker: true))
    #expect(receiver.frames.map(\.firstSequence) == [1, 6])
    #expect(receiver.records("pli").count > 0)
  }

  /// A VP9 video frame's layers are one frame, even if the lowest one was left out.
  @Test func layersOfAVideoFrameAreOneFrame() {
    var receiver = ReceivingTests.Receiver([Agreed.video(.vp9)[1]])
    let key = "824983422027f016700000"
    receiver.rtp(packet(1, 0, "b8800100" + key))
    receiver.rtp(packet(2, 0, "b4800102aa"))
    receiver.rtp(packet(3, 0, "bc800104aa", marker: true))
    receiver.rtp(packet(4, 3000, "fc80020202aa", marker: true))
    #expect(receiver.frames.map(\.firstSequence) == [1, 4])
    #expect(receiver.frames.map(\.isKey) == [true, false])
  }

  @Test func aUnitThatMayNotBeFragmentedIsCountedAsDiscarded() {
    var sections = Agreed.video(.h264)
    sections[0].sending?.codec.fragments = false
    let pair = Pair(sections: sections.map { [$0] }, seed: 1)
    let camera = Camera(.h264)
    camera.size = 500
    pair.film(camera, milliseconds: 400)
    let sent = pair.flows[0].outbound[0]
    // Each requested key frame is too large again.
    #expect(sent.framesDiscarded == UInt64(camera.frames.count(where: \.isKey)))
    #expect(sent.framesSent + sent.framesDiscarded == UInt64(camera.frames.count))
    #expect(sent.framesSent > 0)
  }
}
