import Foundation
import Peer
import Room
import Signaling
import Testing
import Wire

@testable import RoomClient

/// Tests participants that act unlike any real client, over real sockets.
@Suite(.timeLimit(.minutes(10))) struct HostileGuestTests {
  /// A client that sends raw protocol messages.
  private final class Guest: Sendable {
    let socket: WebSocket

    init(_ meeting: Meeting) async throws {
      socket = try await WebSocket.connect(
        to: "ws://127.0.0.1:\(meeting.server.port)/rooms", subprotocols: RoomHost.subprotocols)
    }

    func say(_ request: RoomRequest) async throws {
      try await socket.send(.text(request.text))
    }

    /// Returns the first notice for which `wanted` returns a value; nil if the connection ends.
    func hear<Value>(_ wanted: (RoomNotice) -> Value?) async throws -> Value? {
      while case .text(let text)? = await socket.receive() {
        if let found = wanted(try RoomNotice(parsing: text)) { return found }
      }
      return nil
    }

    /// Joins the room; returns its participants and the session, or nil if the connection ends.
    func join(_ id: String, resumes: String? = nil) async throws -> (
      members: [RoomMember], session: String
    )? {
      try await say(.join(RoomJoin(room: "r", participant: id), resumes: resumes))
      return try await hear { notice in
        guard case .joined(_, let session, _, let members, _) = notice else { return nil }
        return (members, session)
      }
    }

    /// Returns a request's result; nil if the connection ends.
    func result(_ number: UInt32) async throws -> RoomFault?? {
      try await hear { notice -> RoomFault?? in
        guard case .result(number, let fault) = notice else { return nil }
        return .some(fault)
      }
    }
  }

  @Test func messagesOfAParticipantThatLeftAreIgnored() async throws {
    let meeting = try await Meeting()
    let (ann, ben) = (try await Guest(meeting), try await Guest(meeting))
    _ = try await ann.join("ann")
    _ = try await ben.join("ben")
    try await ann.say(.leave)
    // The client sends further requests after leaving, and does not close the connection.
    try? await ann.say(.message(request: 1, UserMessage(text: "boo")))
    try? await ann.say(.message(request: 2, UserMessage(targets: ["ben"], text: "boo")))
    try? await ann.say(
      .offer(
        request: 3, sdp: "v=0\r\n", media: [RoomLocalMedia(mid: "0", local: 1, kind: .audio)]))
    #expect(try await ann.hear { if case .ended = $0 { true } else { nil } } == true)
    // The server answers none of these requests and closes the connection.
    #expect(try await ann.hear { _ in true } == nil)
    try await ben.say(.message(request: 9, UserMessage(targets: ["ben"], text: "own")))
    let heard = try await ben.hear { notice -> String? in
      if case .message(let message) = notice { message.text } else { nil }
    }
    #expect(heard == "own")
    let cid = try await Guest(meeting)
    #expect(try await cid.join("cid")?.members.map(\.id) == ["ben"])
    try await meeting.end()
  }

  @Test func aRefusedParticipantIsNotCounted() async throws {
    let meeting = try await Meeting()
    let (first, second) = (try await Guest(meeting), try await Guest(meeting))
    _ = try await first.join("ann")
    let refused = try await second.join("ann")
    #expect(refused == nil)
    #expect(await meeting.host.guestCount == 1)
    try await meeting.end()
  }

  @Test func aSessionUsesOneConnection() async throws {
    let meeting = try await Meeting()
    let (first, second) = (try await Guest(meeting), try await Guest(meeting))
    let session = try #require(try await first.join("ann")?.session)
    #expect(try await second.join("ann", resumes: session)?.session == session)
    #expect(try await first.hear { _ in true } == nil, "the former connection ends")
    try await second.say(.message(request: 4, UserMessage(targets: ["ann"], text: "own")))
    #expect(try await second.hear { if case .message = $0 { true } else { nil } } == true)
    try await meeting.end()
  }

  /// A message that names one participant 256 times is delivered once.
  @Test func namingAParticipantOftenEndsNoConnection() async throws {
    let meeting = try await Meeting()
    let (ann, ben) = (try await Guest(meeting), try await Guest(meeting))
    _ = try await ann.join("ann")
    _ = try await ben.join("ben")
    let text = String(repeating: "x", count: 60_000)
    let message = UserMessage(targets: Array(repeating: "ben", count: 256), text: text)
    for number in 1...8 { try await ann.say(.message(request: UInt32(number), message)) }
    // Ben starts reading only now.
    for _ in 1...8 {
      let told = try await ben.hear { notice -> UserMessage? in
        if case .message(let message) = notice { message } else { nil }
      }
      #expect(told?.targets == ["ben"])
    }
    #expect(ben.socket.closure == nil)
    for number in 1...8 { #expect(try await ann.result(UInt32(number)) == .some(.none)) }
    try await meeting.end()
  }

  /// A participant that reads nothing loses messages; the sender is informed and slowed down, and
  /// no third participant waits.
  @Test func aParticipantThatReadsNothingLosesMessagesAndBlocksNone() async throws {
    let meeting = try await Meeting(bytesPerSecond: 16 << 20)
    let (ann, ben) = (try await Guest(meeting), try await Guest(meeting))
    _ = try await ann.join("ann")
    _ = try await ben.join("ben")
    let text = String(repeating: "x", count: 60_000)
    var missed = false
    let begin = ContinuousClock.now
    for number in 1...200 where !missed {
      try await ann.say(
        .message(request: UInt32(number), UserMessage(targets: ["ben"], text: text)))
      guard let fault = try await ann.result(UInt32(number)) else { break }
      missed = fault?.code == .messageFailed
    }
    #expect(missed)
    #expect(ContinuousClock.now - begin < .seconds(120))
    #expect(ann.socket.closure == nil && ben.socket.closure == nil)
    try await meeting.end()
  }
}
