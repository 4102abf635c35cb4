// Switches that disable the TW rows.
extension RowSwitch {
  static let twilio: [RowSwitch] = [
    .without("TW1", "AudioSession.swift", "device.connect(AudioDevicePort(self, processor))"),
    .without(
      "TW2", "Negotiation.swift", "transceiverTable.change(index) { $0.prefer(preferences) }"),
    .without(
      "TW3", "VoiceProcessor.swift",
      "if case .setProcessing(let profile) = operation, answer == .ok { processor.set(profile) }"),
    .without(
      "TW4", "SourceLine.swift", "waiting.append(contentsOf: samples)",
      but: "return body(Array(samples))"),
    .before(
      "TW5", "PeerConnection.swift",
      "if loop.mailbox.post(.captured(key, transceiver: transceiver, media, budget))",
      do: """
        _ = loop.mailbox.post(.captured(key, transceiver: transceiver, media, budget))
        return (try? performAndWait(.localDescription)) != nil
        """),
    .without("TW6", "SessionControl.swift", "states.setActive(true, into: &outbox)"),
    .value(
      "TW7", "SessionControl+Requests.swift", "settings.unitFormats != formats", becomes: "false"),
    .value("TW9", "SessionControl.swift", "!connections.isEmpty", becomes: "false"),
    .value(
      "TW10", "AudioSessionMachine.swift", "control.settings.ioType == .aggregated",
      becomes: "false"),
    .value(
      "TW11", "SessionSettings.swift", "channels != [wanted.inputChannels, wanted.outputChannels]",
      becomes: "false"),
    .without(
      "TW12", "VideoCaptureSession.swift",
      "for sender in senders { sender.connection?.send(upright, on: sender.transceiver) }"),
    .value(
      "TW13", "OwnCodecs.swift", "decoders.supportedCodecs.contains(codec.rawValue)",
      becomes: "false"),
    .value(
      "TW14", "Capabilities.swift",
      "!codec.isPassedThrough || encoders.contains(codec.name)", becomes: "!codec.isPassedThrough"),
    .value(
      "TW14.vp9", "LibraryVPXEncoder.swift", "settings.codec == .vp9", becomes: "false",
      by: "CodecTests/vp9IsSentAndDecodedWhereItIsPreferred"),
    .value(
      "TW15", "VideoFrame+Conversion.swift", "format == .bgra ? ARGBToI420 : BGRAToI420",
      becomes: "ARGBToI420"),
    .before(
      "TW16", "VideoFrame.swift", "var span = bytes.mutableSpan",
      do: "bytes = bytes.map { $0 }"),
    .value("TW17", "CameraVideoCapturer.swift", #""v4l2""#, becomes: #""lavfi""#),
    .value(
      "TW17.constraints", "VideoCapturer.swift",
      "supportedFormats.first { constraints.admits($0) }", becomes: "supportedFormats.first",
      by: "CapturerTests/constraintsChooseTheFormat"),
    .without("TW18", "VideoCaptureSession.swift", "source.hub.watch(self)"),
    .value(
      "TW19", "VideoCapturer.swift",
      "abs(sides[0] * sides[1] - sides[2] * sides[3]) + abs(sides[0] - sides[2])", becomes: "0"),
    .value("TW20", "VideoCaptureSession.swift", "capturer.isScreencast", becomes: "false"),
    .value("TW21", "ScreenVideoCapturer.swift", "!isShown(frame)", becomes: "true"),
    .value("TW22", "VideoCapturer.swift", "filter.process(frame)", becomes: "frame"),
    .value(
      "TW23", "AudioSessionMachine.swift", "refusal == .formatMismatch", becomes: "false"),
    .value("TW24", "ScreenVideoCapturer.swift", "now &- lastSent >= repetition", becomes: "false"),
    .value(
      "TW25", "RTCVideoFrame.swift", "native?.rgba() ?? []",
      becomes: "native?.buffer.bytes ?? []"),
    .without("TW9.last", "SessionControl.swift", "connections.close(number)"),
    .value(
      "TW11.mode", "SessionSettings.swift",
      "[.setCategory(wanted.category, options: wanted.options), .setMode(wanted.mode)]",
      becomes: "[.setCategory(wanted.category, options: wanted.options)]"),
    .without(
      "TW18.stop", "VideoCaptureSession.swift",
      "capturer.stopCapture()\n    report(before)", but: "report(before)"),
    .value(
      "TW22.files", "LocalMediaOptions.swift",
      "try FileVideoCapturer(path: fileName)",
      becomes: "PushedVideoCapturer(supportedFormats: [videoFormat])",
      by: "OwnViewTests/withoutACameraTheFileIsSent"),
  ]
}
