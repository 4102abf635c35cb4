import Room

extension SignalingFrame {
  /// Its length on the wire without frame headers.
  var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// The close code of a WebSocket (RFC 6455 section 7.4 and the IANA registry).
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let normal = WebSocketCloseCode(rawValue: 1000)
  package static let goingAway = WebSocketCloseCode(rawValue: 1001)
  package static let protocolError = WebSocketCloseCode(rawValue: 1002)
  package static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
  /// The peer stated none; never on the wire.
  package static let noStatus = WebSocketCloseCode(rawValue: 1005)
  /// The connection ended without a close frame; never on the wire.
  package static let abnormal = WebSocketCloseCode(rawValue: 1006)
  package static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
  package static let policyViolation = WebSocketCloseCode(rawValue: 1008)
  package static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
  package static let internalError = WebSocketCloseCode(rawValue: 1011)
  package static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

  /// Whether a close frame may contain the code.
  var isSendable: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}

/// How a WebSocket ended.
package struct WebSocketClosure: Hashable, Sendable {
  /// The code of the side that closed first.
  package var code: WebSocketCloseCode
  /// Its reason, or what broke the connection.
  package var reason: String
  /// Whether both sides sent close frames.
  package var isClean: Bool

  package init(_ code: WebSocketCloseCode, _ reason: String = "", isClean: Bool) {
    self.code = code
    self.reason = reason
    self.isClean = isClean
  }
}

/// The limits of a WebSocket.
package struct WebSocketLimits: Hashable, Sendable {
  /// The longest message in bytes, in any number of frames; longer ones end the connection.
  package var messageBytes = 1 << 20
  /// The most bytes of unread messages before reading stops.
  package var unreadBytes = 1 << 20
  /// The most unread messages before reading stops.
  package var unreadMessages = 256
  /// The most unsent bytes; more end the connection.
  package var unsentBytes = 4 << 20
  /// The time limit of the handshake in seconds.
  package var handshakeSeconds: Int64 = 10
  /// After this much silence of the peer, in seconds, a ping is sent; after as much again the
  /// connection ends.
  package var pingSeconds: Int64 = 20
  /// How long the peer may take to agree to a close, in seconds.
  package var closeSeconds: Int64 = 5

  package init() {}
}

/// Why a WebSocket could not be opened or a message not sent, as a sentence.
package struct WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: String
  /// The status of the response that refused a connection; nil for other reasons.
  package var status: Int?

  package init(reason: String, status: Int? = nil) {
    self.reason = reason
    self.status = status
  }

  package var description: String { reason }
}
