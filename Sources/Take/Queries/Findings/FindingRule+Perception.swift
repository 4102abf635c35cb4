// Rules about audio and video as people hear and see them.

extension FindingRule {
  static let perceptionRules: [FindingRule] = [
    // What is put in.
    stoppedCamera, stuckCamera, blackCamera, slowCamera, silentMicrophone, clippedMicrophone,
    constantMicrophone,
    // What encoders make of it.
    cappedEncoder, processorLimit, slowEncoder, encoderBehind, layerEnded, poorPicture,
    huntingResolution, codecChanged, dialTones,
    // What receivers make of it.
    unansweredRequests, requestStorm, stuckDecoder, slowDecoder, droppedFrames, nullDecoder,
    corruptPicture, unsteadyRate, lateRepairDelay, largeKeyFrame, stretchedAudio, lateAudio,
    flushedBuffer, notPlayed, synthesizedPlayout, audioOutage, audioVideoApart,
  ]

  /// Causes of other rules' detections among these, before those that they name themselves.
  static let perceptionCauses: [String: [String]] = [
    "freeze": [
      "key-frame-requests-unanswered", "camera-stopped", "camera-repeats", "simulcast-layer-ended",
      "decoder-stuck", "decoder-slow", "late-repair-delay", "key-frame-too-large",
      "encoder-limited-by-processor",
    ],
    "video-stopped": [
      "key-frame-requests-unanswered", "camera-stopped", "decoder-missing", "decoder-stuck",
      "simulcast-layer-ended",
    ],
    "video-paused": ["camera-stopped"],
    "stream-gap": ["camera-stopped"],
    "one-way-media": ["camera-stopped"],
    "no-key-frame": [
      "key-frame-requests-unanswered", "simulcast-layer-ended", "key-frame-too-large",
    ],
    "late-first-frame": [
      "key-frame-requests-unanswered", "decoder-missing", "decoder-stuck", "key-frame-too-large",
    ],
    "encoder-limited": ["encoder-capped", "encoder-limited-by-processor"],
    "silent-audio": ["microphone-without-signal"],
    "concealed-audio": ["audio-interrupted"],
    // What keeps one end without candidates is what the other one misses.
    "no-remote-candidates": ["turn-refused", "turn-refused-seen", "turn-unreachable"],
    // A way that became longer holds packets up once.
    "path-stalled": ["path-became-longer"],
    "nack-storm": ["reordering", "loss", "loss-burst", "no-repair", "repairs-missing"],
  ]
}
