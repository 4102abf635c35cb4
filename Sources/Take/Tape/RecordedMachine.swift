import AudioSession
import Room
package import Wire

/// An actor's kind of machine; the number is stored in takes and must never change.
package struct MachineKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A peer of the application: the complete client stack.
  package static let endpoint = MachineKind(rawValue: 0)
}

/// The kind of a step's input, in four bits whose meaning depends on the kind of machine.
///
/// The numbers are stored and hashed, so they must never change. `genesis` and `deadline` are the
/// same for all kinds of machines.
package struct StepKind: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  /// Creates a kind from a stored number; fails if it has more than four bits.
  package init?(rawValue: UInt8) {
    guard rawValue < 16 else { return nil }
    self.rawValue = rawValue
  }

  /// Creates a kind from a constant; only its low four bits are used.
  package init(_ number: UInt8) { rawValue = number & 15 }

  /// The first step of an actor, which configures it.
  package static let genesis = StepKind(0)
  /// A step in which a deadline was reached; its input has no rows.
  package static let deadline = StepKind(3)
}

/// A machine's input, which can be written as rows.
///
/// An input is one row, preceded by the rows that it refers to (`path`, `content`, `format`,
/// `clock`). A deadline has no rows.
package protocol RecordedInput: Sendable {
  /// The input's kind, whose meaning depends on the machine.
  var stepKind: StepKind { get }
  /// The approximate size of the input while it waits to be written, in bytes of memory.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Returns the input with its times moved by an interval.
  func moved(by interval: Interval) -> any RecordedInput
  /// A few words that describe the input.
  var title: String { get }
}

extension RecordedInput {
  package func moved(by interval: Interval) -> any RecordedInput { self }
  package var title: String { "input of kind \(stepKind.rawValue)" }
}

/// A machine's output, which can be written as rows.
package protocol RecordedOutput: Sendable {
  /// The approximate number of bytes of memory that the output occupies while it waits to be
  /// written.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Adds rows for all outputs of a step, in order.
  static func write(_ outputs: [Self], to transcript: inout Transcript)
  /// Replaces large content with its digest, unless the take stores the content.
  ///
  /// The thread that produced the content calls this.
  mutating func digest()
}

extension RecordedOutput {
  package static func write(_ outputs: [Self], to transcript: inout Transcript) {
    for output in outputs { output.write(to: &transcript) }
  }
  package mutating func digest() {}
}

/// The outputs of a step of any kind of machine.
package protocol RecordedOutputs: Sendable {
  var count: Int { get }
  /// The approximate number of bytes of memory that the outputs occupy while they wait to be
  /// written.
  var byteCount: Int { get }
  func write(to transcript: inout Transcript)
  /// Replaces large content with its digest, unless the take stores the content.
  mutating func digest()
}

/// The outputs of a step of one kind of machine, in order.
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

/// A machine whose steps can be recorded and replayed.
///
/// Its inputs and outputs are values that can be written as rows, so the machine can run anywhere.
package protocol RecordedMachine: Machine, AnyObject
where Input: RecordedInput, Output: RecordedOutput {
  /// The type that restores the machine's inputs from rows.
  associatedtype Decoder: InputDecoder

  static var machineKind: MachineKind { get }
  /// Creates a decoder, which all actors of this kind in a take share.
  static func decoder(_ contents: ContentSource) -> Decoder
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The machine's state for the debugger; nil if it cannot show any.
  var machineSnapshot: (any MachineSnapshot)? { get }
}

extension RecordedMachine {
  package var entropyDrawn: UInt64 { 0 }
  package var machineSnapshot: (any MachineSnapshot)? { nil }
}

/// Restores the inputs of one kind of machine from their rows.
package protocol InputDecoder {
  /// Returns the input of a step; nil if its rows do not match.
  mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
}

/// A machine's state after a step, as plain data; reflection finds the members to show.
package protocol MachineSnapshot: Sendable {
  /// The number of random bytes drawn, for each random stream.
  var drawnBytes: [(stream: String, bytes: UInt64)] { get }
  /// The pending wake-ups of the machine's parts, earliest first.
  var wakes: [(layer: String, at: Instant)] { get }
}

extension MachineSnapshot {
  package var drawnBytes: [(stream: String, bytes: UInt64)] { [] }
  package var wakes: [(layer: String, at: Instant)] { [] }
}

