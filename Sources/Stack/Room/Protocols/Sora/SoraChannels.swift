import Wire

/// The data channels of a session, and whether signaling has moved to them.
struct SoraChannels: Sendable {
  /// When the WebSocket is closed after the first message on the data channel, if the server
  /// permits.
  private static let switchSeconds: Int64 = 10

  private var channels: [SoraChannel] = []
  /// Whether signaling uses data channels now.
  private(set) var hasSwitched = false
  /// Whether losing the WebSocket is permitted, and when it is closed.
  private var ignoresSocket = false
  private(set) var deadline: Instant?

  subscript(label: String) -> SoraChannel? { channels.first { $0.label == label } }

  /// Whether a session continues without its WebSocket.
  var outlivesSocket: Bool { hasSwitched && ignoresSocket }

  /// Sets the channels of a session.
  mutating func begin(_ channels: [SoraChannel]) { self.channels = channels }

  mutating func switchOver(ignoresSocket: Bool) {
    hasSwitched = true
    self.ignoresSocket = ignoresSocket
  }

  /// Records a message on the signaling channel.
  mutating func recordSignaling(at now: Instant) {
    guard ignoresSocket, deadline == nil else { return }
    deadline = now + .seconds(SoraChannels.switchSeconds)
  }

  /// Returns whether to close the WebSocket now.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    self.deadline = nil
    return true
  }

  mutating func end() { self = SoraChannels() }

  /// Converts an application's message for the channel of its type, or the first; nil if there is
  /// none.
  func outgoing(_ message: UserMessage) -> ConnectionRequest? {
    let wanted = message.type.hasPrefix("#") ? message.type : nil
    guard hasSwitched,
      let channel = channels.first(where: { $0.isOwn && (wanted ?? $0.label) == $0.label })
    else { return nil }
    let bytes = Array(message.text.utf8)
    return .sendOnChannel(
      label: channel.label, .binary(channel.isCompressed ? Zlib.compressed(bytes) : bytes))
  }
}

extension SoraChannel {
  /// Converts a received message; nil if it is not text.
  func message(_ bytes: [UInt8]) -> UserMessage? {
    var (sender, body) = ("", bytes[...])
    if carriesSender, bytes.count >= SoraChannel.senderLength {
      sender = String(decoding: bytes.prefix(SoraChannel.senderLength), as: UTF8.self)
      body = bytes.dropFirst(SoraChannel.senderLength)
    }
    return String(validating: body, as: UTF8.self).map {
      UserMessage(sender: sender, type: label, text: $0)
    }
  }
}
