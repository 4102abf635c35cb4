package import Wire

/// Joins the takes of a call's two ends into one take with two peers and a common clock.
///
/// Each peer's own times must not change, or the peer would not replay identically. The rows
/// therefore state the added offset, and a replay subtracts it.
package struct JointTake {
  /// A take or one of its peers, and the offset from its times to the common clock.
  package struct End: Sendable {
    package var path: String
    package var peer: UInt32?
    package var added: Interval

    package init(path: String, peer: UInt32?, added: Interval) {
      self.path = path
      self.peer = peer
      self.added = added
    }
  }

  /// The size of the joint take, and what limits its replay.
  package struct Summary: Sendable, Codable {
    package var path: String
    package var steps: Int
    package var peers: Int
    /// The libraries that differ between the recordings; the second end replays exactly only with
    /// its own libraries.
    package var toolchainDifferences: [String]
  }

  private let sources: [Source]
  private let copy: TakeCopy
  private var numbers = RowNumbering()
  private var actors: [Key: UInt32] = [:]
  private var peers: [Key: UInt32] = [:]

  /// Identifies an actor or peer by its number and the index of its source.
  private struct Key: Hashable {
    var source: Int
    var number: UInt32
  }

  /// Joins the ends into a new file, which must not exist.
  package static func write(_ ends: [End], to path: String) throws(TapeError) -> Summary {
    var joint = try JointTake(ends, path)
    return try joint.run(path)
  }

  /// Throws an error if takes cannot be joined; the error says what to do instead.
  package static func check(_ paths: [String]) throws(TapeError) {
    var headers: [(path: String, header: TakeHeader)] = []
    for path in paths { headers.append((path, try TapeReader(path: path).header)) }
    try check(headers)
  }

  private static func check(_ takes: [(path: String, header: TakeHeader)]) throws(TapeError) {
    guard let first = takes.first else { return }
    func refusal(_ path: String, _ reason: String) -> TapeError {
      TapeError(path: path, place: "", reason: reason)
    }
    for (path, header) in takes {
      guard header.format >= Table.clock.since else {
        throw refusal(
          path,
          "it has format \(header.format), which has only one clock; recreate it with retake "
            + "upgrade")
      }
      guard header.format == first.header.format else {
        throw refusal(
          path,
          "it has format \(header.format), and \(first.path) has format \(first.header.format); "
            + "retake upgrade makes them alike")
      }
      guard header.revision == first.header.revision else {
        throw refusal(
          path,
          "it and \(first.path) were made by different revisions of the stack; retake upgrade "
            + "makes them alike")
      }
      guard header.keepsMedia == first.header.keepsMedia else {
        throw refusal(
          path,
          "only one of the two takes has its media; record both with or both without media to join "
            + "them")
      }
    }
  }

  private init(_ ends: [End], _ path: String) throws(TapeError) {
    // The joint take begins when the earlier of its ends begins.
    let earliest = ends.map(\.added).min() ?? .zero
    var sources: [Source] = []
    for end in ends {
      sources.append(try Source(end, added: Interval.zero - earliest + end.added))
    }
    self.sources = sources
    guard var header = sources.first?.reader.header else {
      throw TapeError(path: path, place: "", reason: "there is nothing to join")
    }
    try JointTake.check(sources.map { (path: $0.reader.path, header: $0.reader.header) })
    let labels = sources.map(\.reader.header.label).filter { !$0.isEmpty }
    header.label = labels.joined(separator: " and ")
    for toolchain in sources.map(\.reader.header.toolchain) { header.use(decodersOf: toolchain) }
    header.startUnixNanoseconds +|= earliest.nanoseconds -| (ends.first?.added.nanoseconds ?? 0)
    header.startText = utcText(unixNanoseconds: header.startUnixNanoseconds)
    copy = try TakeCopy(path: path, header: header)
  }

  private mutating func run(_ path: String) throws(TapeError) -> Summary {
    while let index = try nextSource() {
      guard let step = sources[index].dequeue() else { break }
      try append(step.step, step.rows, index)
    }
    try copy.finish(isComplete: sources.allSatisfy { $0.reader.ending != nil })
    let toolchains = sources.map(\.reader.header.toolchain)
    let differences = toolchains.dropFirst().flatMap { $0.differences(from: toolchains[0]) }
    return Summary(
      path: path, steps: copy.steps, peers: peers.count,
      toolchainDifferences: differences.map(\.part))
  }

  /// Returns the index of the source with the earliest next step; nil if all have ended.
  private func nextSource() throws(TapeError) -> Int? {
    var first: (index: Int, at: Instant)?
    for (index, source) in sources.enumerated() {
      guard let at = try source.next() else { continue }
      if at < first?.at ?? Instant(nanoseconds: .max) { first = (index, at) }
    }
    return first?.index
  }

  private mutating func append(_ step: TapeChunk.Step, _ rows: RowList, _ source: Int)
    throws(TapeError)
  {
    let added = sources[source].added
    let words = ActorWords(step, rows)
    let key = Key(source: source, number: step.head.actor)
    let actor = actors[key] ?? UInt32(actors.count + 1)
    actors[key] = actor
    if let peer = words.peer {
      peers[Key(source: source, number: peer)] = UInt32(peers.count + 1)
    }
    var head = step.head
    head.actor = actor
    head.at = head.at + added
    head.deadline = head.deadline.map { $0 + added }
    var moved = RowList()
    if head.kind == .genesis {
      let clock = words.clock + added
      if clock != .zero, let peer = words.peer.map({ Key(source: source, number: $0) }) {
        moved.append(
          ClockRow(
            peer: PeerNumber(number: peers[peer] ?? 0), at: head.at, added: clock.nanoseconds))
      }
    }
    for row in step.rows where rows.table(row) != .clock {
      let table = rows.table(row)
      var values = rows.row(row)
      for (column, definition) in table.columns.prefix(values.count).enumerated() {
        guard case .integer(let value) = values[column] else { continue }
        switch definition.kind {
        case .actor: values[column] = .number(actor)
        case .peer:
          let key = Key(source: source, number: UInt32(truncatingIfNeeded: value))
          values[column] = .number(peers[key] ?? 0)
        case .instant: values[column] = .integer(value +| added.nanoseconds)
        default: break
        }
      }
      moved.append(table, values)
    }
    let numbered = numbers.renumbered(moved, 0..<moved.count, source: source)
    try copy.append(head, numbered, 0..<numbered.count)
  }
}

