import Room

extension SignalingFrame {
  /// Its length on the wire without the heads of frames.
  var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// Why a WebSocket is closed, as a number (RFC 6455 section 7.4 and the registry of IANA).
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let normal = WebSocketCloseCode(rawValue: 1000)
  package static let goingAway = WebSocketCloseCode(rawValue: 1001)
  package static let protocolError = WebSocketCloseCode(rawValue: 1002)
  package static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
  /// The other side gave none; never on the wire.
  package static let noStatus = WebSocketCloseCode(rawValue: 1005)
  /// The connection ended without a close frame; never on the wire.
  package static let abnormal = WebSocketCloseCode(rawValue: 1006)
  package static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
  package static let policyViolation = WebSocketCloseCode(rawValue: 1008)
  package static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
  package static let internalError = WebSocketCloseCode(rawValue: 1011)
  package static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

  /// Whether a close frame may carry the code.
  var isSendable: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}

/// How a WebSocket ended.
package struct WebSocketClosure: Hashable, Sendable {
  /// The code that the side gave which closed first.
  package var code: WebSocketCloseCode
  /// Its words, or what broke the connection.
  package var reason: String
  /// Whether both sides said that they close.
  package var isClean: Bool

  package init(_ code: WebSocketCloseCode, _ reason: String = "", isClean: Bool) {
    self.code = code
    self.reason = reason
    self.isClean = isClean
  }
}

/// What a WebSocket takes, and how long it waits.
package struct WebSocketLimits: Hashable, Sendable {
  /// The longest message in bytes, in one frame or many; longer ones end the connection.
  package var messageBytes = 1 << 20
  /// How many bytes of messages wait for who receives them, before no more are read.
  package var unreadBytes = 1 << 20
  /// How many messages wait likewise.
  package var unreadMessages = 256
  /// How many bytes wait for the other side to read; more end the connection.
  package var unsentBytes = 4 << 20
  /// How long the handshake may take, in seconds.
  package var handshakeSeconds: Int64 = 10
  /// After how much silence of the other side it is asked for a sign of life, in seconds; as much
  /// silence again ends the connection.
  package var pingSeconds: Int64 = 20
  /// How long the other side may take to agree to a close, in seconds.
  package var closeSeconds: Int64 = 5

  package init() {}
}

/// Why there is no WebSocket or a message was not sent, in one sentence.
package struct WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: String
  /// The status of the response that refused a connection; nil for all other reasons.
  package var status: Int?

  package init(reason: String, status: Int? = nil) {
    self.reason = reason
    self.status = status
  }

  package var description: String { reason }
}
