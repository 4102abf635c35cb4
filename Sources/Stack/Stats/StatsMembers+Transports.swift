// What reports have of transports, candidates and certificates, when, and from what.
extension StatsMembers {
  static let transport = StatsMembers(
    "transport",
    given: [
      ("packetsSent packetsReceived bytesSent bytesReceived", always, "datagrams, without STUN"),
      ("iceRole iceLocalUsernameFragment iceState", always, "ICE"),
      ("dtlsState", always, "DTLS"),
      ("selectedCandidatePairId", "while a pair is in use", "ICE"),
      ("selectedCandidatePairChanges", always, "ICE; the first pair counts"),
      ("localCertificateId", "from the handshake's beginning on", "DTLS"),
      (
        "remoteCertificateId tlsVersion dtlsCipher dtlsRole srtpCipher", "after the handshake",
        "DTLS; srtpCipher where media is protected"
      ),
    ],
    missing: [
      ("ccfbMessagesSent ccfbMessagesReceived", "feedback is transport-cc, not RFC 8888")
    ])

  static let pair = StatsMembers(
    "candidate-pair",
    given: [
      ("transportId localCandidateId remoteCandidateId state nominated", always, "ICE"),
      ("packetsSent packetsReceived bytesSent bytesReceived", always, "datagrams, without STUN"),
      (
        "lastPacketSentTimestamp lastPacketReceivedTimestamp", "after the first of them",
        "the clock, and the kernel's receive time"
      ),
      ("totalRoundTripTime", always, "checks that were answered"),
      ("currentRoundTripTime", "after the first answer", "the last check that was answered"),
      (
        "availableOutgoingBitrate", "of the pair in use, once there is an estimate",
        "congestion control"
      ),
      (
        "availableIncomingBitrate", "of the pair in use, where REMB is the feedback",
        "the estimate that is sent"
      ),
      ("requestsReceived responsesSent responsesReceived", always, "STUN"),
      ("requestsSent", always, "STUN, without repetitions"),
      ("consentRequestsSent", always, "STUN after the pair was chosen (RFC 7675)"),
      ("packetsDiscardedOnSend bytesDiscardedOnSend", always, "what the system refused to send"),
    ],
    further: [("priority", always, "ICE (RFC 8445 section 6.1.2.3)")])

  static let localCandidate = StatsMembers(
    "local-candidate",
    given: [
      ("transportId address port protocol candidateType priority foundation", always, "ICE"),
      ("url", "of what a server gave", "the configuration"),
      ("relayProtocol", "of relayed candidates", "the configuration"),
      ("relatedAddress relatedPort", "of reflexive and relayed candidates", "ICE"),
      ("usernameFragment", always, "ICE"),
      ("tcpType", "of TCP candidates", "ICE (RFC 6544)"),
    ],
    further: [
      (
        "networkType", "of candidates of an interface of this host",
        "the system, by the interface (provisional statistics)"
      )
    ])

  static let remoteCandidate = StatsMembers(
    "remote-candidate",
    given: [
      ("transportId port protocol candidateType priority foundation", always, "signaling, or ICE"),
      ("address", "of candidates that were signaled", "signaling"),
      ("relatedAddress relatedPort", "of reflexive and relayed candidates", "signaling"),
      ("usernameFragment", always, "signaling"),
      ("tcpType", "of TCP candidates", "signaling (RFC 6544)"),
    ],
    missing: [("url relayProtocol", "must not exist: only the other side knows its servers")])

  static let certificate = StatsMembers(
    "certificate",
    given: [
      ("fingerprint fingerprintAlgorithm base64Certificate", always, "DTLS"),
      (
        "issuerCertificateId", "where the peer shows who issued its certificate",
        "the chain in its Certificate message; browsers sign their own"
      ),
    ])
}
