import Media
import Peer
import Tape
import Wire

/// A peer that is driven from a take.
struct DrivenPeer {
  var number: UInt32
  var label: String
  var machine: any ReplayedPeer
}

/// The peers of a take; each is made by its first step.
struct DrivenPeers {
  private(set) var all: [DrivenPeer] = []
  /// What stands in for the codecs; nil when they run.
  let script: FrameScript?

  private let makeCodecs: () -> any CodecFactory
  private let makePeer: (any CodecFactory) -> any ReplayedPeer

  init(
    script: FrameScript?, codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) {
    self.script = script
    makeCodecs = codecs
    makePeer = peer
  }

  /// Executes a step and gives the machine that made it.
  mutating func execute(
    _ step: TapeChunk.Step, _ rows: RowList, into outbox: inout Outbox<PeerOutput>
  ) -> any ReplayedPeer {
    let machine = all[index(step, rows)].machine
    script?.begin(step: step.head.number)
    machine.step(step.input, at: step.head.at, into: &outbox)
    return machine
  }

  /// The label of a peer; empty when it has none or was not driven yet.
  func label(of peer: UInt32) -> String { all.first { $0.number == peer }?.label ?? "" }

  private mutating func index(_ step: TapeChunk.Step, _ rows: RowList) -> Int {
    if let known = all.firstIndex(where: { $0.number == step.head.peer }) { return known }
    var label = ""
    if step.head.kind == .genesis, let row = step.inputRows.first,
      case .text(let text) = rows[row, 2]
    {
      label = text
    }
    let codecs: any CodecFactory =
      script.map { ScriptedCodecs(peer: step.head.peer, script: $0) } ?? makeCodecs()
    all.append(DrivenPeer(number: step.head.peer, label: label, machine: makePeer(codecs)))
    return all.count - 1
  }
}
