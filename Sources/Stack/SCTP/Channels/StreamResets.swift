import Wire

/// The outcome of a parameter in a RE-CONFIG chunk.
enum ResetOutcome {
  case nothing
  case useless
  /// The peer requests more streams (RFC 6525 section 5.2.5).
  case addStreams(UInt16, request: UInt32)
  case respond(ControlChunk)
  /// The peer's streams are to be reset (all of them if the list is empty), after sending the
  /// response.
  case perform([UInt16], ControlChunk)
  /// The peer is still processing the local request, which is repeated later.
  case askLater
  /// The local request is complete: its streams were reset, or the peer refused.
  case done([UInt16])
}

/// Keeps the requests to reset streams in both directions, with their sequence numbers and
/// responses (RFC 6525 section 5, RFC 8831 section 6.7).
struct StreamResets {
  /// A request to reset outgoing streams, waiting for its response.
  private struct Request {
    var number: UInt32
    /// The number of the last chunk sent before the request was created; repeated requests keep
    /// this number.
    var lastNumber: UInt32
    var streams: [UInt16]
  }

  /// A request from the peer that waits for data sent before it.
  private struct Deferred {
    var number: UInt32
    var lastNumber: Int64
    /// The peer's streams to reset; all of them if the list is empty.
    var streams: [UInt16]
  }

  /// The places of channels whose stream is to be reset once their data is acknowledged.
  private(set) var wanted: [Int] = []
  /// The sequence number of the peer's next request.
  private(set) var expectedRequest: UInt32 = 0
  /// The sequence number of the next local request.
  private var nextRequest: UInt32 = 0
  private var pending: Request?
  /// Streams on which the peer announced invalid channels.
  private var refused: [UInt16] = []
  private var lastResult = ResetResult.nothingToDo
  private var deferred: Deferred?

  /// Numbers local requests, starting with the first chunk's number (RFC 6525 section 4.1).
  mutating func start(firstNumber: UInt32) { nextRequest = firstNumber }

  /// Expects the peer's requests to be numbered from its first chunk's number.
  mutating func establish(firstNumber: UInt32) { expectedRequest = firstNumber }

  // MARK: Local requests

  /// Whether a request is needed and none is pending.
  var mayAsk: Bool { pending == nil && !(wanted.isEmpty && refused.isEmpty) }

  var isPending: Bool { pending != nil }

  /// Records that a closing channel has sent everything and wants its stream reset.
  mutating func want(_ place: Int) { wanted.append(place) }

  /// Removes a channel that has ended and no longer needs a reset.
  mutating func forget(_ place: Int) { wanted.removeAll { $0 == place } }

  /// Records a stream on which the peer announced an invalid channel.
  mutating func refuse(_ stream: UInt16) {
    if refused.count < SCTPLimits.channels { refused.append(stream) }
  }

  /// Creates a request to reset streams, with as many of the refused streams as fit.
  ///
  /// - Parameters:
  ///   - most: how many streams fit into a request; 0 if the peer does not support resets.
  ///   - lastNumber: the number of the last chunk sent.
  /// - Returns: whether there is a request.
  mutating func ask(for streams: [UInt16], most: Int, lastNumber: UInt32) -> Bool {
    let asked = streams + refused.prefix(max(0, most - streams.count))
    refused = []
    guard !asked.isEmpty else { return false }
    pending = Request(number: nextRequest, lastNumber: lastNumber, streams: asked)
    nextRequest &+= 1
    return true
  }

  /// The pending request as a chunk (RFC 6525 section 4.1); nil if none is pending.
  var request: ControlChunk? {
    guard let pending else { return nil }
    var value = ByteWriter(capacity: 12 + 2 * pending.streams.count)
    value.uint32(pending.number)
    value.uint32(expectedRequest &- 1)
    value.uint32(pending.lastNumber)
    for stream in pending.streams { value.uint16(stream) }
    return Self.chunk(.outgoingResetRequest, value.bytes)
  }

