extension FindingRule {
  /// All rules: first those about the connection and the network, then those about the transport
  /// and the media.
  package static let all: [FindingRule] = connectionRules + transportRules + mediaRules

  static let connectionRules: [FindingRule] =
    [neverConnected, disconnected, flapping, relay, refusedSection] + networkRules

  static let transportRules: [FindingRule] = [
    roundTrip, oneWay, streamGap, loss, lossBurst, lossAtPeer, sequenceRestart, rtcpOfOtherSource,
    unevenTimestamps,
  ]

  static let mediaRules: [FindingRule] =
    [
      lateFrame, noKeyFrame, lateKeyFrame, freeze, stopped, pausedVideo, concealed, silence,
      pausedAudio,
      mutedSpeech, speechWhileMuted, limited,
    ] + perceptionRules + receiverRules

  /// Returns the rule with the given id, if there is one.
  package static func named(_ id: String) -> FindingRule? { all.first { $0.id == id } }

  /// The ids of rules whose detections can cause this rule's detections, most likely first.
  package var allCauses: [String] {
    (Self.networkCauses[id] ?? []) + (Self.perceptionCauses[id] ?? []) + causes
      + (Self.brokenByLoss.contains(id) ? [Self.loss.id] : [])
  }
}

// MARK: - FindingSide

/// The part of a call in which a finding's cause lies.
package enum FindingSide: String, Sendable, Hashable, CaseIterable {
  /// The path between the two ends, including NATs and firewalls.
  case network
  /// A STUN or TURN server.
  case server
  /// The signaling, or what the applications negotiated.
  case signaling
  /// The sender of the affected media: its devices, encoder or application.
  case sender
  /// The receiver of the affected media: its decoder or loudspeaker.
  case receiver
  /// The end whose rows contain the worst detection.
  case end
  /// The end opposite the end whose rows contain the worst detection.
  case otherEnd = "other-end"

  /// Returns the side of a rule's findings; nil if the rule does not determine it.
  static func of(_ rule: String) -> FindingSide? { table[rule] }

  /// The ids of all rules with a side.
  static var ids: Set<String> { Set(table.keys) }

  private static let rules: [FindingSide: [String]] = [
    .network: [
      "address-changed", "checks-unanswered", "connection-churn", "consent-lost",
      "consent-nearly-lost", "data-behind-loss", "duplicates", "family-mismatch", "high-jitter",
      "high-round-trip", "ice-flapping", "large-packets-lost", "late-repair", "late-repair-delay",
      "loss", "loss-at-peer", "loss-burst", "name-unresolved", "path-became-longer", "path-dead",
      "path-stalled", "reordering", "repairs-missing", "rtcp-silence", "sent-not-arriving",
      "srtp-refused", "standing-queue",
    ],
    .server: ["turn-refused", "turn-refused-seen", "turn-unreachable", "slow-server"],
    .signaling: [
      "answer-without-offer", "description-refused", "direction-refused", "dtls-roles-clash",
      "duplicate-lines", "fingerprint-mismatch", "ice-password-wrong", "media-switched-off",
      "media-without-transceiver", "negotiation-open", "no-remote-candidates", "no-repair",
      "only-host-candidates", "payload-type-unknown", "payload-types-crossed", "refused-section",
      "renegotiation-storm",
      "restart-unfinished", "section-rejected", "slow-signaling",
    ],
    .sender: [
      "audio-paused", "camera-black", "camera-repeats", "camera-slow", "camera-stopped",
      "clipped-microphone", "clock-drift", "codec-changed", "encoder-behind-source",
      "encoder-capped", "encoder-limited-by-processor", "encoder-slow", "encoder-stopped",
      "key-frame-requests-unanswered", "key-frame-too-large", "media-absent", "media-clock-jump",
      "microphone-constant", "microphone-gaps", "microphone-quiet", "microphone-without-signal",
      "pacer-delay", "picture-coarse", "rtcp-other-ssrc", "sequence-restart", "silent-audio",
      "simulcast-layer-ended", "speech-while-muted", "uneven-timestamps", "video-paused",
    ],
    .receiver: [
      "audio-not-played", "decoder-missing", "decoder-slow", "decoder-stuck", "playout-starved",
      "silent-while-speaking",
    ],
    .end: [
      "no-candidates", "process-starved", "send-failed", "slow-description", "socket-refused",
    ],
    .otherEnd: ["peer-starved", "wall-clock-jump"],
  ]

  private static let table: [String: FindingSide] = {
    var table: [String: FindingSide] = [:]
    for (side, ids) in rules { for id in ids { table[id] = side } }
    return table
  }()
}

