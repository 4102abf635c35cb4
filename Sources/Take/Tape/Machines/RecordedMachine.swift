package import Wire

/// Which kind of machine an actor of a take is; the numbers are stored and never change.
package struct MachineKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A peer that Retake itself was: the whole client stack.
  package static let endpoint = MachineKind(rawValue: 0)
}

/// What a step's input was: four bits, which are read in the kind of the step's actor.
///
/// The numbers are stored and hashed and must never change. Two of them mean the same in every
/// kind.
package struct StepKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  /// Handles a number; nil when it has more than four bits.
  package init?(rawValue: UInt8) {
    guard rawValue < 16 else { return nil }
    self.rawValue = rawValue
  }

  /// A number that is known to fit.
  package init(_ number: UInt8) { rawValue = number & 15 }

  /// The first step of an actor: what it is made from.
  package static let genesis = StepKind(0)
  /// A deadline that was reached; it has no rows.
  package static let deadline = StepKind(3)
}

/// An input of a machine as the tape has it: a value that is written as rows.
///
/// It is one row, after those that it refers to by number (`path`, `content`, `clock`); a deadline
/// has none.
package protocol RecordedInput: Sendable {
  /// What the input is, in its machine's kind.
  var stepKind: StepKind { get }
  /// About how much memory it holds on to while it waits to be written.
  var byteCount: Int { get }
  /// Adds its rows.
  func write(to transcript: inout Transcript)
  /// The same with its own times moved.
  func moved(by interval: Interval) -> any RecordedInput
  /// The input in words, on one line.
  var title: String { get }
}

extension RecordedInput {
  package func moved(by interval: Interval) -> any RecordedInput { self }
  package var title: String { "input of kind \(stepKind.rawValue)" }
}

/// An output of a machine as the tape has it: a value that is written as rows.
package protocol RecordedOutput: Sendable {
  /// About how much memory it holds on to while it waits to be written.
  var byteCount: Int { get }
  /// Adds its rows.
  func write(to transcript: inout Transcript)
  /// Adds the rows of several, of all that followed from a step.
  static func write(_ outputs: [Self], to transcript: inout Transcript)
  /// Puts digests in the place of what is not written itself; called on the thread that made it.
  mutating func digest()
}

extension RecordedOutput {
  package static func write(_ outputs: [Self], to transcript: inout Transcript) {
    for output in outputs { output.write(to: &transcript) }
  }
  package mutating func digest() {}
}

/// Everything that followed from an input, of whatever machine.
package protocol RecordedOutputs: Sendable {
  /// How many outputs there are.
  var count: Int { get }
  /// About how much memory they hold on to while they wait to be written.
  var byteCount: Int { get }
  /// Adds their rows.
  func write(to transcript: inout Transcript)
  /// Puts digests in the place of what is not written itself.
  mutating func digest()
}

/// The outputs of a machine of one kind.
package struct OutputList<Output: RecordedOutput>: RecordedOutputs {
  /// The outputs in their order.
  package var all: [Output]

  package init(_ all: [Output]) { self.all = all }

  package var count: Int { all.count }
  package var byteCount: Int { all.reduce(0) { $0 + 100 + $1.byteCount } }
  package func write(to transcript: inout Transcript) {
    Output.write(all, to: &transcript)
  }
  package mutating func digest() { for index in all.indices { all[index].digest() } }
}

/// A machine whose steps can be written down and driven again.
///
/// Nothing here says where the machine runs: what goes in and comes out are values and rows.
package protocol RecordedMachine: Machine, AnyObject
where Input: RecordedInput, Output: RecordedOutput {
  /// Makes its inputs again from their rows.
  associatedtype Decoder: InputDecoder

  static var machineKind: MachineKind { get }
  /// Creates the decoder of all actors of this kind in one take.
  static func decoder(_ contents: ContentSource) -> Decoder
  /// How many random bytes were drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of all its parts, for whoever looks into a replay; nil when there is none to tell.
  var machineSnapshot: (any MachineSnapshot)? { get }
}

extension RecordedMachine {
  package var entropyDrawn: UInt64 { 0 }
  package var machineSnapshot: (any MachineSnapshot)? { nil }
}

/// Creates the inputs of one kind of machine again from their rows.
package protocol InputDecoder {
  /// The input of a step; nil when its rows do not fit it.
  mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
}

/// The state of a machine after a step, as plain data that reflection shows.
package protocol MachineSnapshot: Sendable {
  /// How many random bytes each stream of randomness has given.
  var drawnBytes: [(stream: String, bytes: UInt64)] { get }
  /// Which part wants to be woken when, earliest first.
  var wakes: [(layer: String, at: Instant)] { get }
}

extension MachineSnapshot {
  package var drawnBytes: [(stream: String, bytes: UInt64)] { [] }
  package var wakes: [(layer: String, at: Instant)] { [] }
}
