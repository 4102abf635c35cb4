import Media
package import Peer
package import Secure
package import Stats
package import Tape
package import Wire

/// An actor of a replay: a machine that executes the take's inputs.
final class DrivenActor {
  let number: UInt32
  /// The actor's description from its first step, such as its label and clock.
  let words: ActorWords
  let machine: any DrivenMachine
  /// The machine as an endpoint, so that steps need no cast; nil for other machines.
  let endpoint: DrivenEndpoint?

  init(number: UInt32, words: ActorWords, machine: any DrivenMachine) {
    self.number = number
    self.words = words
    self.machine = machine
    endpoint = machine as? DrivenEndpoint
  }

  var label: String { words.label }
  /// The machine's deadline converted to the take's clock; nil if it has none.
  var deadline: Instant? { machine.deadline.map { $0 + words.clock } }
  /// The number of random bytes drawn, including what libraries would have drawn if they had not
  /// been replaced.
  var entropyDrawn: UInt64 { machine.entropyDrawn }
  /// Returns the result of `getStats`; empty for a machine that has no stats.
  func stats(of types: Set<String>?) -> StatsReport {
    (machine as? any StatsTelling)?.stats(of: types) ?? StatsReport()
  }

  /// Applies an input at a time of the take's clock.
  func apply(_ input: any RecordedInput, at now: Instant) -> any RecordedOutputs {
    guard words.clock != .zero else { return machine.apply(input, at: now) }
    return machine.apply(input.moved(by: .zero - words.clock), at: now - words.clock)
  }
}

/// A machine that can report stats.
package protocol StatsTelling: AnyObject {
  /// Returns the `getStats` result, limited to objects of `types` if it is not nil.
  func stats(of types: Set<String>?) -> StatsReport
}

/// The state of an actor, as the debugger shows it.
package struct ActorState: Sendable {
  package var actor: UInt32
  /// The peer number of the actor; nil if it is not an endpoint.
  package var peer: UInt32?
  package var label: String
  package var snapshot: any MachineSnapshot

  /// The name to show: `peer 1`, or `actor 2` for other actors.
  package var name: String { ActorWords.name(actor: actor, peer: peer) }
}

/// An endpoint of a replay, with substitutes for the libraries that do not run.
final class DrivenEndpoint: DrivenMachine, StatsTelling {
  private let peer: any ReplayedPeer
  /// The substitutes for DTLS and SRTP; nil if the libraries run.
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

  /// Ends a step; passes the recorded state after the step to the substitutes.
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

/// The actors of a take; an actor is created when its first step is executed.
struct DrivenActors {
  private(set) var all: [DrivenActor] = []
  /// The first actor of an unknown kind; nil if all kinds are known.
  private(set) var unknown: (actor: UInt32, kind: MachineKind)?
  private var places = ByActor<Int>()
  /// The numbers of the first actors, searched before `places`, because most takes have few actors.
  private var first: [UInt32] = []
  private static let firstLimit = 8
  /// The recorded frames that replace codecs; nil if codecs run.
  let script: FrameScript?

  /// Whether recorded frames also replace observers' codecs, because the media was removed.
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

  /// The outputs of a step, and the actor that executed it.
  typealias Result = (outputs: any RecordedOutputs, actor: DrivenActor)

  mutating func execute(_ step: TapeChunk.Step, _ rows: RowList) -> Result {
    let actor = all[index(of: step, rows)]
    if let security = actor.endpoint?.security { security.begin(step, rows) }
    return run(step.head, step.input, actor)
  }

  /// Executes the step at an index.
  ///
  /// It receives the whole chunk, because copying a step would retain each of its parts.
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

  /// Throws an error if the kind of an actor is unknown.
  func requireKnown(_ path: String) throws(TapeError) {
    guard let unknown else { return }
    throw TapeError(
      path: path, place: "actor \(unknown.actor)",
      reason: "it is a machine of kind \(unknown.kind.rawValue), which this version cannot replay; "
        + "its rows can be read with retake sql, and a newer Retake may support it")
  }

  /// Returns the label of an actor; empty if it has none or has not started.
  func label(of actor: UInt32) -> String { places[actor].map { all[$0].label } ?? "" }

  /// Returns an actor by its number; nil if it has not started.
  func actor(_ number: UInt32) -> DrivenActor? { places[number].map { all[$0] } }

  /// The states of all actors that can show their state.
  var states: [ActorState] {
    all.compactMap { actor in
      actor.machine.machineSnapshot.map {
        ActorState(
          actor: actor.number, peer: actor.words.peer, label: actor.label, snapshot: $0)
      }
    }
  }

  /// Counts of the DTLS and SRTP results that came from the recording; nil if the libraries ran.
  var substituted: SubstitutionLedger? {
    guard !parts.isEmpty else { return nil }
    return all.reduce(SubstitutionLedger()) { sum, actor in
      sum + (actor.endpoint?.security?.ledger ?? SubstitutionLedger())
    }
  }

  /// Returns the index of a step's actor, creating the actor in its first step.
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

/// A peer that a replay can drive: the full stack, or a small one in tests.
package protocol ReplayedPeer: AnyObject {
  /// Replaces the transport's DTLS and SRTP; it is called before the genesis.
  func use(_ security: any SecurityFactory)
  /// Executes an input at an instant and appends its outputs.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// The time at which the peer needs a timer input; nil if it needs none.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The state of all layers; nil if the peer cannot show it.
  var snapshot: PeerSnapshot? { get }
  /// Returns the `getStats` result, limited to objects of `types` if it is not nil.
  func stats(of types: Set<String>?) -> StatsReport
}

extension ReplayedPeer {
  package func use(_ security: any SecurityFactory) {}
  package var snapshot: PeerSnapshot? { nil }
  package func stats(of types: Set<String>?) -> StatsReport { StatsReport() }
}

extension PeerMachine: ReplayedPeer {}
