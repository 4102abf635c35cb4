import JSEP
import Lab
import Media
import Peer
import SDP
import Wire

/// The pattern that W3C recommends for two peers that may both negotiate at any time, over a slow
/// signaling channel: peer 0 is the polite one.
final class PerfectNegotiation {
  private enum Message {
    case description(SessionDescription)
    case candidate(CandidateInit?)
  }

  let call: VirtualCall
  /// `glares` counts how many times the polite peer rolled its own offer back; `failures` lists the
  /// calls that failed unexpectedly.
  private(set) var glares = 0
  private(set) var failures: [String] = []
  private var queues: [[Message]] = [[], []]
  private var seen = [0, 0]
  private var ignoresOffer = [false, false]

  init(_ call: VirtualCall) { self.call = call }

  private var isQuiet: Bool {
    queues.allSatisfy(\.isEmpty) && seen == call.events.map(\.count)
      && (0..<2).allSatisfy { signalingState(of: $0) == "stable" }
  }

  private func signalingState(of peer: Int) -> String {
    call.state("signaling", of: peer) ?? "stable"
  }

  private func expect(_ reply: PeerReply, _ what: String, _ peer: Int) {
    if let error = reply.error { failures.append("\(what) of \(peer): \(error)") }
  }

  /// Responds to a peer's new events: offers if negotiation is needed, and queues its candidates.
  func react(_ peer: Int) {
    while seen[peer] < call.events[peer].count {
      let event = call.events[peer][seen[peer]].event
      seen[peer] += 1
      switch event {
      case .negotiationNeeded where signalingState(of: peer) == "stable": describe(peer)
      case .localCandidate(let candidate): queues[1 - peer].append(.candidate(candidate))
      default: break
      }
    }
  }

  private func describe(_ peer: Int) {
    expect(call.call(peer, .setLocalDescription(nil)), "setLocalDescription", peer)
    if case .description(let description) = call.call(peer, .localDescription) {
      queues[1 - peer].append(.description(description))
    }
  }

  /// Hands the next message to a peer, if there is one.
  func deliver(to peer: Int) {
    guard !queues[peer].isEmpty else { return }
    switch queues[peer].removeFirst() {
    case .description(let description):
      let collides = description.type == .offer && signalingState(of: peer) != "stable"
      ignoresOffer[peer] = collides && peer == 1
      if collides { glares += 1 }
      guard !ignoresOffer[peer] else { return }
      expect(call.call(peer, .setRemoteDescription(description)), "setRemoteDescription", peer)
      if description.type == .offer { describe(peer) }
    case .candidate(let candidate):
      let reply = call.call(peer, .addICECandidate(candidate))
      if !ignoresOffer[peer] { expect(reply, "addICECandidate", peer) }
    }
  }

  /// Delivers messages between the peers until none is left; reports a failure if there is no end.
  func settle() {
    for _ in 0..<400 {
      for peer in 0..<2 {
        react(peer)
        deliver(to: peer)
      }
      for peer in 0..<2 { react(peer) }
      if isQuiet { return }
      call.run(for: .milliseconds(2))
    }
    failures.append("the peers never agree")
  }
}
