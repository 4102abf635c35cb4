import Foundation
import Queries
import Replay
import Stats
public import Tape
public import Wire

/// The error for a take that cannot be opened, read, replayed or exported: one sentence that states
/// the file, the place and the reason.
public typealias TakeError = TapeError

/// A recorded session: one SQLite file that can be read, queried, replayed and exported.
///
///     let take = try Take.open("call.take")
///     for change in try take.rows(of: StateChange.self).all() {
///       print(change.at.nanoseconds, change.machine, change.to)
///     }
///     let result = try await take.replay()
///
/// Opening reads only the metadata; everything else is read on demand. The take may still be
/// growing: each reader sees the file as it was when the reader was created.
public struct Take: Sendable {
  /// A peer connection in the take.
  public struct Peer: Hashable, Sendable {
    /// The peer's number, from 1.
    public var number: UInt32
    /// The peer's display name.
    public var label: String
    /// The peer's role in the session, as the recorder described it; `observed` for an observed
    /// peer.
    public var role: String
  }

  /// The file's path.
  public let path: String
  /// The label that the recorder passed.
  public let label: String
  /// The Unix time, in nanoseconds, at which the take began.
  public let startUnixNanoseconds: Int64
  /// The schema's format number.
  public let format: Int
  /// The version of Retake that made the recording.
  public let toolVersion: String
  /// Whether the take contains unencrypted frames and messages.
  public let keepsMedia: Bool
  /// The peer connections, in number order.
  public let peers: [Peer]
  /// How many steps the take had when it was opened.
  public let stepCount: Int
  /// The time of the take's last step, which is the session's length.
  public let duration: Interval
  /// Whether the recording ended properly; false while it is running, and after the recorder was
  /// killed.
  public let isComplete: Bool

  /// Opens a take.
  /// - Throws: `TakeError` if there is no such file, or if it is not a take that this version can
  ///   read.
  public static func open(_ path: String) throws(TakeError) -> Take { try Take(path) }

  private init(_ path: String) throws(TakeError) {
    self.path = path
    let connection = try TakeFile.open(path)
    let header = try TakeHeader.read(from: connection, path: path)
    label = header.label
    startUnixNanoseconds = header.startUnixNanoseconds
    format = Int(header.format)
    toolVersion = header.toolVersion
    keepsMedia = header.keepsMedia
    let reader = try TapeReader(path: path)
    isComplete = reader.ending != nil
    stepCount = try reader.stepCount()
    duration = try (reader.lastTime() ?? .zero) - .zero
    do throws(SQLiteError) {
      let rows = try connection.prepare("SELECT peer, label, role FROM peer ORDER BY peer")
      var found: [Peer] = []
      while try rows.step() {
        let (number, label, role) = rows.values(UInt32.self, String.self, String.self)
        found.append(Peer(number: number, label: label, role: role))
      }
      peers = found
    } catch {
      throw TakeError(path: path, place: "peer", error)
    }
  }

  /// Runs a long computation on a Dispatch thread, not on the cooperative pool.
  func computing<Value: Sendable>(
    _ body: @escaping @Sendable () throws(TakeError) -> Value
  ) async throws(TakeError) -> Value {
    let result: Result<Value, TakeError> = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        do throws(TakeError) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }
}

/// Reads a take's elements sequentially, in constant memory.
///
///     let steps = try take.steps()
///     while let step = try steps.next() { print(step.summary) }
public final class TakeReader<Element> {
  private let read: () throws(TakeError) -> Element?

  init(_ read: @escaping () throws(TakeError) -> Element?) { self.read = read }

  /// Returns the next element; nil after the last.
  /// - Throws: `TakeError` if the file cannot be read or contains something unexpected.
  public func next() throws(TakeError) -> Element? { try read() }

  /// Reads all remaining elements.
  public func all() throws(TakeError) -> [Element] {
    var elements: [Element] = []
    while let element = try read() { elements.append(element) }
    return elements
  }
}

// MARK: - Steps

/// One step: an input to one of the take's machines at an instant, with all its outputs.
public struct TakeStep: Hashable, Sendable {
  /// The step's number, counted from 1 across all machines in the take.
  public var number: Int
  /// The step's time since the take began.
  public var at: Instant
  /// The number of the machine that received the input.
  public var actor: UInt32
  /// The number of the machine's peer connection; nil if it has none.
  public var peer: UInt32?
  /// A description of the input.
  public var summary: String
  /// The input's rows in the take's tables.
  public var input: [TakeRow]
  /// The outputs' rows, in order.
  public var outputs: [TakeRow]
  /// When the machine's next timer was due after the step; nil if no timer was running.
  public var deadline: Instant?
  /// How many random bytes the machine had drawn by the end of the step.
  public var entropyDrawn: UInt64
}

extension Take {
  /// Returns the steps of all machines in order; reading them verifies the digest chain.
  /// - Throws: `TakeError`; the reader throws it at the first step that was modified after
  ///   recording.
  public func steps() throws(TakeError) -> TakeReader<TakeStep> {
    let source = StepSource(path, try TapeReader(path: path))
    return TakeReader { () throws(TakeError) in try source.next() }
  }
}

/// Reads steps from the tape's chunks.
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
  /// Converts a column's value; restores unsigned numbers that are stored as signed ones.
  fileprivate init(_ value: Value, of kind: ColumnKind) {
    switch (kind, value) {
    case (.wire(let bits), .integer(let number)) where bits < 64:
      self = .integer(number & (1 << Int64(bits) - 1))
    case (.markerAndPayloadType, .integer(let number)): self = .integer(number & 0xff)
    default: self.init(value)
    }
  }
}
