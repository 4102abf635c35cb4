import Media
package import Peer
package import Secure
package import Stats
package import Tape
package import Wire

/// An actor driven by a take.
final class DrivenActor {
  let number: UInt32
  /// The actor's description in its first step.
  let words: ActorWords
  let machine: any DrivenMachine
  /// The machine if it is an endpoint, cast once because every step needs it.
  let endpoint: DrivenEndpoint?

  init(number: UInt32, words: ActorWords, machine: any DrivenMachine) {
    self.number = number
    self.words = words
    self.machine = machine
    endpoint = machine as? DrivenEndpoint
  }

  var label: String { words.label }
  /// The actor's deadline, on the take's clock.
  var deadline: Instant? { machine.deadline.map { $0 + words.clock } }
  /// The number of random bytes drawn, including those for substituted libraries.
  var entropyDrawn: UInt64 { machine.entropyDrawn }
  /// Returns the `getStats` result; empty for a machine without stats.
  func stats(of types: Set<String>?) -> StatsReport {
    (machine as? any StatsTelling)?.stats(of: types) ?? StatsReport()
  }

  /// Applies an input at an instant on the take's clock.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    guard words.clock != .zero else { return machine.apply(input, at: now) }
    return machine.apply(input.moved(by: .zero - words.clock), at: now - words.clock)
  }
}

/// A machine that has stats.
package protocol StatsTelling: AnyObject {
  /// Returns the `getStats` result, optionally only with objects of some types.
  func stats(of types: Set<String>?) -> StatsReport
}

/// An actor's state, for the debugger.
package struct ActorState: Sendable {
  package var actor: UInt32
  /// The actor's peer number; nil if it is not an endpoint.
  package var peer: UInt32?
  package var label: String
  package var snapshot: any MachineSnapshot

  /// The actor's display name: `peer 1` or `actor 2`.
  package var name: String { ActorWords.name(actor: actor, peer: peer) }
}

/// An endpoint driven by a take, with substitutes for its libraries.
final class DrivenEndpoint: DrivenMachine, StatsTelling {
  private let peer: any ReplayedPeer
  /// Substitutes for DTLS and SRTP; nil if the libraries run.
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

  /// Informs the substitutes that a step was executed.
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

/// A take's actors, each created by its first step.
struct DrivenActors {
  private(set) var all: [DrivenActor] = []
  /// The first actor of an unknown kind.
  private(set) var unknown: (actor: UInt32, kind: MachineKind)?
  private var places = ByActor<Int>()
  /// The first few actor numbers, in which every step searches: most takes have few actors.
  private var first: [UInt32] = []
  private static let firstLimit = 8
  /// Substitutes for the codecs; nil if they run.
  let script: FrameScript?

  /// Whether recorded frames also replace observers' codecs, because their media was removed.
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

  /// A step's outputs, and its actor.
  typealias Result = (outputs: any RecordedOutputs, actor: DrivenActor)

  mutating func execute(_ step: TapeChunk.Step, _ rows: RowList) -> Result {
    let actor = all[index(of: step, rows)]
    if let security = actor.endpoint?.security { security.begin(step, rows) }
    return run(step.head, step.input, actor)
  }

  /// Executes one of several steps; the chunk is passed in full, because copying a step would
  /// retain every part of it.
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

  /// Throws if there is an actor that cannot be driven.
  func requireKnown(_ path: String) throws(TapeError) {
    guard let unknown else { return }
    throw TapeError(
      path: path, place: "actor \(unknown.actor)",
      reason: "it is a machine of kind \(unknown.kind.rawValue), which this version cannot drive; "
        + "its rows can be read with retake sql, and a newer Retake may know it")
  }

  /// Returns an actor's label; empty if it has none or has not started.
  func label(of actor: UInt32) -> String { places[actor].map { all[$0].label } ?? "" }

  /// Returns the actor with a number; nil if it has not started.
  func actor(_ number: UInt32) -> DrivenActor? { places[number].map { all[$0] } }

  /// The states of all actors that expose one.
  var states: [ActorState] {
    all.compactMap { actor in
      actor.machine.machineSnapshot.map {
        ActorState(
          actor: actor.number, peer: actor.words.peer, label: actor.label, snapshot: $0)
      }
    }
  }

  /// The results substituted from the recording; nil if everything was computed.
  var substituted: SubstitutionLedger? {
    guard !parts.isEmpty else { return nil }
    return all.reduce(SubstitutionLedger()) { sum, actor in
      sum + (actor.endpoint?.security?.ledger ?? SubstitutionLedger())
    }
  }

  /// Returns the index of a step's actor, which its first step creates.
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

/// A peer driven by a replay: the full stack, or a small one in tests.
package protocol ReplayedPeer: AnyObject {
  /// Replaces the transport's security; called before the genesis.
  func use(_ security: any SecurityFactory)
  /// Applies an input at an instant and appends the outputs.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// The time at which the peer wants its deadline input.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// All layers' state; nil if the peer has none to show.
  var snapshot: PeerSnapshot? { get }
  /// Returns the `getStats` result, optionally only with objects of some types.
  func stats(of types: Set<String>?) -> StatsReport
}

extension ReplayedPeer {
  package func use(_ security: any SecurityFactory) {}
  package var snapshot: PeerSnapshot? { nil }
  package func stats(of types: Set<String>?) -> StatsReport { StatsReport() }
}

extension PeerMachine: ReplayedPeer {}
