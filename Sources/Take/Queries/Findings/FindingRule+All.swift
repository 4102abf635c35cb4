extension FindingRule {
  /// All rules, in the order in which a session can go wrong.
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

  /// Returns the rule with an id, if there is one.
  package static func named(_ id: String) -> FindingRule? { all.first { $0.id == id } }

  /// The ids of rules that can cause this one, most likely first.
  package var allCauses: [String] {
    (Self.networkCauses[id] ?? []) + (Self.perceptionCauses[id] ?? []) + causes
  }
}
