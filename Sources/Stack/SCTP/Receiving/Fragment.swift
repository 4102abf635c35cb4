/// A part of a message that came in one DATA or I-DATA chunk.
struct Fragment {
  /// The place among the fragments of its stream: the next fragment of a message has the next key.
  ///
  /// For DATA the extended transmission number; for I-DATA message identifier and place in it.
  var key: Int64
  /// The stream's number of the message: sequence number or message identifier, extended.
  var message: Int64
  var flags: DataFlags
  var payloadProtocol: PayloadProtocol
  var bytes: [UInt8]
}

/// A message put together from its fragments.
struct ReceivedMessage {
  var stream: UInt16
  var payloadProtocol: PayloadProtocol
  var bytes: [UInt8]
}
