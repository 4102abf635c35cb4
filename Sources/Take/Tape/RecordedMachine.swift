import AudioSession
import Room
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

// MARK: - DrivenMachine

/// A machine of any kind as a replay holds it: rows become inputs, outputs become rows.
///
/// Whoever needs more of a machine (its stats, say) asks for that by a protocol of its own.
package protocol DrivenMachine: AnyObject {
  /// Applies an input of the machine's kind; any other one does nothing.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs
  /// When the machine wants its deadline input.
  var deadline: Instant? { get }
  /// How many random bytes were drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of the machine; nil when there is none to tell.
  var machineSnapshot: (any MachineSnapshot)? { get }
  /// The input that a reached deadline is.
  var deadlineInput: any RecordedInput { get }
}

/// A recorded machine without its type.
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

/// The kinds of machines that a reader of takes knows besides the endpoint, and how they are made.
///
/// Steps of a kind that it does not know can be read as rows, and not driven.
package struct MachineKinds: Sendable {
  private struct Entry: Sendable {
    var decoder: @Sendable (ContentSource) -> any InputDecoder
    var machine: @Sendable () -> any DrivenMachine
  }

  private var entries: [MachineKind: Entry] = [:]

  /// Knows the kinds of this library: the endpoint, the observer, the audio session, the room, and
  /// what other stacks reported.
  package init() {
    add(ObserverMachine.self, deadline: .deadline) { ObserverMachine() }
    add(RecordedAudioSession.self, deadline: .deadline) { RecordedAudioSession() }
    add(RecordedRoom.self, deadline: .deadline) { RecordedRoom(.all) }
    add(ReportedMachine.self, deadline: .deadline) { ReportedMachine() }
  }

  /// Makes a kind known.
  ///
  /// - Parameters:
  ///   - deadline: the kind's deadline input.
  ///   - make: makes a machine that waits for its genesis.
  package mutating func add<Machine: RecordedMachine & SendableMetatype>(
    _ type: Machine.Type, deadline: Machine.Input, _ make: @escaping @Sendable () -> Machine
  ) {
    entries[Machine.machineKind] = Entry(
      decoder: { Machine.decoder($0) }, machine: { Driven(make(), deadline: deadline) })
  }

  func decoder(of kind: MachineKind, _ contents: ContentSource) -> (any InputDecoder)? {
    entries[kind]?.decoder(contents)
  }

  /// A machine that waits for its genesis; nil for a kind that is not known.
  package func machine(of kind: MachineKind) -> (any DrivenMachine)? { entries[kind]?.machine() }
}

/// An input of a kind that the reader does not know: it can be counted and shown as rows.
package struct UnknownInput: RecordedInput {
  package let stepKind: StepKind
  package var byteCount: Int { 0 }
  package func write(to transcript: inout Transcript) {}
}

/// What a machine does whose kind is not known here: nothing.
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

/// What the rows of an actor's first step say besides its input.
package struct ActorWords: Hashable, Sendable {
  package var label = ""
  package var role = ""
  /// What was added to the actor's own times.
  package var clock = Interval.zero
  /// The number of the peer that the actor is; nil when it is none.
  package var peer: UInt32?
  /// What kind of machine it is.
  package var kind = MachineKind.endpoint

  package init() {}

  /// How an actor is called: `peer 1`, or `actor 2`.
  package static func name(actor: UInt32, peer: UInt32?) -> String {
    peer.map { "peer \($0)" } ?? "actor \(actor)"
  }

  /// The words of an endpoint that was not named.
  static func endpoint(_ actor: UInt32) -> ActorWords {
    var words = ActorWords()
    words.peer = actor
    return words
  }

  /// Reads the rows of a genesis; other steps say nothing.
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

/// Something about each actor of a take, by its number.
///
/// Every step asks for it. Actors are counted from 1, so nearly all have a place in an array; but a
/// file may claim any number.
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
      // A crowd may have more; those take a little longer.
      guard place < 4_096 else { return high[actor] = newValue }
      if place >= low.count {
        guard newValue != nil else { return }
        low += repeatElement(nil, count: place + 1 - low.count)
      }
      low[place] = newValue
    }
  }
}
