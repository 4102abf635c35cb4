import JSEP
import Live
import Media
import Peer
package import SDP
package import Signaling
import Wire

// The peer of a session over WHIP or WHEP, on either side: media flows one way.
extension CallPeer {
  /// How a fragment of candidates is called in the take.
  package static let candidateType = "candidate"
  /// How a fragment that restarts ICE is called in the take.
  package static let restartType = "restart"
  /// How the end of a session is called in the take.
  package static let byeType = "bye"

  // MARK: The client's side

  /// Adds what the client of a session offers: to send everything, or to receive everything.
  package func prepareOffer(_ kind: SessionProtocol) async throws {
    for media in [MediaKind.audio, .video] {
      switch kind {
      case .whip:
        guard let source = plan.source(for: media) else { continue }
        let info = try await connection.addTransceiver(
          media, direction: .sendonly, source: source, streamIDs: ["retake"],
          sendEncodings: media == .video ? plan.layers : [])
        feed(info)
      case .whep: try await connection.addTransceiver(media, direction: .recvonly)
      }
    }
    try await preferCodecs()
  }

  /// Offers without waiting for candidates.
  package func bareOffer() async throws -> SessionDescription {
    let offer = try await connection.createOffer()
    try await connection.setLocalDescription(offer)
    note(offer, isInbound: false)
    return offer
  }

  /// Restarts ICE and gives what the other side must know.
  package func restartOffer() async throws -> SDPFragment {
    try await connection.setLocalDescription(try await connection.createOffer(iceRestart: true))
    return try await gatheredFragment()
  }

  // MARK: The server's side

  /// Answers a client's offer: receives what a publisher sends, sends what a player asks for.
  func answer(_ offer: SessionDescription, _ kind: SessionProtocol) async throws
    -> SessionDescription
  {
    note(offer, isInbound: true)
    try await connection.setRemoteDescription(offer)
    if kind == .whep {
      for transceiver in try await connection.transceivers where transceiver.direction != .stopped {
        guard let source = plan.playerSource(for: transceiver.kind) else { continue }
        let info = try await connection.addTrack(
          transceiver.kind, source: source, streamIDs: ["retake"])
        try await connection.setDirection(.sendonly, of: info.id)
        feed(info)
      }
    }
    try await describe()
    let answer = try await connection.localDescription
    // A publisher is sent nothing.
    if kind == .whep, let answer {
      try look(at: Exchange(offer: offer, answer: answer, isOwnOffer: false))
    }
    let document = try answer.map { try SDPDocument(parsing: $0.sdp) }
    guard let document, document.sections.contains(where: { !$0.isRejected }) else {
      throw CallRefusal(
        .unprocessable,
        "no m-section of the offer can be accepted: audio must be \(videoCodec.names(of: .audio)),"
          + " video \(videoCodec.names(of: .video)), over RTP with DTLS")
    }
    return try await gatheredDescription()
  }

  /// Follows an ICE restart of the client.
  ///
  /// - Parameter offer: the offer that the client's fragment stands for.
  /// - Returns: what the client must know.
  func followRestart(_ offer: SessionDescription) async throws -> SDPFragment {
    try await connection.setRemoteDescription(offer)
    try await connection.setLocalDescription()
    return try await gatheredFragment()
  }

  /// Hands candidates to the connection; those of another ICE session are refused there.
  func addCandidates(of fragment: SDPFragment) async throws {
    for candidate in fragment.candidates {
      try await connection.addICECandidate(
        CandidateInit(
          candidate: candidate.text, sdpMid: candidate.mid,
          usernameFragment: fragment.credentials?.usernameFragment))
    }
    if fragment.hasEnded { try await connection.addICECandidate(nil) }
  }

  // MARK: Both sides

  /// The own ICE parameters with all candidates.
  private func gatheredFragment() async throws -> SDPFragment {
    try await connection.waitForGatheringComplete()
    guard let description = try await connection.localDescription else {
      throw PeerError(name: "OperationError", message: "no local description was made")
    }
    let document = try SDPDocument(parsing: description.sdp)
    return document.fragment(
      candidates: document.sections.flatMap(\.candidates), hasEnded: true)
  }
}

extension SendPlan {
  /// What a player is sent: it has nothing that could be echoed to it.
  func playerSource(for kind: MediaKind) -> MediaSource? {
    let source = source(for: kind)
    return source == .echo ? Filling.generated(kind) : source
  }
}
