/// The findings that name each fault, by id.
package enum AcceptedFindings {
  /// Returns the ids of findings that name a fault in the recorder's take.
  package static func of(_ kind: FaultKind, recorded: Int?, culprit: Int) -> Set<String> {
    // The culprit's take shows that the process did not run; the other end's shows only that its
    // peer stalled.
    if kind == .ownProcess || kind == .peerProcess {
      return recorded == nil || recorded == culprit ? ["process-starved"] : ["peer-starved"]
    }
    if let recorded, recorded != culprit, let ids = byVictim[kind] { return ids }
    return connection[kind] ?? path[kind] ?? media[kind] ?? []
  }

  /// The findings that are possible in the other end's take, where they differ from the culprit's.
  ///
  /// The other end does not know a server's answer, or why an encoder produces no frames or few
  /// bits.
  private static let byVictim: [FaultKind: Set<String>] = [
    .encoderStops: ["video-paused"], .cameraStops: ["video-paused", "camera-stopped"],
    .serverSilent: ["no-remote-candidates"],
    .turnRefused: ["no-remote-candidates", "turn-refused", "turn-refused-seen"],
    .relayExpires: ["sent-not-arriving", "consent-lost", "path-dead"],
    // Only the encoder's end knows the encoder's limits, and only the muted end knows that its
    // participant speaks.
    .tinyBitrate: ["video-held-down"], .maxBitrate: ["video-held-down"],
    .bandwidthLine: ["video-held-down"], .mutedSpeaker: ["audio-muted"],
    .slowProcessor: ["media-in-bursts"], .inactiveDirection: ["media-never-came"],
  ]

  private static let path: [FaultKind: Set<String>] = [
    .audioLoss: ["loss", "loss-at-peer", "loss-burst"],
    .videoLoss: ["loss", "loss-at-peer", "loss-burst"],
    .loss: ["loss", "loss-at-peer", "loss-burst"],
    .lossyPath: ["loss", "loss-at-peer", "loss-burst"],
    .lossBurst: ["loss-burst", "loss", "loss-at-peer"],
    .mediaDeadOneWay: ["one-way-media", "stream-gap", "sent-not-arriving"],
    .repairsLost: ["repairs-missing", "no-repair"],
    .bottleneck: ["standing-queue"],
    .jitter: ["high-jitter"],
    .reordering: ["reordering"],
    .duplicates: ["duplicates"],
    .longDelay: ["high-round-trip", "path-became-longer"],
    .deadPath: ["path-dead"],
    .consentLost: ["consent-lost", "consent-nearly-lost"],
    .rtcpLost: ["rtcp-silence"],
    .dataBehindLoss: ["data-behind-loss"],
    // One end receives nothing; the other end, whose packets are blocked, gets no responses.
    .blockedOneWay: [
      "path-dead", "one-way-media", "sent-not-arriving", "consent-lost", "consent-nearly-lost",
    ],
    .addressChanges: ["address-changed"],
    .largePacketsLost: ["large-packets-lost"],
    .corruptPackets: ["srtp-refused"],
    .shortOutages: ["loss-burst", "loss", "loss-at-peer"],
    .delayOneWay: ["high-round-trip", "path-became-longer"],
    .channelStaysClosed: ["channel-not-open"],
  ]

  private static let connection: [FaultKind: Set<String>] = [
    .turnRefused: ["turn-refused", "turn-refused-seen"],
    .wrongFingerprint: ["fingerprint-mismatch", "dtls-failed"],
    .noPair: ["checks-unanswered"],
    .unresolvedName: ["name-unresolved"],
    .rejectedSection: ["section-rejected", "refused-section"],
    .inactiveDirection: ["direction-refused"],
    .slowHandshake: ["slow-handshake"],
    .unansweredRestart: ["restart-unfinished"],
    .noRepairs: ["no-repair"],
    .renegotiations: ["renegotiation-storm"],
    .unknownPayloadType: ["payload-type-unknown"],
    .clockSkew: ["clock-drift"],
    .sequenceRestart: ["sequence-restart"],
    .unevenTimes: ["uneven-timestamps"],
    .mediaClockJumps: ["media-clock-jump"],
    .wallClockJumps: ["wall-clock-jump"],
    .wrongRoles: ["dtls-roles-clash"],
    .wrongMapping: ["payload-types-crossed", "video-undecodable"],
    .wrongPassword: ["ice-password-wrong"],
    .candidatesLost: ["no-remote-candidates"],
    .relayExpires: ["turn-refused", "turn-refused-seen"],
    .serverSilent: ["turn-unreachable"],
    .switchedOff: ["media-switched-off"],
  ]

  private static let media: [FaultKind: Set<String>] = [
    .cameraStops: ["camera-stopped"],
    .cameraRepeats: ["camera-repeats", "picture-still"],
    .cameraBlack: ["camera-black"],
    .silentMicrophone: ["microphone-without-signal", "silent-audio"],
    .clippedMicrophone: ["clipped-microphone"],
    .mutedSpeaker: ["speech-while-muted"],
    .bandwidthLine: ["encoder-capped"],
    .maxBitrate: ["encoder-capped"],
    .layerEnds: ["simulcast-layer-ended"],
    .codecChanges: ["codec-changed", "payload-type-changed"],
    .slowProcessor: [
      "process-starved", "encoder-limited-by-processor", "encoder-behind-source",
    ],
    .audioVideoApart: ["audio-video-apart"],
    .requestsUnanswered: ["key-frame-requests-unanswered"],
    .tinyBitrate: ["encoder-capped"],
    .quietMicrophone: ["microphone-quiet"],
    .brokenMicrophone: ["microphone-gaps"],
    .encoderStops: ["encoder-stopped"],
  ]
}
