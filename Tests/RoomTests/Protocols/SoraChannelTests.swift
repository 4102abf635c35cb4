import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests the Sora machine after signaling has moved to data channels.
struct SoraChannelTests {
  @Test func signalingContinuesOverDataChannels() throws {
    var pair = SoraPair.switched()
    for message in pair.server.arrive("THIRD") {
      let label = message["type"] == "notify" ? "notify" : "signaling"
      pair.bench.report(1, .channelMessage(label: label, SoraPair.compressed(message)))
    }
    pair.bench.report(1, .description(SoraPair.answer, media: []))
    pair.talk()
    guard case .sendOnChannel("signaling", .binary(let bytes))? = pair.drainRequests().last else {
      Issue.record("the answer was sent on another transport")
      return
    }
    let text = String(decoding: try Zlib.expanded(bytes, limit: 1000), as: UTF8.self)
    #expect(text == #"{"type":"re-answer","sdp":"answer"}"#)

    // The WebSocket is closed ten seconds after the first message, and its end is not a loss.
    pair.bench.wait(10)
    #expect(
      pair.bench.drain().contains(.transport(TransportID(1), .close(code: 1000, reason: ""))))
    pair.bench.transport(.closed(code: 1000, reason: ""))
    pair.talk()
    #expect(pair.drainOtherEvents().count == 3)
  }

  @Test func statisticsAndMessagesHaveSeparateChannels() throws {
    var pair = SoraPair.switched()
    pair.bench.report(1, .channelMessage(label: "stats", .text(#"{"type":"req-stats"}"#)))
    pair.bench.report(1, .stats(ActionID(1), "[]"))
    pair.bench.want(.sendMessage(ActionID(5), UserMessage(type: "#chat", text: "hi")))
    let sender = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    let message = Zlib.compressed(Array((sender + "hello").utf8))
    pair.bench.report(1, .channelMessage(label: "#chat", .binary(message)))
    // A message that is not compressed, or on an unknown channel, is ignored.
    pair.bench.report(1, .channelMessage(label: "#chat", .text("hello")))
    pair.bench.report(1, .channelMessage(label: "#other", .text("hello")))
    pair.talk()
    #expect(
      pair.drainRequests() == [
        .getStats(ActionID(1)),
        .sendOnChannel(label: "stats", .text(#"{"type":"stats","reports":[]}"#)),
        .sendOnChannel(label: "#chat", .binary(Zlib.compressed(Array("hi".utf8)))),
      ])
    #expect(
      pair.drainEvents() == [
        .result(ActionID(5), nil),
        .message(UserMessage(sender: sender, type: "#chat", text: "hello")),
      ])
  }

  @Test func theServerMayEndTheSessionOnTheChannel() {
    var pair = SoraPair.switched()
    let close = JSONValue.members(("type", "close"), ("code", 1000), ("reason", "DISCONNECTED-API"))
    pair.bench.report(1, .channelMessage(label: "signaling", SoraPair.compressed(close)))
    pair.talk()
    #expect(
      pair.drainEvents().last
        == .ended(RoomEnding(.kicked, code: 1000, message: "DISCONNECTED-API")))
  }

  // MARK: SoraChannels

  private func channels(_ labels: String...) -> SoraChannels {
    var channels = SoraChannels()
    channels.begin(labels.compactMap { SoraChannel(.members(("label", .text($0)))) })
    return channels
  }

  @Test func theWebSocketIsClosedOnceSignalingHasSwitched() {
    var channels = channels("signaling")
    channels.switchOver(ignoresSocket: false)
    channels.recordSignaling(at: .zero)
    #expect(channels.hasSwitched && !channels.outlivesSocket && channels.deadline == nil)
    channels.switchOver(ignoresSocket: true)
    channels.recordSignaling(at: .zero)
    channels.recordSignaling(at: .zero + .seconds(5))
    #expect(channels.outlivesSocket && channels.deadline == .zero + .seconds(10))
    let isDue = [9, 10, 11].map { channels.consumeDue(at: .zero + .seconds($0)) }
    #expect(isDue == [false, true, false])
    channels.end()
    #expect(!channels.hasSwitched && channels["signaling"] == nil)
  }

  @Test func messagesAreSentOnTheChannelNamedByTheirType() {
    var channels = channels("signaling", "#a", "#b")
    let message = UserMessage(type: "#b", text: "hi")
    #expect(channels.outgoing(message) == nil)
    channels.switchOver(ignoresSocket: true)
    let bytes = Array("hi".utf8)
    #expect(channels.outgoing(message) == .sendOnChannel(label: "#b", .binary(bytes)))
    let untyped = UserMessage(type: "", text: "hi")
    #expect(channels.outgoing(untyped) == .sendOnChannel(label: "#a", .binary(bytes)))
    #expect(channels.outgoing(UserMessage(type: "#c", text: "hi")) == nil)
  }
}
