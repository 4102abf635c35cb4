import Wire

/// Requests to reset streams, in both directions (RFC 6525).
struct StreamResets {
  /// A request to reset the streams to the peer that waits for its answer.
  struct Request {
    var number: UInt32
    /// The last chunk sent when the request was made; it stays when the request is made again.
    var lastNumber: UInt32
    var streams: [UInt16]
  }

  /// A request of the peer that waits for data.
  struct Deferred {
    var number: UInt32
    var lastNumber: Int64
    /// The streams; none means all.
    var streams: [UInt16]
  }

  /// The number of the next request.
  var nextRequest: UInt32 = 0
  var pending: Request?
  /// Places of channels whose stream is to be reset once their data is acknowledged.
  var wanted: [Int] = []
  /// Streams on which the peer announced a channel that cannot be.
  var refused: [UInt16] = []

  /// The number that the peer's next request has.
  var expectedRequest: UInt32 = 0
  var lastResult = ResetResult.nothingToDo
  var deferred: Deferred?
}
