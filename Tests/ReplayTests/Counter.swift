import Tape
import Wire

/// A machine used only in these tests: it adds numbers, and sets a deadline until its limit is
/// reached.
final class Counter: RecordedMachine {
  enum Input: RecordedInput {
    case genesis(limit: Int)
    case add(Int)
    case deadline

    var stepKind: StepKind {
      switch self {
      case .genesis: .genesis
      case .add: StepKind(9)
      case .deadline: .deadline
      }
    }
    var byteCount: Int { 8 }
    var title: String { "\(self)" }

    func write(to transcript: inout Transcript) {
      switch self {
      case .genesis(let limit):
        transcript.addActor(Counter.machineKind, configuration: "\(limit)", seed: [7])
      case .add(let number):
        var row = CallRequestRow.blank
        (row.name, row.arguments) = ("add", "\(number)")
        transcript.add(row)
      case .deadline: break
      }
    }
  }

  enum Output: RecordedOutput {
    case total(Int)
    case rang

    var byteCount: Int { 8 }

    func write(to transcript: inout Transcript) {
      switch self {
      case .total(let total):
        var row = EventRow.blank
        (row.type, row.detail) = ("total", "{\"total\":\(total)}")
        transcript.add(row)
      case .rang:
        transcript.addCoverage(
          from: .zero, to: transcript.at, what: "numbers", reason: "nobody said any")
      }
    }
  }

  struct Decoder: InputDecoder {
    mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
      -> (any RecordedInput)?
    {
      if head.kind == .deadline { return Input.deadline }
      let column = head.kind == .genesis ? "configuration" : "arguments"
      guard let row = range.last, case .text(let text) = rows[row, column: column],
        let number = Int(text)
      else { return nil }
      return head.kind == .genesis ? Input.genesis(limit: number) : Input.add(number)
    }
  }

  struct Snapshot: MachineSnapshot {
    var total: Int
  }

  static let machineKind = MachineKind(rawValue: 200)
  static func decoder(_ contents: ContentSource) -> Decoder { Decoder() }

  /// What the counter adds in excess of its input, so that it differs from the recorded counter.
  private let error: Int
  private var total = 0
  private var limit = 0
  private(set) var deadline: Instant?
  private(set) var entropyDrawn: UInt64 = 0
  var machineSnapshot: (any MachineSnapshot)? { Snapshot(total: total) }

  init(error: Int = 0) { self.error = error }

  func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    switch input {
    case .genesis(let limit): self.limit = limit
    case .add(let number):
      total += number + error
      outbox.append(.total(total))
      deadline = total < limit ? now + .seconds(1) : nil
    case .deadline:
      deadline = nil
      outbox.append(.rang)
    }
  }

  /// Returns the kinds of machines, including this one.
  static func kinds(error: Int = 0) -> MachineKinds {
    var kinds = MachineKinds()
    kinds.add(Counter.self, deadline: .deadline) { Counter(error: error) }
    return kinds
  }
}

/// Drives counters live and records their steps; one counter's output can be another's input.
final class CounterDriver {
  let writer: TapeWriter
  private var counters: [(actor: UInt32, machine: Counter)] = []
  private(set) var now = Instant.zero

  init(_ writer: TapeWriter) { self.writer = writer }

  /// Adds a counter and returns its index, which `step` needs.
  func add(_ label: String, limit: Int) -> Int {
    counters.append((writer.addActor(Counter.machineKind, label: label), Counter()))
    _ = step(counters.count - 1, .genesis(limit: limit))
    return counters.count - 1
  }

  /// Applies an input 10 ms after the previous one, records the step, and returns the reported
  /// totals.
  @discardableResult
  func step(_ place: Int, _ input: Counter.Input) -> [Int] {
    now = now + .milliseconds(10)
    let (actor, machine) = counters[place]
    var outbox = Outbox<Counter.Output>()
    machine.step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    writer.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: machine.deadline, entropyDrawn: machine.entropyDrawn))
    return outputs.compactMap { if case .total(let total) = $0 { total } else { nil } }
  }

  /// Advances the time by a second, meeting the deadlines.
  func wait() {
    now = now + .seconds(1)
    for place in counters.indices {
      if let due = counters[place].machine.deadline, due <= now { step(place, .deadline) }
    }
  }
}