/// Reads one end's steps in order.
private final class Source {
  let reader: TapeReader
  let added: Interval
  private let peer: UInt32?
  /// The selected peer's actor, whose number may differ from the peer's; nil before its genesis.
  private var actor: UInt32?
  private var chunk = TapeChunk()
  private var position = 0

  init(_ end: JointTake.End, added: Interval) throws(TapeError) {
    reader = try TapeReader(path: end.path)
    peer = end.peer
    self.added = added
  }

  /// Returns the time of the next step on the common clock; nil at the end.
  func next() throws(TapeError) -> Instant? {
    while true {
      while position < chunk.steps.count {
        let step = chunk.steps[position]
        if actor == nil, begins(step) { actor = step.head.actor }
        if peer == nil || step.head.actor == actor { return step.head.at + added }
        position += 1
      }
      guard let read = try reader.chunk() else { return nil }
      (chunk, position) = (read, 0)
    }
  }

  /// Returns whether a step is the genesis of the selected peer.
  private func begins(_ step: TapeChunk.Step) -> Bool {
    step.head.kind == .genesis
      && step.inputRows.contains { PeerRow(chunk.rows, $0)?.peer.number == peer }
  }

  /// Returns the next step and advances; nil if no step is loaded.
  func dequeue() -> (step: TapeChunk.Step, rows: RowList)? {
    guard position < chunk.steps.count else { return nil }
    defer { position += 1 }
    return (chunk.steps[position], chunk.rows)
  }
}
