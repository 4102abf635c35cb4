import Wire

/// A DATA or I-DATA chunk that has a number and that the peer has not acknowledged cumulatively.
struct SentChunk {
  enum Fate {
    /// On its way.
    case outstanding
    /// Deemed lost: to be sent again.
    case lost
    /// Acknowledged in a gap report.
    case acknowledged
    /// Abandoned (RFC 3758).
    case abandoned
  }

  /// The whole message, which its chunks share.
  var bytes: [UInt8]
  var offset: Int
  var count: Int
  /// What the chunk counts in the windows: payload and header.
  var size: Int
  /// The message among all messages of the association.
  var message: UInt64
  /// The place of the channel, where the rest of the message may wait.
  var channel: Int
  var stream: UInt16
  var flags: DataFlags
  var payloadProtocol: PayloadProtocol
  /// The stream sequence number, or the message identifier when messages interleave.
  var order: UInt32
  /// The place of the chunk in its message.
  var part: UInt32
  var limits: MessageLimits
  var fate = Fate.outstanding
  /// How often the chunk was sent.
  var transmissions = 1
  /// How many acknowledgements reported later chunks but not this one.
  var strikes = 0
  /// Only chunks from this number on were sent after this one.
  var strikeFloor: UInt32
}

/// How long and how often a message is tried (RFC 3758 section 3.5, RFC 7496).
struct MessageLimits {
  /// When it is abandoned.
  var expiry: Instant?
  /// How often a chunk of it is sent again.
  var retransmissions: Int?

  /// Whether the message is never abandoned.
  var isReliable: Bool { expiry == nil && retransmissions == nil }

  /// Whether a chunk that was sent so often is abandoned instead of sent again.
  func isOver(transmissions: Int, at now: Instant) -> Bool {
    if let expiry, now >= expiry { return true }
    if let retransmissions, transmissions > retransmissions { return true }
    return false
  }
}
