import NIOCore
import NIOEmbedded
import NIOWebSocket
import Room
import Testing

@testable import Signaling

/// Tests one end of a WebSocket in virtual time, frame by frame.
struct WebSocketHandlerTests {
  /// Replaces the socket: counts reads, and holds written bytes.
  private final class Socket: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame
    var reads = 0
    var holds = false
    var held: [EventLoopPromise<Void>] = []

    func read(context: ChannelHandlerContext) { reads += 1 }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard holds, let promise else {
        context.write(data, promise: promise)
        return
      }
      held.append(promise)
    }
  }

  private struct End {
    let channel: EmbeddedChannel
    let inbox: WebSocketInbox
    let socket = Socket()

    init(_ limits: WebSocketLimits = WebSocketLimits(), isServer: Bool = false) throws {
      inbox = WebSocketInbox(limits)
      channel = EmbeddedChannel()
      try channel.pipeline.syncOperations.addHandlers([
        socket, WebSocketHandler(limits, isServer: isServer, inbox: inbox),
      ])
      try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
    }

    func receive(_ opcode: WebSocketOpcode, _ bytes: [UInt8] = []) throws {
      try channel.writeInbound(
        WebSocketFrame(fin: true, opcode: opcode, data: ByteBuffer(bytes: bytes)))
    }

    func sent() throws -> WebSocketFrame? { try channel.readOutbound(as: WebSocketFrame.self) }
    func wait(_ seconds: Int64) { channel.embeddedEventLoop.advanceTime(by: .seconds(seconds)) }
  }

  @Test func silenceIsPingedAndThenEndsTheConnection() throws {
    let end = try End()
    end.wait(20)
    #expect(try end.sent()?.opcode == .ping)
    try end.receive(.pong)
    end.wait(20)
    #expect(try end.sent()?.opcode == .ping)
    #expect(end.inbox.closure == nil)
    end.wait(20)
    #expect(end.inbox.closure?.code == .abnormal)
    #expect(
      end.inbox.closure?.reason == "the remote peer sent nothing for 20 s after a ping")
    #expect(!end.channel.isActive)
  }

  @Test func pingsAreAnsweredAndOnlyTheLastOneLater() throws {
    let end = try End()
    try end.receive(.ping, [1])
    let pong = try #require(try end.sent())
    #expect(pong.opcode == .pong && pong.data == ByteBuffer(bytes: [1]))
    end.channel.isWritable = false
    try end.receive(.ping, [2])
    try end.receive(.ping, [3])
    #expect(try end.sent() == nil)
    end.channel.isWritable = true
    end.channel.pipeline.fireChannelWritabilityChanged()
    #expect(try end.sent()?.data == ByteBuffer(bytes: [3]))
    #expect(try end.sent() == nil)
  }

  @Test func aPeerThatDoesNotCloseIsDisconnected() throws {
    let end = try End()
    end.channel.writeAndFlush(WebSocketCommand.close(.normal, "bye"), promise: nil)
    let close = try #require(try end.sent())
    #expect(close.opcode == .connectionClose)
    #expect(close.data == ByteBuffer(bytes: [3, 0xe8] + Array("bye".utf8)))
    // Frames after the close frame are not passed on.
    try end.receive(.text, [0x41])
    end.wait(4)
    #expect(end.inbox.closure == nil && end.channel.isActive)
    end.wait(1)
    #expect(end.inbox.closure == WebSocketClosure(.normal, "bye", isClean: false))
    #expect(!end.channel.isActive)
  }

  @Test func aCloseIsAnsweredWithItsCode() throws {
    let end = try End()
    try end.receive(.connectionClose, [0x0f, 0xa1] + Array("go".utf8))
    #expect(try end.sent()?.data == ByteBuffer(bytes: [0x0f, 0xa1]))
    #expect(
      end.inbox.closure == WebSocketClosure(.init(rawValue: 4001), "go", isClean: true))
    #expect(!end.channel.isActive)
  }

  @Test func aBrokenConnectionIsNotACleanEnd() throws {
    let end = try End()
    _ = try end.channel.finish()
    #expect(end.inbox.closure?.code == .abnormal)
    #expect(end.inbox.closure?.isClean == false)
  }

  @Test func nothingIsReadWhileTheInboxIsFull() async throws {
    var limits = WebSocketLimits()
    limits.unreadMessages = 4
    let end = try End(limits)
    for number in 0..<3 { try end.receive(.binary, [UInt8(number)]) }
    end.channel.read()
    #expect(end.socket.reads == 1)
    try end.receive(.binary, [3])
    end.channel.read()
    #expect(end.socket.reads == 1)
    // A silent connection does not count as dead while nothing is read from it.
    end.wait(100)
    #expect(end.inbox.closure == nil)
    for number in 0..<2 {
      let message = await end.inbox.next {
        end.channel.pipeline.syncOperations.triggerUserOutboundEvent(WebSocketRoom(), promise: nil)
      }
      #expect(message == .binary([UInt8(number)]))
    }
    #expect(end.socket.reads == 2)
  }

  @Test func longMessagesFillTheInboxToo() throws {
    var limits = WebSocketLimits()
    limits.unreadBytes = 100
    let end = try End(limits)
    try end.receive(.binary, [UInt8](repeating: 0, count: 100))
    end.channel.read()
    #expect(end.socket.reads == 0)
  }

  @Test func aPeerThatReadsNothingIsDisconnected() throws {
    var limits = WebSocketLimits()
    limits.unsentBytes = 100
    let end = try End(limits)
    end.socket.holds = true
    let long = WebSocketCommand.message(.text(String(repeating: "x", count: 60)))
    end.channel.writeAndFlush(long, promise: nil)
    for promise in end.socket.held { promise.succeed() }
    end.channel.writeAndFlush(long, promise: nil)
    #expect(end.inbox.closure == nil)
    let promise = end.channel.eventLoop.makePromise(of: Void.self)
    end.channel.writeAndFlush(long, promise: promise)
    #expect(throws: WebSocketError.self) { try promise.futureResult.wait() }
    #expect(
      end.inbox.closure?.reason == "the remote peer left more than 100 bytes unread")
    for promise in end.socket.held.dropFirst() { promise.succeed() }
  }

  @Test func aWaitForAMessageCanBeCancelled() async throws {
    let inbox = WebSocketInbox(WebSocketLimits())
    let waiting = Task { await inbox.next {} }
    waiting.cancel()
    #expect(await waiting.value == nil)
    inbox.put(.text("kept"))
    #expect(await inbox.next {} == .text("kept"))
  }

  // MARK: Frames

  private struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var frames: [(WebSocketOpcode, isLast: Bool, [UInt8])]
    var outcome: WebSocketAssembler.Outcome

    init(
      _ name: String, _ outcome: WebSocketAssembler.Outcome,
      _ frames: (WebSocketOpcode, isLast: Bool, [UInt8])...
    ) {
      testDescription = name
      self.frames = frames
      self.outcome = outcome
    }
  }

  private static let cases = [
    Case(
      "a message in parts", .message(.text("abc")), (.text, false, [0x61]),
      (.continuation, false, [0x62]), (.continuation, true, [0x63])),
    Case(
      "a control frame between parts", .message(.binary([1, 2])), (.binary, false, [1]),
      (.ping, true, []), (.continuation, true, [2])),
    // A character's bytes may be split between two frames (RFC 3629).
    Case(
      "half a letter", .message(.text("é")), (.text, false, [0xc3]),
      (.continuation, true, [0xa9])),
    Case("no UTF-8", .violation(.invalidPayload, "a text is not UTF-8"), (.text, true, [0xff])),
    Case(
      "nothing to continue",
      .violation(.protocolError, "a continuation frame has no message to continue"),
      (.continuation, true, [])),
    Case(
      "a message in a message", .violation(.protocolError, "a message begins inside another"),
      (.text, false, []), (.text, true, [])),
    Case(
      "too long in parts", .violation(.messageTooBig, "a message is longer than 8 bytes"),
      (.binary, false, [1, 2, 3, 4, 5]), (.continuation, true, [6, 7, 8, 9])),
    Case("no code", .close(.noStatus, ""), (.connectionClose, true, [])),
    Case(
      "half a code", .violation(.protocolError, "a close frame has an incomplete code"),
      (.connectionClose, true, [3])),
    Case(
      "a code that is never sent",
      .violation(.protocolError, "a close frame has the code 1005"),
      (.connectionClose, true, [3, 0xed])),
    Case(
      "an opcode of the future", .violation(.protocolError, "a frame has an unknown opcode"),
      (WebSocketOpcode(encodedWebSocketOpcode: 3) ?? .text, true, [])),
  ]

  @Test(arguments: cases) private func framesMakeMessages(_ row: Case) {
    var assembler = WebSocketAssembler(expectsMask: false, messageMaximum: 8)
    var outcome = WebSocketAssembler.Outcome.nothing
    for (opcode, isLast, bytes) in row.frames {
      outcome = assembler.receive(
        WebSocketFrame(fin: isLast, opcode: opcode, data: ByteBuffer(bytes: bytes)))
    }
    #expect(outcome == row.outcome)
  }

  @Test func extensionsThatWereNotNegotiatedAreRefused() {
    var assembler = WebSocketAssembler(expectsMask: false, messageMaximum: 8)
    let frame = WebSocketFrame(fin: true, rsv1: true, opcode: .text, data: ByteBuffer())
    guard case .violation(.protocolError, _) = assembler.receive(frame) else {
      Issue.record("a compressed frame was taken")
      return
    }
  }
}