  private mutating func receiveResponse(_ value: RawSpan) -> ResetOutcome {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32(), let word = try? reader.uint32() else {
      return .useless
    }
    guard let request = pending, request.number == sequence else { return .nothing }
    if ResetResult(rawValue: word) == .inProgress {
      // The request is repeated later under a new number, because some peers answer each number
      // only once.
      pending?.number = nextRequest
      nextRequest &+= 1
      return .askLater
    }
    // A peer that refuses once would refuse again; the channel then waits only for the peer's own
    // reset.
    pending = nil
    return .done(request.streams)
  }

  // MARK: Remote requests

  /// Handles a parameter in a RE-CONFIG chunk.
  mutating func receive(
    _ type: ParameterType, _ value: RawSpan, _ numbers: ReceivedNumbers
  ) -> ResetOutcome {
    switch type {
    case .outgoingResetRequest: receiveRequest(value, numbers)
    case .reconfigurationResponse: receiveResponse(value)
    case .incomingResetRequest, .associationResetRequest, .addOutgoingStreamsRequest,
      .addIncomingStreamsRequest:
      receiveOtherRequest(type, value)
    default: .useless
    }
  }

  /// Handles a request to add streams (RFC 6525 section 5.2.5); data channels need no other
  /// request.
  private mutating func receiveOtherRequest(
    _ type: ParameterType, _ value: RawSpan
  ) -> ResetOutcome {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32() else { return .useless }
    if let answer = answerUnlessNext(sequence) { return .respond(answer) }
    lastResult = .denied
    if type == .addOutgoingStreamsRequest, let more = try? reader.uint16() {
      return .addStreams(more, request: sequence)
    }
    return .respond(Self.response(sequence, .denied))
  }

  /// Creates the response to a request for more streams.
  mutating func answer(_ request: UInt32, isDone: Bool) -> ControlChunk {
    lastResult = isDone ? .performed : .denied
    return Self.response(request, lastResult)
  }

  /// Returns the response to a request with an unexpected number; a repeated request gets the
  /// earlier response again.
  ///
  /// For the expected number, returns nil and then expects the next number (RFC 6525
  /// section 5.2.1).
  private mutating func answerUnlessNext(_ sequence: UInt32) -> ControlChunk? {
    guard sequence == expectedRequest else {
      let isRepeated = sequence == expectedRequest &- 1
      return Self.response(sequence, isRepeated ? lastResult : .badSequenceNumber)
    }
    expectedRequest &+= 1
    return nil
  }

  private mutating func receiveRequest(
    _ value: RawSpan, _ numbers: ReceivedNumbers
  ) -> ResetOutcome {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32(), (try? reader.uint32()) != nil,
      let last = try? reader.uint32()
    else { return .useless }
    if let answer = answerUnlessNext(sequence) { return .respond(answer) }
    var streams: [UInt16] = []
    while let stream = try? reader.uint16() { streams.append(stream) }
    deferred = Deferred(number: sequence, lastNumber: numbers.extend(last), streams: streams)
    if let due = removeDeferred(numbers) { return due }
    // The final response follows once the data has arrived, whether or not the request is repeated.
    lastResult = .inProgress
    return .respond(Self.response(sequence, .inProgress))
  }

  /// Returns the peer's deferred request once all data it sent before the request has arrived; nil
  /// until then (RFC 6525 section 5.2.2).
  mutating func removeDeferred(_ numbers: ReceivedNumbers) -> ResetOutcome? {
    guard let request = deferred, numbers.cumulative >= request.lastNumber else { return nil }
    deferred = nil
    lastResult = .performed
    return .perform(request.streams, Self.response(request.number, .performed))
  }

  private static func response(_ sequence: UInt32, _ result: ResetResult) -> ControlChunk {
    var value = ByteWriter(capacity: 8)
    value.uint32(sequence)
    value.uint32(result.rawValue)
    return chunk(.reconfigurationResponse, value.bytes)
  }

  private static func chunk(_ type: ParameterType, _ value: [UInt8]) -> ControlChunk {
    var body = ByteWriter(capacity: value.count + 8)
    body.parameter(type.rawValue, value)
    return ControlChunk(type: .reconfiguration, body: body.bytes)
  }
}
