import AudioSession
import Room
package import Wire

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
