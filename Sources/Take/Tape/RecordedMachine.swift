import AudioSession
import Room
package import Wire

/// An actor's kind of machine; the numbers are stored and never change.
package struct MachineKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A local peer: the complete client stack.
  package static let endpoint = MachineKind(rawValue: 0)
}

/// The kind of a step's input: four bits whose meaning depends on the actor's kind.
///
/// The numbers are stored and hashed and must never change. `genesis` and `deadline` mean the same
/// in every kind.
package struct StepKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  /// Creates a kind from a stored number; fails if it has more than four bits.
  package init?(rawValue: UInt8) {
    guard rawValue < 16 else { return nil }
    self.rawValue = rawValue
  }

  /// Creates a kind from a constant; only the low four bits count.
  package init(_ number: UInt8) { rawValue = number & 15 }

  /// An actor's first step, which configures it.
  package static let genesis = StepKind(0)
  /// A deadline that was reached; it has no rows.
  package static let deadline = StepKind(3)
}

/// A machine's input, which can be written as rows.
///
/// An input is one row, preceded by those that it refers to by number (`path`, `content`, `clock`);
/// a deadline has none.
package protocol RecordedInput: Sendable {
  /// The input's kind, among those of the machine's kind.
  var stepKind: StepKind { get }
  /// About how many bytes of memory it occupies while queued for writing.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Returns the input with its times shifted.
  func moved(by interval: Interval) -> any RecordedInput
  /// The input on one line.
  var title: String { get }
}

extension RecordedInput {
  package func moved(by interval: Interval) -> any RecordedInput { self }
  package var title: String { "input of kind \(stepKind.rawValue)" }
}

/// A machine's output, which can be written as rows.
package protocol RecordedOutput: Sendable {
  /// About how many bytes of memory it occupies while queued for writing.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Adds rows for all of a step's outputs.
  static func write(_ outputs: [Self], to transcript: inout Transcript)
  /// Replaces large content that is not stored with digests; called on the thread that produced it.
  mutating func digest()
}

extension RecordedOutput {
  package static func write(_ outputs: [Self], to transcript: inout Transcript) {
    for output in outputs { output.write(to: &transcript) }
  }
  package mutating func digest() {}
}

/// All outputs of a step, from any kind of machine.
package protocol RecordedOutputs: Sendable {
  var count: Int { get }
  /// About how many bytes of memory they occupy while queued for writing.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Replaces large content that is not stored with digests.
  mutating func digest()
}

/// A step's outputs from one kind of machine, in order.
package struct OutputList<Output: RecordedOutput>: RecordedOutputs {
  package var all: [Output]

  package init(_ all: [Output]) { self.all = all }

  package var count: Int { all.count }
  package var byteCount: Int { all.reduce(0) { $0 + 100 + $1.byteCount } }
  package func write(to transcript: inout Transcript) {
    Output.write(all, to: &transcript)
  }
  package mutating func digest() { for index in all.indices { all[index].digest() } }
}

/// A machine whose steps can be recorded and driven again.
///
/// It is independent of where it runs: inputs and outputs are values that become rows.
package protocol RecordedMachine: Machine, AnyObject
where Input: RecordedInput, Output: RecordedOutput {
  /// Restores inputs from their rows.
  associatedtype Decoder: InputDecoder

  static var machineKind: MachineKind { get }
  /// Creates the decoder that all actors of this kind in a take share.
  static func decoder(_ contents: ContentSource) -> Decoder
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of all parts, for the debugger; nil if the machine has none to show.
  var machineSnapshot: (any MachineSnapshot)? { get }
}

extension RecordedMachine {
  package var entropyDrawn: UInt64 { 0 }
  package var machineSnapshot: (any MachineSnapshot)? { nil }
}

/// Restores one kind of machine's inputs from their rows.
package protocol InputDecoder {
  /// Returns a step's input; nil if its rows do not match.
  mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
}

/// A machine's state after a step, as plain data that is shown by reflection.
package protocol MachineSnapshot: Sendable {
  /// The number of random bytes drawn from each random stream.
  var drawnBytes: [(stream: String, bytes: UInt64)] { get }
  /// Each part's pending wake-ups, earliest first.
  var wakes: [(layer: String, at: Instant)] { get }
}

extension MachineSnapshot {
  package var drawnBytes: [(stream: String, bytes: UInt64)] { [] }
  package var wakes: [(layer: String, at: Instant)] { [] }
}

// MARK: - DrivenMachine

/// A machine of any kind under replay: its inputs come from rows and its outputs become rows.
///
/// Features of a single kind, such as stats, have separate protocols.
package protocol DrivenMachine: AnyObject {
  /// Applies an input; ignores an input for another kind.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs
  /// The time at which the machine wants its deadline input.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The machine's state; nil if it has none to show.
  var machineSnapshot: (any MachineSnapshot)? { get }
  /// The input that reports a reached deadline.
  var deadlineInput: any RecordedInput { get }
}

