import Media
package import Peer
package import Secure
package import Stats
package import Tape
package import Wire

/// An actor that is driven from a take.
final class DrivenActor {
  let number: UInt32
  /// What its first step says.
  let words: ActorWords
  let machine: any DrivenMachine
  /// The machine when it is an endpoint, which every step asks for.
  let endpoint: DrivenEndpoint?

  init(number: UInt32, words: ActorWords, machine: any DrivenMachine) {
    self.number = number
    self.words = words
    self.machine = machine
    endpoint = machine as? DrivenEndpoint
  }

  var label: String { words.label }
  /// When the actor wants its deadline input, by the clock of the take.
  var deadline: Instant? { machine.deadline.map { $0 + words.clock } }
  /// How many random bytes were drawn, with those of what was not run.
  var entropyDrawn: UInt64 { machine.entropyDrawn }
  /// What getStats would give; nothing for a machine that has no stats.
  func stats(of types: Set<String>?) -> StatsReport {
    (machine as? any StatsTelling)?.stats(of: types) ?? StatsReport()
  }

  /// Hands an input to the machine at an instant of the take.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    guard words.clock != .zero else { return machine.apply(input, at: now) }
    return machine.apply(input.moved(by: .zero - words.clock), at: now - words.clock)
  }
}

/// A machine that can be asked for its stats.
package protocol StatsTelling: AnyObject {
  /// What getStats would give, or its objects of some types.
  func stats(of types: Set<String>?) -> StatsReport
}

/// The state of an actor, for whoever looks into a replay.
package struct ActorState: Sendable {
  package var actor: UInt32
  /// The number of the peer that it is; nil when it is none.
  package var peer: UInt32?
  package var label: String
  package var snapshot: any MachineSnapshot

  /// How the actor is called: `peer 1`, or `actor 2`.
  package var name: String { ActorWords.name(actor: actor, peer: peer) }
}

/// A peer that a take drives, with what stands in for its libraries.
final class DrivenEndpoint: DrivenMachine, StatsTelling {
  private let peer: any ReplayedPeer
  /// What stands in for DTLS and SRTP; nil when the libraries run.
  let security: RecordedSecurity?
  private var outbox = Outbox<PeerOutput>()

  init(_ peer: any ReplayedPeer, _ security: RecordedSecurity?) {
    self.peer = peer
    self.security = security
    if let security { peer.use(security) }
  }

  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    guard let input = input as? PeerInput else { return OutputList<PeerOutput>([]) }
    return apply(input, at: now)
  }

  func apply(_ input: PeerInput, at now: Instant) -> OutputList<PeerOutput> {
    peer.step(input, at: now, into: &outbox)
    return OutputList(outbox.drain())
  }

  /// Tells what stands in for the libraries that a step was executed.
  func end(_ step: StepHead, clock: Interval) {
    security?.end(
      deadline: step.deadline.map { $0 - clock }, recorded: step.entropyDrawn,
      drawn: peer.entropyDrawn)
  }

  var deadline: Instant? { peer.deadline }
  var entropyDrawn: UInt64 { security?.drawn(peer.entropyDrawn) ?? peer.entropyDrawn }
  var machineSnapshot: (any MachineSnapshot)? { peer.snapshot }
  var deadlineInput: any RecordedInput { PeerInput.deadline }
  func stats(of types: Set<String>?) -> StatsReport { peer.stats(of: types) }
}

/// The actors of a take; each is made by its first step.
struct DrivenActors {
  private(set) var all: [DrivenActor] = []
  /// The first actor whose kind nobody here knows.
  private(set) var unknown: (actor: UInt32, kind: MachineKind)?
  private var places = ByActor<Int>()
  /// The numbers of the first of them: every step looks for its own, and most takes have few.
  private var first: [UInt32] = []
  private static let firstLimit = 8
  /// What stands in for the codecs; nil when they run.
  let script: FrameScript?

  /// Whether recorded frames stand in for the codecs of observers too: their media is gone.
  var scriptsObservers = false

  private let parts: RecordedSecurity.Parts
  private let kinds: MachineKinds
  private let makeCodecs: () -> any CodecFactory
  private let makePeer: (any CodecFactory) -> any ReplayedPeer

  init(
    script: FrameScript?, security parts: RecordedSecurity.Parts, kinds: MachineKinds,
    codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) {
    self.script = script
    self.parts = parts
    self.kinds = kinds
    makeCodecs = codecs
    makePeer = peer
  }

  /// What followed from a step, and the actor that made it.
  typealias Result = (outputs: any RecordedOutputs, actor: DrivenActor)

