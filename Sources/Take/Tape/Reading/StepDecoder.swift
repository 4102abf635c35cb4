/// Makes steps of their heads and rows, each input by the decoder of its actor's kind.
struct StepDecoder {
  private let kinds: MachineKinds
  private let contents: ContentSource
  private var endpoints: EndpointDecoder
  /// Those of other kinds, once there is an actor of the kind.
  private var decoders: [MachineKind: any InputDecoder] = [:]
  private var actors = ByActor<Actor>()

  /// What the genesis of an actor says of it.
  private struct Actor {
    var kind = MachineKind.endpoint
    var peer: UInt32?
  }

  init(_ kinds: MachineKinds, _ contents: ContentSource) {
    self.kinds = kinds
    self.contents = contents
    endpoints = EndpointDecoder(contents)
  }

  /// Adds the step of a head and its rows, made where it stays; false when they do not fit each
  /// other.
  mutating func append(
    _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>,
    to steps: inout [TapeChunk.Step]
  ) -> Bool {
    guard let count = StepDecoder.inputRowCount(head, rows, range) else { return false }
    let actor = actor(of: head, rows, range)
    let inputRows = range.lowerBound..<range.lowerBound + count
    if actor.kind == .endpoint {
      guard let input = endpoints.peerInput(of: head, rows, inputRows) else { return false }
      steps.append(
        TapeChunk.Step(
          head: head, peer: actor.peer, input: input, rows: range, inputRowCount: count))
    } else {
      guard let input = input(actor.kind, head, rows, inputRows) else { return false }
      steps.append(
        TapeChunk.Step(
          head: head, peer: actor.peer, other: input, rows: range, inputRowCount: count))
    }
    return true
  }

  private mutating func input(
    _ kind: MachineKind, _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>
  ) -> (any RecordedInput)? {
    if decoders[kind] == nil { decoders[kind] = kinds.decoder(of: kind, contents) }
    guard decoders[kind] != nil else { return UnknownInput(stepKind: head.kind) }
    return decoders[kind]?.input(of: head, rows, range)
  }

  /// How many of a step's rows are its input's: one, after those that it refers to by number; nil
  /// when that one is missing.
  private static func inputRowCount(
    _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>
  ) -> Int? {
    if head.kind == .deadline { return 0 }
    for row in range {
      switch rows.table(row) {
      case .path, .content, .clock: continue
      default: return row - range.lowerBound + 1
      }
    }
    return nil
  }

  /// Which actor made a step: its genesis says so, and without a word it is an endpoint with the
  /// number of its peer.
  private mutating func actor(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> Actor
  {
    if head.kind == .genesis {
      var actor = Actor()
      for row in range {
        if let row = ActorRow(rows, row) { actor.kind = MachineKind(rawValue: row.kind) }
        if let row = PeerRow(rows, row) { actor.peer = row.peer.number }
      }
      actors[head.actor] = actor
    }
    return actors[head.actor] ?? Actor(peer: head.actor)
  }
}
