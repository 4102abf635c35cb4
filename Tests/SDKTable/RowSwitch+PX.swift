// Switches that disable the PX rows.
extension RowSwitch {
  static let pixiv: [RowSwitch] = [
    .value(
      "PX1", "PeerConnectionFactory.swift",
      "audioDeviceModule.map { AudioSource(device: $0) } ?? AudioSource()",
      becomes: "AudioSource()"),
    .without("PX2", "RTCAudioDeviceModule.swift", "_ = try? audioSession?.deliver(chunk)"),
    .without(
      "PX3", "SessionControl.swift",
      "if states.unit != .uninitialized { return .audioUnitActive }"),
    .without(
      "PX4", "SourceLine.swift",
      "units.append(contentsOf: repeatElement(silence, count: Int(count)))"),
    .without(
      "PX5", "SourceLine.swift", "waiting.append(contentsOf: samples)",
      but: "return body(Array(samples))"),
    .without("PX6", "RTCAudioSession.swift", "kept.apply(to: session)"),
    .value("PX7", "SessionControl.swift", "!isManual || isEnabled", becomes: "!isManual"),
    .value(
      "PX8", "VoiceProcessor.swift", "state.profile == .voice || state.controlsGain",
      becomes: "state.controlsGain"),
    .value(
      "PX9", "SessionControl.swift", "policy.inputRequest == .whenSending", becomes: "true"),
    .value("PX10", "AudioSessionMachine.swift", "units.count == 1", becomes: "!units.isEmpty"),
    .without("PX3.counters", "AudioSessionMachine.swift", "counters.drops += 1"),
    .value(
      "PX5.playing", "PlayoutQueue.swift", "sum.map { Int16(clamping: $0) }",
      becomes: "sum.map { _ in 0 }", by: "PlayoutTests/blocksOfTracksAreMixedInOrder"),
    .value(
      "PX8.subtype", "RTCAudioDeviceModule.swift", "isVoice ? .voice : .custom(subType)",
      becomes: ".voice", by: "MachineDeviceTests/aBroadcastIsReceivedWithAudioAndVideo"),
    .without("PX10.chosen", "AudioSessionMachine.swift", "mixer.remove(number, into: &outbox)"),
  ]
}
