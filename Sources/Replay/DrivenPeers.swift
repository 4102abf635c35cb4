import Media
import Peer
import Tape
import Wire

/// A peer that is driven from a take.
struct DrivenPeer {
  var number: UInt32
  var label: String
  var machine: any ReplayedPeer
  /// What stands in for DTLS and SRTP; nil when the libraries run.
  var security: RecordedSecurity?

  /// What was added to the peer's own times in the take.
  var clock = Interval.zero

  /// When the peer wants its deadline input, by the clock of the take.
  var deadline: Instant? { machine.deadline.map { $0 + clock } }

  /// Hands an input to the peer at an instant of the take.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if clock != .zero, case .datagram(let datagram, let arrival) = input {
      machine.step(.datagram(datagram, arrival: arrival - clock), at: now - clock, into: &outbox)
    } else {
      machine.step(input, at: now - clock, into: &outbox)
    }
  }

  /// How many random bytes were drawn, with those of what was not run.
  var entropyDrawn: UInt64 {
    security?.drawn(machine.entropyDrawn) ?? machine.entropyDrawn
  }
}

/// The peers of a take; each is made by its first step.
struct DrivenPeers {
  private(set) var all: [DrivenPeer] = []
  /// What stands in for the codecs; nil when they run.
  let script: FrameScript?

  private let parts: RecordedSecurity.Parts
  private let makeCodecs: () -> any CodecFactory
  private let makePeer: (any CodecFactory) -> any ReplayedPeer

  init(
    script: FrameScript?, security parts: RecordedSecurity.Parts,
    codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) {
    self.script = script
    self.parts = parts
    makeCodecs = codecs
    makePeer = peer
  }

  /// Executes a step and gives the peer that made it.
  mutating func execute(
    _ step: TapeChunk.Step, _ rows: RowList, into outbox: inout Outbox<PeerOutput>
  ) -> DrivenPeer {
    let peer = all[index(of: step, rows)]
    script?.begin(step: step.head.number)
    peer.security?.begin(step, rows)
    peer.step(step.input, at: step.head.at, into: &outbox)
    if let security = peer.security {
      security.end(
        deadline: step.head.deadline.map { $0 - peer.clock }, recorded: step.head.entropyDrawn,
        drawn: peer.machine.entropyDrawn)
    }
    return peer
  }

  /// The label of a peer; empty when it has none or was not driven yet.
  func label(of peer: UInt32) -> String { all.first { $0.number == peer }?.label ?? "" }

  /// How much was taken from the recording; nil when all was computed.
  var substituted: SubstitutionLedger? {
    guard !parts.isEmpty else { return nil }
    return all.reduce(SubstitutionLedger()) { $0 + ($1.security?.ledger ?? SubstitutionLedger()) }
  }

  /// The place of a step's peer, which is made when it is the first one of its peer.
  mutating func index(of step: TapeChunk.Step, _ rows: RowList) -> Int {
    if let known = all.firstIndex(where: { $0.number == step.head.peer }) { return known }
    let words = PeerWords(step, rows)
    let codecs: any CodecFactory =
      script.map { ScriptedCodecs(peer: step.head.peer, script: $0) } ?? makeCodecs()
    var peer = DrivenPeer(
      number: step.head.peer, label: words.label, machine: makePeer(codecs), clock: words.clock)
    if !parts.isEmpty {
      let security = RecordedSecurity(parts)
      peer.machine.use(security)
      peer.security = security
    }
    all.append(peer)
    return all.count - 1
  }
}
