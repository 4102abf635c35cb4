import RetakeRTC
import Testing

@Suite(.timeLimit(.minutes(10)), .serialized) struct DataChannelTests {
  @Test func twoSidesChat() async throws {
    let pair = try LoopbackPair()
    let configuration = RTCDataChannelConfiguration()
    configuration.isOrdered = false
    configuration.maxRetransmits = 3
    let channel = try #require(
      pair.caller.dataChannel(forLabel: "chat", configuration: configuration))
    channel.delegate = pair.callerHears
    #expect(channel.readyState == .connecting && channel.channelId == -1)
    #expect(!channel.sendData(RTCDataBuffer(data: Data(), isBinary: true)))
    try await pair.connect()
    await pair.callerHears.told.wait(for: "chat open")
    await pair.calleeHears.told.wait(for: "chat open")
    let other = try #require(pair.calleeHears.channels.first)
    #expect(pair.callerHears.channels == [], "own channels are not told")
    #expect(!other.isOrdered && other.maxRetransmits == 3 && other.maxPacketLifeTime == .max)
    #expect(other.channelId == channel.channelId && channel.channelId >= 0)

    #expect(channel.sendData(RTCDataBuffer(data: Data("hello".utf8), isBinary: false)))
    await pair.calleeHears.told.wait(for: "message hello")
    #expect(other.sendData(RTCDataBuffer(data: Data("well".utf8), isBinary: true)))
    await pair.callerHears.told.wait(for: "message well")
    await pair.callerHears.told.wait(for: "buffered 0")
    #expect(channel.bufferedAmount == 0)
    let huge = RTCDataBuffer(data: Data(count: 17 << 20), isBinary: true)
    #expect(!channel.sendData(huge))

    channel.close()
    await pair.callerHears.told.wait(for: "chat closed")
    await pair.calleeHears.told.wait(for: "chat closed")
    pair.caller.close()
    pair.callee.close()
    #expect(pair.caller.dataChannel(forLabel: "late", configuration: configuration) == nil)
  }

  @Test func numbersThatMeanNothingAreRefused() throws {
    let pair = try LoopbackPair()
    let configuration = RTCDataChannelConfiguration()
    configuration.maxRetransmits = 70_000
    #expect(pair.caller.dataChannel(forLabel: "x", configuration: configuration) == nil)
    configuration.maxRetransmits = 1
    configuration.maxPacketLifeTime = 1
    #expect(pair.caller.dataChannel(forLabel: "x", configuration: configuration) == nil)
  }
}