  /// Executes a step.
  mutating func execute(_ step: TapeChunk.Step, _ rows: RowList) -> Result {
    let actor = all[index(of: step, rows)]
    if let security = actor.endpoint?.security { security.begin(step, rows) }
    return run(step.head, step.input, actor)
  }

  /// Executes one of some steps; all of these are handed over, because a copy of one would count
  /// every part of it.
  mutating func execute(_ chunk: TapeChunk, _ index: Int) -> Result {
    let head = chunk.steps[index].head
    let place = first.firstIndex(of: head.actor) ?? self.index(of: chunk.steps[index], chunk.rows)
    let actor = all[place]
    guard let endpoint = actor.endpoint, actor.words.clock == .zero,
      let input = chunk.steps[index].peerInput
    else { return run(head, chunk.steps[index].input, actor) }
    script?.begin(step: head.number)
    endpoint.security?.begin(chunk.steps[index], chunk.rows)
    let outputs = endpoint.apply(input, at: head.at)
    endpoint.end(head, clock: .zero)
    return (outputs, actor)
  }

  private func run(_ head: StepHead, _ input: any RecordedInput, _ actor: DrivenActor) -> Result {
    script?.begin(step: head.number)
    let outputs = actor.apply(input, at: head.at)
    actor.endpoint?.end(head, clock: actor.words.clock)
    return (outputs, actor)
  }

  /// Throws when some actor cannot be driven.
  func requireKnown(_ path: String) throws(TapeError) {
    guard let unknown else { return }
    throw TapeError(
      path: path, place: "actor \(unknown.actor)",
      reason: "it is a machine of kind \(unknown.kind.rawValue), which this version cannot drive; "
        + "its rows can be read with retake sql, and a newer Retake may know it")
  }

  /// The label of an actor; empty when it has none or was not driven yet.
  func label(of actor: UInt32) -> String { places[actor].map { all[$0].label } ?? "" }

  /// The actor with a number; nil when it was not driven yet.
  func actor(_ number: UInt32) -> DrivenActor? { places[number].map { all[$0] } }

  /// The state of every actor that tells its own.
  var states: [ActorState] {
    all.compactMap { actor in
      actor.machine.machineSnapshot.map {
        ActorState(
          actor: actor.number, peer: actor.words.peer, label: actor.label, snapshot: $0)
      }
    }
  }

  /// How much was taken from the recording; nil when all was computed.
  var substituted: SubstitutionLedger? {
    guard !parts.isEmpty else { return nil }
    return all.reduce(SubstitutionLedger()) { sum, actor in
      sum + (actor.endpoint?.security?.ledger ?? SubstitutionLedger())
    }
  }

  /// The place of a step's actor, which is made when it is the first one of its actor.
  mutating func index(of step: TapeChunk.Step, _ rows: RowList) -> Int {
    if let known = places[step.head.actor] { return known }
    let words = ActorWords(step, rows)
    let machine = machine(words, step.head.actor)
    all.append(DrivenActor(number: step.head.actor, words: words, machine: machine))
    places[step.head.actor] = all.count - 1
    if all.count <= DrivenActors.firstLimit { first.append(step.head.actor) }
    return all.count - 1
  }

  private mutating func machine(_ words: ActorWords, _ actor: UInt32) -> any DrivenMachine {
    guard words.kind == .endpoint else {
      if words.kind == .observer, scriptsObservers, let script {
        return Driven(
          ObserverMachine(codecs: { ScriptedCodecs(peer: $0, script: script) }),
          deadline: .deadline)
      }
      if let machine = kinds.machine(of: words.kind) { return machine }
      if unknown == nil { unknown = (actor, words.kind) }
      return UnknownMachine()
    }
    let codecs: any CodecFactory =
      script.map { ScriptedCodecs(peer: words.peer ?? actor, script: $0) } ?? makeCodecs()
    return DrivenEndpoint(makePeer(codecs), parts.isEmpty ? nil : RecordedSecurity(parts))
  }
}

/// A peer as a replay drives it: the full stack, or a small one in tests.
package protocol ReplayedPeer: AnyObject {
  /// Lets something else secure the transport; comes before the genesis.
  func use(_ security: any SecurityFactory)
  /// Applies one input at an instant and appends what follows from it.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the peer wants its deadline input.
  var deadline: Instant? { get }
  /// How many random bytes were drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of all layers; nil when there is none to tell.
  var snapshot: PeerSnapshot? { get }
  /// What getStats would give, or its objects of some types.
  func stats(of types: Set<String>?) -> StatsReport
}

extension ReplayedPeer {
  package func use(_ security: any SecurityFactory) {}
  package var snapshot: PeerSnapshot? { nil }
  package func stats(of types: Set<String>?) -> StatsReport { StatsReport() }
}

extension PeerMachine: ReplayedPeer {}
