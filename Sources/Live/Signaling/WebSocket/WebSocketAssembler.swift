import NIOCore
import NIOWebSocket
import Room

/// Assembles messages from frames, and detects violations of RFC 6455.
struct WebSocketAssembler {
  /// The result of a frame.
  enum Outcome: Equatable {
    /// A part of a message, or an unsolicited pong.
    case nothing
    case message(SignalingFrame)
    case ping(ByteBuffer)
    case pong
    case close(WebSocketCloseCode, String)
    case violation(WebSocketCloseCode, String)
  }

  private enum Kind { case text, binary }

  /// Whether frames must be masked, as those of clients (RFC 6455 section 5.1).
  private let expectsMask: Bool
  private let messageMaximum: Int
  private var kind: Kind?
  private var collected = ByteBuffer()

  init(expectsMask: Bool, messageMaximum: Int) {
    self.expectsMask = expectsMask
    self.messageMaximum = messageMaximum
  }

  mutating func receive(_ frame: WebSocketFrame) -> Outcome {
    guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
      return .violation(.protocolError, "a frame has bits of an extension that was not agreed on")
    }
    guard (frame.maskKey != nil) == expectsMask else {
      return .violation(
        .protocolError,
        expectsMask ? "a frame of a client is not masked" : "a frame of a server is masked")
    }
    var data = frame.data
    if let key = frame.maskKey { data.webSocketUnmask(key) }
    switch frame.opcode {
    case .text: return begin(.text, data, isLast: frame.fin)
    case .binary: return begin(.binary, data, isLast: frame.fin)
    case .continuation: return proceed(data, isLast: frame.fin)
    case .ping: return .ping(data)
    case .pong: return .pong
    case .connectionClose: return close(data)
    default: return .violation(.protocolError, "a frame has an unknown opcode")
    }
  }

  private mutating func begin(_ kind: Kind, _ data: ByteBuffer, isLast: Bool) -> Outcome {
    guard self.kind == nil else {
      return .violation(.protocolError, "a message begins inside of another")
    }
    if isLast { return message(kind, data) }
    self.kind = kind
    collected = data
    return .nothing
  }

  private mutating func proceed(_ data: ByteBuffer, isLast: Bool) -> Outcome {
    guard let kind else {
      return .violation(.protocolError, "a message is continued that never began")
    }
    guard collected.readableBytes + data.readableBytes <= messageMaximum else {
      return .violation(.messageTooBig, "a message is longer than \(messageMaximum) bytes")
    }
    collected.writeImmutableBuffer(data)
    guard isLast else { return .nothing }
    self.kind = nil
    let whole = collected
    collected = ByteBuffer()
    return message(kind, whole)
  }

  private func message(_ kind: Kind, _ data: ByteBuffer) -> Outcome {
    guard data.readableBytes <= messageMaximum else {
      return .violation(.messageTooBig, "a message is longer than \(messageMaximum) bytes")
    }
    guard kind == .text else { return .message(.binary(Array(data.readableBytesView))) }
    guard let text = String(validating: data.readableBytesView, as: UTF8.self) else {
      return .violation(.invalidPayload, "a text is not UTF-8")
    }
    return .message(.text(text))
  }

  private func close(_ data: ByteBuffer) -> Outcome {
    var data = data
    guard data.readableBytes > 0 else { return .close(.noStatus, "") }
    guard let number = data.readInteger(as: UInt16.self) else {
      return .violation(.protocolError, "a close frame has half a code")
    }
    let code = WebSocketCloseCode(rawValue: number)
    guard code.isSendable else {
      return .violation(.protocolError, "a close frame has the code \(number)")
    }
    guard let reason = String(validating: data.readableBytesView, as: UTF8.self) else {
      return .violation(.invalidPayload, "the reason of a close is not UTF-8")
    }
    return .close(code, reason)
  }
}
