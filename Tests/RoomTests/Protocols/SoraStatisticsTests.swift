import Testing
import Wire

@testable import Room

/// Tests, without a session, the statistics that a Sora server requests.
struct SoraStatisticsTests {
  /// Makes a desk with one connection, an open WebSocket, and optionally a channel for statistics.
  private func desk(hasChannel: Bool = false) throws -> (SoraDesk, ConnectionID) {
    var desk = SoraDesk(
      SignalingConfiguration(protocolName: "sora", urls: ["wss://sora.example/signaling"]))
    desk.open()
    #expect(
      desk.link.handle(TransportID(1), .opened(subprotocol: nil)) == .opened(subprotocol: nil))
    let connection = desk.connect(.both, ICEServers())
    if hasChannel {
      let channel = try #require(SoraChannel(.members(("label", .text("stats")))))
      desk.channels.begin([channel])
    }
    _ = outputs(&desk)
    return (desk, connection)
  }

  private func outputs(_ desk: inout SoraDesk) -> [SignalingOutput] {
    var outbox = Outbox<SignalingOutput>()
    desk.end(into: &outbox)
    return outbox.drain()
  }

  @Test func aRequestOnTheSocketIsAnsweredThere() throws {
    var (desk, connection) = try desk()
    var statistics = SoraStatistics()
    statistics.ask(connection, isOnChannel: false, &desk)
    #expect(outputs(&desk) == [.connection(connection, .getStats(ActionID(1)))])
    statistics.answer(ActionID(1), #"[{"id":"a"}]"#, &desk)
    #expect(
      outputs(&desk)
        == [
          .transport(TransportID(1), .send(.text(#"{"type":"pong","stats":[{"id":"a"}]}"#)))
        ])
  }

  @Test func aRequestOnTheChannelIsAnsweredThere() throws {
    var (desk, connection) = try desk(hasChannel: true)
    var statistics = SoraStatistics()
    statistics.ask(connection, isOnChannel: true, &desk)
    _ = outputs(&desk)
    statistics.answer(ActionID(1), "[]", &desk)
    let text = #"{"type":"stats","reports":[]}"#
    #expect(
      outputs(&desk)
        == [.connection(connection, .sendOnChannel(label: "stats", .text(text)))])
  }

  @Test func aRepeatedRequestWaitsForTheFirstAnswer() throws {
    var (desk, connection) = try desk(hasChannel: true)
    var statistics = SoraStatistics()
    for _ in 0..<3 { statistics.ask(connection, isOnChannel: false, &desk) }
    #expect(outputs(&desk).count == 1)
    // A request on the data channel waits only for an earlier request on the data channel.
    for _ in 0..<3 { statistics.ask(connection, isOnChannel: true, &desk) }
    #expect(outputs(&desk) == [.connection(connection, .getStats(ActionID(2)))])
    statistics.answer(ActionID(1), "[]", &desk)
    _ = outputs(&desk)
    statistics.ask(connection, isOnChannel: true, &desk)
    #expect(outputs(&desk).isEmpty)
    statistics.ask(connection, isOnChannel: false, &desk)
    #expect(outputs(&desk) == [.connection(connection, .getStats(ActionID(3)))])
  }

  @Test func anUnexpectedAnswerIsDropped() throws {
    var (desk, connection) = try desk()
    var statistics = SoraStatistics()
    statistics.answer(ActionID(1), "[]", &desk)
    statistics.ask(connection, isOnChannel: false, &desk)
    _ = outputs(&desk)
    statistics.forget()
    statistics.answer(ActionID(1), "[]", &desk)
    #expect(outputs(&desk).isEmpty)
    // Request numbers continue, so that a late answer is not mistaken for the answer to a later
    // request.
    statistics.ask(connection, isOnChannel: false, &desk)
    #expect(outputs(&desk) == [.connection(connection, .getStats(ActionID(2)))])
  }

  @Test func unreadableStatisticsAreDropped() throws {
    var (desk, connection) = try desk()
    var statistics = SoraStatistics()
    statistics.ask(connection, isOnChannel: false, &desk)
    _ = outputs(&desk)
    statistics.answer(ActionID(1), "{not json", &desk)
    #expect(
      outputs(&desk)
        == [.transport(TransportID(1), .send(.text(#"{"type":"pong","stats":[]}"#)))])
  }
}