// MARK: - DrivenMachine

/// A machine of any kind in a replay, with its inputs and outputs as rows.
///
/// Features of a single kind, such as stats, have separate protocols.
package protocol DrivenMachine: AnyObject {
  /// Applies an input; an input for another kind of machine does nothing.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs
  /// The time at which the machine needs a deadline input; nil if it needs none.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The machine's state; nil if it cannot show any.
  var machineSnapshot: (any MachineSnapshot)? { get }
  /// The input for a deadline that was reached.
  var deadlineInput: any RecordedInput { get }
}

/// Wraps a recorded machine to hide its type.
package final class Driven<Machine: RecordedMachine>: DrivenMachine {
  package private(set) var machine: Machine
  private let reachedDeadline: Machine.Input
  private var outbox = Outbox<Machine.Output>()

  /// - Parameter deadline: the machine's input for a deadline that was reached.
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

/// The kinds of machines, besides endpoints, that can be read and replayed.
///
/// Steps of other kinds can be read as rows, but not replayed.
package struct MachineKinds: Sendable {
  private struct Entry: Sendable {
    var decoder: @Sendable (ContentSource) -> any InputDecoder
    var machine: @Sendable () -> any DrivenMachine
  }

  private var entries: [MachineKind: Entry] = [:]

  /// Registers the kinds of this library: observers, audio sessions, rooms, and reports of other
  /// stacks.
  package init() {
    add(ObserverMachine.self, deadline: .deadline) { ObserverMachine() }
    add(RecordedAudioSession.self, deadline: .deadline) { RecordedAudioSession() }
    add(RecordedRoom.self, deadline: .deadline) { RecordedRoom(.all) }
    add(ReportedMachine.self, deadline: .deadline) { ReportedMachine() }
  }

  /// Registers a kind of machine.
  ///
  /// - Parameters:
  ///   - deadline: the machine's input for a deadline that was reached.
  ///   - make: creates a machine, whose first input must be its genesis.
  package mutating func add<Machine: RecordedMachine & SendableMetatype>(
    _ type: Machine.Type, deadline: Machine.Input, _ make: @escaping @Sendable () -> Machine
  ) {
    entries[Machine.machineKind] = Entry(
      decoder: { Machine.decoder($0) }, machine: { Driven(make(), deadline: deadline) })
  }

  func decoder(of kind: MachineKind, _ contents: ContentSource) -> (any InputDecoder)? {
    entries[kind]?.decoder(contents)
  }

  /// Creates a machine, whose first input must be its genesis; nil if the kind is not registered.
  package func machine(of kind: MachineKind) -> (any DrivenMachine)? { entries[kind]?.machine() }
}

/// An input of a kind that is not registered; only its step kind is known.
package struct UnknownInput: RecordedInput {
  package let stepKind: StepKind
  package var byteCount: Int { 0 }
  package func write(to transcript: inout Transcript) {}
}

/// Replaces a machine whose kind is not registered, and does nothing.
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

/// The description of an actor in the rows of its first step, without its configuration.
package struct ActorWords: Hashable, Sendable {
  package var label = ""
  package var role = ""
  /// The offset from the actor's own times to the take's.
  package var clock = Interval.zero
  /// The peer number of the actor; nil if it is not an endpoint.
  package var peer: UInt32?
  package var kind = MachineKind.endpoint

  package init() {}

  /// Returns the name to show for an actor: `peer 1`, or `actor 2` if it is not an endpoint.
  package static func name(actor: UInt32, peer: UInt32?) -> String {
    peer.map { "peer \($0)" } ?? "actor \(actor)"
  }

  /// Returns the description of an endpoint that has no label.
  static func endpoint(_ actor: UInt32) -> ActorWords {
    var words = ActorWords()
    words.peer = actor
    return words
  }

  /// Reads the description from a genesis; other steps leave the defaults.
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

/// A dictionary by actor number that is fast for small numbers, because every step uses it.
///
/// Actors are numbered from 1, so nearly all fit into an array. A file may contain any number, so
/// there is a dictionary for the rest.
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
      // Large numbers go into the dictionary.
      guard place < 4_096 else { return high[actor] = newValue }
      if place >= low.count {
        guard newValue != nil else { return }
        low += repeatElement(nil, count: place + 1 - low.count)
      }
      low[place] = newValue
    }
  }
}
