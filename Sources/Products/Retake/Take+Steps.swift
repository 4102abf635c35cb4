import Replay
public import Tape
public import Wire

/// One step: an input to one of the take's machines at an instant, and all its outputs.
public struct TakeStep: Hashable, Sendable {
  /// Its number, from 1, over all machines of the take.
  public var number: Int
  /// When, since the take began.
  public var at: Instant
  /// The number of the machine.
  public var actor: UInt32
  /// The number of the peer connection that the machine belongs to; nil if there is none.
  public var peer: UInt32?
  /// A description of the input.
  public var summary: String
  /// The rows of the input in the take's tables.
  public var input: [TakeRow]
  /// The rows of the outputs, in order.
  public var outputs: [TakeRow]
  /// When the machine's next timer was due afterwards; nil for none.
  public var deadline: Instant?
  /// How many random bytes the machine had drawn by then.
  public var entropyDrawn: UInt64
}

extension Take {
  /// The steps of all machines in order; the digest chain is verified on the way.
  /// - Throws: `TakeError`; the reader throws it at the first step that was modified after the
  ///   recording.
  public func steps() throws(TakeError) -> TakeReader<TakeStep> {
    let source = StepSource(path, try TapeReader(path: path))
    return TakeReader { () throws(TakeError) in try source.next() }
  }
}

/// Steps read from the chunks of the tape.
private final class StepSource {
  private let path: String
  private let reader: TapeReader
  private var chunk = TapeChunk()
  private var position = 0

  init(_ path: String, _ reader: TapeReader) {
    self.path = path
    self.reader = reader
  }

  func next() throws(TakeError) -> TakeStep? {
    if position == chunk.steps.count {
      guard let following = try reader.chunk() else { return nil }
      chunk = following
      position = 0
    }
    defer { position += 1 }
    let step = chunk.steps[position]
    return TakeStep(
      number: step.head.number, at: step.head.at, actor: step.head.actor, peer: step.peer,
      summary: InputText(step).title, input: step.inputRows.map(row),
      outputs: step.outputRows.map(row), deadline: step.head.deadline,
      entropyDrawn: step.head.entropyDrawn)
  }

  private func row(_ row: Int) -> TakeRow {
    let table = chunk.rows.table(row)
    let values = chunk.rows.row(row)
    let columns = table.columns.prefix(values.count)
    return TakeRow(
      path: path, table: table.name, columns: columns.map(\.name),
      values: zip(columns, values).map { TakeValue($1, of: $0.kind) })
  }
}

extension TakeValue {
  /// Converts the value of a column; unsigned numbers that are stored as signed ones are restored.
  fileprivate init(_ value: Value, of kind: ColumnKind) {
    switch (kind, value) {
    case (.wire(let bits), .integer(let number)) where bits < 64:
      self = .integer(number & (1 << Int64(bits) - 1))
    case (.markerAndPayloadType, .integer(let number)): self = .integer(number & 0xff)
    default: self.init(value)
    }
  }
}
