// Rules about negotiation, ICE, TURN, DTLS, the transport and data channels.

extension FindingRule {
  static let networkRules: [FindingRule] =
    signalingRules + sectionRules + candidateRules + establishmentRules + wayRules + timingRules
    + repairRules

  private static let signalingRules: [FindingRule] = [
    descriptionRefused, answerWithoutOffer, negotiationOpen, slowSignaling, slowDescription,
    restartUnfinished, renegotiationStorm,
  ]

  private static let sectionRules: [FindingRule] = [
    sectionRejected, directionRefused, doubledLines, payloadTypeUnknown, payloadTypeChanged,
    mediaWithoutTransceiver,
  ]

  private static let candidateRules: [FindingRule] = [
    turnRefused, turnRefusedOnTheWire, turnUnreachable, slowServer, socketRefused, noCandidates,
    noRemoteCandidates, nameUnresolved, familyMismatch, onlyHostCandidates, checksUnanswered,
    closedWhileChecking, sendFailed, needlessRelay, relayOverTCP, connectionChurn, iceWarmUp,
  ]

  private static let establishmentRules: [FindingRule] = [
    fingerprintMismatch, dtlsFailed, slowHandshake, slowConnect, consentLost, consentNearlyLost,
  ]

  private static let wayRules: [FindingRule] = [
    pathDead, processStarved, peerStarved, pathStalled, reportsMissing, sentNotArriving,
  ]

  private static let timingRules: [FindingRule] = [
    standingQueue, longerPath, highJitter, clockDrift, mediaClockJump, wallClockJump,
  ]

  private static let repairRules: [FindingRule] = [
    reordering, duplicates, lossWithoutRepair, repairsMissing, lateRepair, nackStorm, srtpRefused,
    dataBehindLoss, estimateLow, pacerDelay,
  ]

  /// Causes of other rules' detections among these, before those that they name themselves.
  static let networkCauses: [String: [String]] = [
    "never-connected": [
      "fingerprint-mismatch", "dtls-failed", "name-unresolved", "turn-refused",
      "turn-refused-seen", "turn-unreachable", "no-candidates", "no-remote-candidates",
      "family-mismatch", "only-host-candidates", "checks-unanswered", "restart-unfinished",
      "negotiation-open", "description-refused", "slow-handshake", "closed-while-checking",
    ],
    "disconnected": ["consent-lost", "path-dead", "restart-unfinished", "process-starved"],
    "ice-flapping": ["path-dead", "consent-lost"],
    "one-way-media": [
      "path-dead", "section-rejected", "direction-refused", "payload-type-unknown",
      "media-without-transceiver", "sent-not-arriving", "srtp-refused", "consent-lost",
    ],
    "stream-gap": [
      "path-dead", "consent-lost", "process-starved", "peer-starved", "path-stalled",
      "sent-not-arriving",
    ],
    "loss": ["path-dead", "standing-queue"],
    "loss-burst": ["path-dead", "standing-queue"],
    "loss-at-peer": [
      "path-dead", "standing-queue", "sent-not-arriving", "no-repair", "repairs-missing",
    ],
    "high-round-trip": [
      "standing-queue", "path-became-longer", "process-starved", "peer-starved", "path-stalled",
    ],
    "freeze": [
      "path-dead", "consent-lost", "process-starved", "peer-starved", "path-stalled",
      "repairs-missing", "no-repair", "standing-queue", "payload-type-unknown", "rtcp-silence",
      "path-became-longer",
    ],
    "video-stopped": [
      "path-dead", "consent-lost", "process-starved", "peer-starved", "payload-type-unknown",
      "direction-refused", "section-rejected", "sent-not-arriving", "no-repair", "rtcp-silence",
    ],
    "no-key-frame": [
      "path-dead", "consent-lost", "repairs-missing", "no-repair", "payload-type-unknown",
      "rtcp-silence", "process-starved", "peer-starved",
    ],
    "late-first-frame": [
      "path-dead", "slow-handshake", "slow-connect", "payload-type-unknown", "no-repair",
      "process-starved",
    ],
    "concealed-audio": [
      "path-dead", "consent-lost", "process-starved", "peer-starved", "path-stalled",
      "payload-type-unknown", "standing-queue", "high-jitter", "reordering", "clock-drift",
      "srtp-refused", "path-became-longer",
    ],
    "audio-paused": ["process-starved", "peer-starved", "consent-lost"],
    "encoder-limited": ["standing-queue", "rtcp-silence", "path-dead", "high-jitter"],
    "sequence-restart": [],
  ]
}