/// Type-erases a recorded machine.
package final class Driven<Machine: RecordedMachine>: DrivenMachine {
  package private(set) var machine: Machine
  private let reachedDeadline: Machine.Input
  private var outbox = Outbox<Machine.Output>()

  /// - Parameter deadline: the machine's deadline input.
  package init(_ machine: Machine, deadline: Machine.Input) {
    self.machine = machine
    reachedDeadline = deadline
  }

  package func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    guard let input = input as? Machine.Input else { return OutputList<Machine.Output>([]) }
    machine.step(input, at: now, into: &outbox)
    return OutputList(outbox.drain())
  }

  package var deadline: Instant? { machine.deadline }
  package var entropyDrawn: UInt64 { machine.entropyDrawn }
  package var machineSnapshot: (any MachineSnapshot)? { machine.machineSnapshot }
  package var deadlineInput: any RecordedInput { reachedDeadline }
}

/// The kinds of machines, besides the endpoint, that a reader of takes can drive.
///
/// Steps of unknown kinds can be read as rows but not driven.
package struct MachineKinds: Sendable {
  private struct Entry: Sendable {
    var decoder: @Sendable (ContentSource) -> any InputDecoder
    var machine: @Sendable () -> any DrivenMachine
  }

  private var entries: [MachineKind: Entry] = [:]

  /// Registers this library's kinds: the observer, the audio session, the room, and other stacks'
  /// reports.
  package init() {
    add(ObserverMachine.self, deadline: .deadline) { ObserverMachine() }
    add(RecordedAudioSession.self, deadline: .deadline) { RecordedAudioSession() }
    add(RecordedRoom.self, deadline: .deadline) { RecordedRoom(.all) }
    add(ReportedMachine.self, deadline: .deadline) { ReportedMachine() }
  }

  /// Registers a kind.
  ///
  /// - Parameters:
  ///   - deadline: the kind's deadline input.
  ///   - make: creates a machine that expects its genesis as its first input.
  package mutating func add<Machine: RecordedMachine & SendableMetatype>(
    _ type: Machine.Type, deadline: Machine.Input, _ make: @escaping @Sendable () -> Machine
  ) {
    entries[Machine.machineKind] = Entry(
      decoder: { Machine.decoder($0) }, machine: { Driven(make(), deadline: deadline) })
  }

  func decoder(of kind: MachineKind, _ contents: ContentSource) -> (any InputDecoder)? {
    entries[kind]?.decoder(contents)
  }

  /// Creates a machine that expects its genesis as its first input; returns nil for an unknown
  /// kind.
  package func machine(of kind: MachineKind) -> (any DrivenMachine)? { entries[kind]?.machine() }
}

/// An input of an unknown kind: it can be counted and shown as rows.
package struct UnknownInput: RecordedInput {
  package let stepKind: StepKind
  package var byteCount: Int { 0 }
  package func write(to transcript: inout Transcript) {}
}

/// Stands in for a machine of an unknown kind and does nothing.
package final class UnknownMachine: DrivenMachine {
  package init() {}
  package func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    OutputList<Never>([])
  }
  package var deadline: Instant? { nil }
  package var entropyDrawn: UInt64 { 0 }
  package var machineSnapshot: (any MachineSnapshot)? { nil }
  package var deadlineInput: any RecordedInput { UnknownInput(stepKind: .deadline) }
}

extension Never: RecordedOutput {
  package var byteCount: Int { 0 }
  package func write(to transcript: inout Transcript) {}
}

/// The description of an actor in its first step's rows, besides the input itself.
package struct ActorWords: Hashable, Sendable {
  package var label = ""
  package var role = ""
  /// The offset added to the actor's own times.
  package var clock = Interval.zero
  /// The actor's peer number; nil if it is not an endpoint.
  package var peer: UInt32?
  package var kind = MachineKind.endpoint

  package init() {}

  /// Returns an actor's display name: `peer 1` or `actor 2`.
  package static func name(actor: UInt32, peer: UInt32?) -> String {
    peer.map { "peer \($0)" } ?? "actor \(actor)"
  }

  /// Returns the words for an endpoint without a label.
  static func endpoint(_ actor: UInt32) -> ActorWords {
    var words = ActorWords()
    words.peer = actor
    return words
  }

  /// Reads a genesis's rows; any other step leaves the defaults.
  package init(_ step: TapeChunk.Step, _ rows: RowList) {
    guard step.head.kind == .genesis else { return }
    for row in step.inputRows {
      if let row = ClockRow(rows, row) {
        clock = Interval(nanoseconds: row.added)
      } else if let row = PeerRow(rows, row) {
        (label, role, peer) = (row.label, row.role, row.peer.number)
      } else if let row = ActorRow(rows, row) {
        (label, kind) = (row.label, MachineKind(rawValue: row.kind))
      }
    }
  }
}

/// A dictionary by actor number, optimized for small numbers.
///
/// Every step looks something up here. Actors are counted from 1, so nearly all fit into an array;
/// but a file may contain any number.
package struct ByActor<Element> {
  @usableFromInline
  var low: [Element?] = []
  @usableFromInline
  var high: [UInt32: Element] = [:]

  @inlinable @inline(__always)
  package init() {}

  @inlinable @inline(__always)
  package subscript(actor: UInt32) -> Element? {
    get {
      let place = Int(actor)
      if place < low.count { return low[place] }
      return high.isEmpty ? nil : high[actor]
    }
    set {
      let place = Int(actor)
      // Higher numbers go into a dictionary.
      guard place < 4_096 else { return high[actor] = newValue }
      if place >= low.count {
        guard newValue != nil else { return }
        low += repeatElement(nil, count: place + 1 - low.count)
      }
      low[place] = newValue
    }
  }
}