// MARK: - FindingConfidence

/// How certain the cause and the side of a finding are.
package enum FindingConfidence: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// The evidence fits another cause equally well; the finding names that cause.
  case possible = 1
  /// Inferred from effects, from the remote peer's reports, or at one end only.
  case likely
  /// The cause itself is in the take: in its packets, messages or frames, or in what the system
  /// reported.
  case certain

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }

  package var name: String { "\(self)" }

  /// Creates the confidence with the given name; fails if there is none.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }

  /// The next lower confidence, for a finding whose evidence may be incomplete.
  var weakened: Self { Self(rawValue: rawValue - 1) ?? .possible }
}

/// How much a rule's evidence shows of the cause, which determines the detections' confidence.
package enum FindingBasis: Sendable, Hashable {
  /// The cause itself, at either end.
  case direct
  /// The cause at the end where it lies, but only its effects at the other end.
  case atCause
  /// The cause at the end where it lies; the other end cannot distinguish it from another cause.
  case hiddenAtOtherEnd
  /// The cause, if the take has both ends. One end alone does not show whether the path or the
  /// remote peer is the cause.
  case bothEnds
  /// Only the effects of the cause.
  case effects
  /// A symptom that has several possible causes, which the evidence names.
  case ambiguous

  /// Returns the basis of a rule's detections; nil for a rule from a rule file.
  static func of(_ rule: String) -> FindingBasis? { table[rule] }

  /// The ids of all rules with a basis.
  static var ids: [String] { rules.flatMap(\.ids) }

  private static let rules: [(basis: FindingBasis, ids: [String])] = [
    (
      .direct,
      [
        "address-changed", "answer-without-offer", "audio-interrupted", "audio-late",
        "audio-stretched", "audio-video-apart", "channel-not-open", "closed-while-checking",
        "codec-changed", "concealed-audio", "data-behind-loss", "description-refused",
        "direction-refused", "disconnected", "dtls-failed", "dtls-roles-clash", "dtmf",
        "duplicate-lines", "estimate-low", "family-mismatch", "fingerprint-mismatch",
        "frame-rate-unsteady", "frames-dropped", "freeze", "high-round-trip",
        "ice-password-wrong", "ice-warm-up", "jitter-buffer-flushed", "key-frame-late",
        "key-frame-storm", "late-first-frame", "late-repair", "loss", "loss-burst",
        "media-clock-jump", "media-in-bursts", "media-switched-off",
        "media-without-transceiver", "nack-storm",
        "name-unresolved", "needless-relay", "negotiation-open", "never-connected",
        "no-candidates", "no-key-frame", "no-remote-candidates", "no-repair", "one-way-media",
        "only-host-candidates", "payload-type-changed", "payload-type-unknown",
        "payload-types-crossed", "picture-coarse", "process-starved", "refused-section",
        "relay-in-use", "relay-over-tcp", "renegotiation-storm", "reordering",
        "resolution-hunts", "restart-unfinished", "rtcp-other-ssrc", "section-rejected",
        "send-failed", "sequence-restart", "silent-audio", "slow-connect", "slow-description",
        "slow-handshake", "slow-signaling", "socket-refused", "speech-while-muted",
        "srtp-refused", "stream-gap", "turn-refused", "turn-refused-seen", "uneven-timestamps",
        "video-stopped", "video-undecodable", "wall-clock-jump",
      ]
    ),
    (
      .atCause,
      [
        "audio-not-played", "camera-repeats", "camera-slow", "camera-stopped",
        "clipped-microphone", "clock-drift", "decoder-missing", "decoder-slow", "decoder-stuck",
        "encoder-behind-source", "encoder-capped", "encoder-limited",
        "encoder-limited-by-processor", "encoder-slow", "encoder-stopped",
        "microphone-constant", "microphone-gaps", "microphone-quiet",
        "microphone-without-signal", "pacer-delay", "playout-starved", "silent-while-speaking",
        "simulcast-layer-ended",
      ]
    ),
    (.hiddenAtOtherEnd, ["audio-paused", "camera-black", "video-paused"]),
    (
      .bothEnds,
      [
        "checks-unanswered", "connection-churn", "consent-lost", "consent-nearly-lost",
        "duplicates", "high-jitter", "ice-flapping", "key-frame-requests-unanswered",
        "media-absent", "path-became-longer", "path-dead", "path-stalled", "repairs-missing",
        "rtcp-silence", "sent-not-arriving", "standing-queue",
      ]
    ),
    (
      .effects,
      [
        "key-frame-too-large", "large-packets-lost", "late-repair-delay", "loss-at-peer",
        "peer-starved", "picture-corrupt", "slow-server", "turn-unreachable", "video-held-down",
      ]
    ),
    (.ambiguous, ["audio-muted", "media-never-came", "picture-still"]),
  ]

  private static let table: [String: FindingBasis] = {
    var table: [String: FindingBasis] = [:]
    for (basis, ids) in rules { for id in ids { table[id] = basis } }
    return table
  }()

  /// Creates the basis for a confidence that a rule file states for a rule or a row.
  init(_ confidence: FindingConfidence) {
    self =
      switch confidence {
      case .certain: .direct
      case .likely: .effects
      case .possible: .ambiguous
      }
  }

  /// Returns the confidence of a detection, and why it is not higher; the reason is empty for a
  /// certain detection.
  ///
  /// - Parameters:
  ///   - rule: the detection's rule.
  ///   - ends: which ends the take has.
  func judge(
    _ detection: Detection, of rule: FindingRule, _ ends: FindingEnds
  ) -> (confidence: FindingConfidence, reservation: String) {
    let hasInside = ends.hasInside(of: detection.peer)
    let isWhole = hasInside && ends.hasOtherInside(of: detection.peer)
    let isAtCause = hasInside && (rule.side ?? .sender).isLocal(detection)
    let isCounted = ends.isReported(detection.peer) && [.stream, .flow].contains(rule.scope)
    return switch self {
    case .ambiguous: (.possible, "the evidence fits both")
    case .hiddenAtOtherEnd where !isAtCause: (.possible, "\(Self.alike(rule.id)) looks the same")
    case .effects: (.likely, "inferred from its effects")
    case _ where isCounted: (.likely, "known from statistics alone")
    case .atCause where !isAtCause: (.likely, "seen from the remote end")
    case .bothEnds where !isWhole: (.likely, "seen only at one end")
    default: (.certain, "")
    }
  }

  /// Names the other cause that would look the same to a receiver.
  private static func alike(_ rule: String) -> String {
    switch rule {
    case "camera-black": "a camera that was switched off"
    case "audio-paused": "a microphone that delivers nothing"
    default: "an encoder that hangs"
    }
  }
}

extension FindingSide {
  /// Returns whether a cause on this side is at the peer that made the detection.
  func isLocal(_ detection: Detection) -> Bool {
    switch self {
    case .sender: detection.direction != .inbound
    case .receiver: detection.direction != .outbound
    case .end: true
    case .network, .server, .signaling, .otherEnd: false
    }
  }
}
