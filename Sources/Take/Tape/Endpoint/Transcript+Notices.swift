import Peer
import SDP
import Stats
import Wire

// What is told of tracks, candidates and ends, with reasons.
extension Transcript {
  /// Adds the row of what a peer told as a notice, or of a track that was muted.
  mutating func appendNotice(_ event: PeerEvent) {
    switch event {
    case .trackChanged(let change):
      detail(
        change.kind.rawValue,
        [
          ("transceiver", .integer(Int64(change.transceiver))),
          ("direction", .text(Direction(isInbound: change.isInbound).rawValue)),
          ("reason", change.reason.map { .text($0.rawValue) }),
        ])
    case .candidatesRemoved(let candidates):
      for candidate in candidates {
        detail(
          "candidateremoved",
          [
            ("candidate", .text(candidate.candidate)),
            ("sdpMLineIndex", candidate.sdpMLineIndex.map { .integer(Int64($0)) }),
            ("sdpMid", candidate.sdpMid.map { .text($0) }),
            ("usernameFragment", candidate.usernameFragment.map { .text($0) }),
          ])
      }
    case .gatheringError(let error):
      add(EventRow(type: "icecandidateerror", detail: CanonicalJSON.text(error)))
    case .selectedPair(let change):
      add(EventRow(type: "selectedcandidatepairchange", detail: CanonicalJSON.text(change)))
    case .mutedSpeech(let transceiver, let isSpeaking):
      detail(
        "mutedspeech",
        [
          ("phase", .text(isSpeaking ? "began" : "ended")),
          ("transceiver", .integer(Int64(transceiver))),
        ])
    case .connectionEnded(let reason):
      detail("connectionend", [("reason", .text(reason.rawValue))])
    default: break
    }
  }
}
