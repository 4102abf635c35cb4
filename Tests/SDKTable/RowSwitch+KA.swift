// Switches that disable the KA rows.
extension RowSwitch {
  static let connectLive: [RowSwitch] = media + rooms + clients

  /// Switches for signing in, audio and local media.
  private static let media: [RowSwitch] = [
    .value(
      "KA1", "Package.swift", #".library(name: "Retake", targets: ["Retake"])"#,
      becomes: #".library(name: "Unnamed", targets: ["Retake"])"#),
    .value("KA2", "RTCVideoCapturer.swift", "access.isAllowed(.video)", becomes: "true"),
    .before(
      "KA3", "RoomConfig.swift", "let question = Question(",
      do: #"return RoomToken(text: "made up", lifetimeSeconds: nil)"#),
    .without("KA4", "RoomMachine+Calls.swift", "token.forget()"),
    .without("KA5", "SessionControl.swift", "call.apply(to: &settings.wanted)"),
    .without("KA6", "SessionControl.swift", "states.setInterrupted(true, into: &outbox)"),
    .value(
      "KA7", "ReceiverPool.swift", "min(max(1, maximum), 1_000)", becomes: "1_000"),
    .value(
      "KA8", "RemoteMedia.swift", #"isMirrored ? frame.map(\.mirrored) : frame"#, becomes: "frame"),
    .without(
      "KA9", "LocalMedia.swift", "if options.source == .file { try startSound() }"),
    .value(
      "KA10", "CameraVideoCapturer.swift", "orientation.rotation(by: type).rawValue", becomes: "0"),
    .value(
      "KA10.application", "CameraVideoCapturer.swift", "state.withLock { $0.application }",
      becomes: ".none"),
    .value("KA11", "LocalTracks.swift", "options.autoGain", becomes: "false"),
    .value("KA12", "ReceiverPool.swift", "min(maximum, size + growth)", becomes: "size"),
    .without(
      "KA13", "LocalMedia.swift",
      "try await switchCamera(position: newValue, isMirror: isMirror)"),
    .without(
      "KA14", "LocalMedia.swift",
      "taken = try LocalMedia.capturer(options, nil, orientation, program)",
      but: "taken = try? LocalMedia.capturer(options, nil, orientation, program)"),
    .without(
      "KA15", "Room.swift",
      "if let delegate, let room = room.room { delegate.receive(update, of: room) }"),
    .without(
      "KA16", "RoomMachine+Events.swift",
      "announce(localMedia.removeDeferred(), call: nil, at: now, into: &outbox)"),
    .value("KA35", "LocalMedia.swift", "video?.hd == true", becomes: "false"),
    .without("KA36", "LocalMedia.swift", "track.isEnabled = info.isActive"),
    .without("KA36.always", "LocalTracks.swift", "part.change { $0.isAlwaysOn = newValue }"),
    .without("KA40", "RemoteMedia.swift", "former?()"),
    .value(
      "KA2.microphone", "RTCAudioDeviceModule.swift", "CaptureAccess.shared.isAllowed(.audio)",
      becomes: "true"),
    .value(
      "KA5.buffer", "SessionSettings.swift", "ioBufferMilliseconds != wanted.ioBufferMilliseconds",
      becomes: "false"),
    .without(
      "KA6.routes", "SessionControl.swift",
      "outbox.append(.event(.didChangeRoute(reason, previous: previous, current: next)))",
      by: "SessionEventTests/aRouteWithOtherFormatsRecreatesTheDevice"),
    .before(
      "KA6.server", "SessionControl.swift", "outbox.append(.event(.mediaServerTerminated))",
      do: "break", by: "SessionEventTests/aTerminatedMediaServerReleasesTheDevice"),
    .value(
      "KA9.fallback", "LocalMedia.swift", "try await !startFile(inPlaceOf: session.capturer)",
      becomes: "true", by: "OwnViewTests/withoutACameraTheFileIsSent"),
    .value(
      "KA11.voice", "VoiceProcessor.swift", "state.profile == .voice || state.controlsGain",
      becomes: "state.controlsGain"),
    .without(
      "KA13.stop", "LocalMedia.swift", "session?.stop()",
      by: "MeetingTests/ownMediaNeedsACapturerThatStarts"),
    .without(
      "KA35.others", "LocalMedia.swift", "driver?.post(.updateLocal(info))",
      by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
  ]

  /// Switches for the state of rooms.
  private static let rooms: [RowSwitch] = [
    .without("KA17", "RoomMachine+Calls.swift", "want(.leave, at: now, into: &outbox)"),
    .without("KA18", "RoomModel.swift", "state.participants[id] = made"),
    .without(
      "KA19", "RoomMachine+Calls.swift",
      "want(.subscribe(action, taken), at: now, into: &outbox)"),
    .value("KA20", "ScreenShare.swift", "now < restsUntil", becomes: "false"),
    .without("KA21", "ScreenShare.swift", "status = .broadcastStarted"),
    .before(
      "KA22", "ScreenShare.swift", "let isFirst = state.withLock { state in", do: "return"),
    .value("KA23", "Room.swift", "$0.role != .down", becomes: "false"),
    .value(
      "KA24", "ReceiverPool.swift", "!isMuted && !receiver.isMuted", becomes: "!receiver.isMuted"),
    .without(
      "KA25", "RoomMachine+Calls.swift",
      "want(.sendMessage(action, message), at: now, into: &outbox)"
    ),
    .value("KA26", "ParticipantTable.swift", "state == .connecting", becomes: "false"),
    .value(
      "KA27", "RoomMachine+Events.swift", #"[room.participant] + people.others.map(\.id)"#,
      becomes: "[room.participant]"),
    .without(
      "KA28", "RoomMachine+Events.swift", "finish(ending, at: now, into: &outbox)",
      but: "finish(RoomEnding(.disconnected), at: now, into: &outbox)"),
    .before("KA29", "RoomMachine+Events.swift", "if failure.isCritical {", do: "return"),
    .without(
      "KA30", "RoomMachine+Events.swift", "outbox.append(.event(.participantLeft(id, cause)))"),
    .value(
      "KA31", "LocalMediaTable.swift",
      "entries[index].connection.map { .connection($0, .detach(id)) }", becomes: "nil"),
    .without(
      "KA32", "RoomMachine+Events.swift", "outbox.append(pool.remove(id, people, links))"),
    .value("KA33", "VoiceSelection.swift", "holders.count >= count", becomes: "false"),
    .without(
      "KA34", "RoomMachine+Events.swift", "outbox.append(.event(.remoteStateChanged(changed)))"),
    .value("KA37", "HostedRoom.swift", "1 << (offered.count - 1 - place)", becomes: "1"),
    .without(
      "KA38", "VoiceSelection.swift",
      #"state.exempt = Set(voices.filter(\.isAlwaysOn).map(\.media))"#),
    .value(
      "KA39", "ParticipantTable.swift", "media(published.id) == nil",
      becomes: "media.allSatisfy({ $0.owner != published.owner || $0.kind != published.kind })"),
    .without(
      "KA41", "ScreenShare.swift",
      "self?.end(isLeaving ? .meetingFinished : .stopBroadcast)"),
    .value("KA41.pause", "ScreenShare.swift", "!isPaused", becomes: "true"),
    .without("KA43", "RoomMachine+Calls.swift", "links.restartAll(at: now)"),
    .value(
      "KA18.occupants", "RoomModel.swift",
      "participants.values.filter { $0.isVideoSubscribed }",
      becomes: "participants.values.filter { _ in false }"),
    .value(
      "KA23.levels", "RoomModel.swift", "audio.track?.audioLevel?.percent ?? 0", becomes: "0"),
    .value("KA23.received", "Room.swift", "$0.role != .up", becomes: "false"),
    .value(
      "KA24.each", "ReceiverPool.swift", "!isMuted && !receiver.isMuted", becomes: "!isMuted"),
    .without(
      "KA25.received", "RoomMachine+Events.swift", "outbox.append(.event(.message(message)))"),
    .without(
      "KA30.entering", "RoomMachine+Events.swift",
      "outbox.append(.event(.participantEntered(info.id)))"),
    .value(
      "KA31.published", "LocalMediaTable.swift",
      "[.event(.localMediaPublished(id, media))]", becomes: "[]",
      by: "PublishingTests/mediaPublishedBeforeEnteringWaits"),
    .without(
      "KA32.published", "RoomMachine+Events.swift",
      "for media in news { outbox.append(.event(.remotePublished(media))) }",
      by: "EnteringTests/participantsAreReportedOnEntryLocalFirst"),
    .value(
      "KA37.pause", "HostedRoom.swift", "!$0.paused.contains(number)", becomes: "true"),
    .without(
      "KA37.view", "RemoteMedia.swift", "former?.remove(view)\n    track?.add(view)",
      by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
  ]

  /// Switches for the clients' objects and events.
  private static let clients: [RowSwitch] = [
    .without(
      "KA7.client", "RoomConfig.swift",
      "configuration.videoReceiverMaximumCount = videoReceiverMaximumCount", by: configured),
    .value(
      "KA19.client", "RoomModel.swift", "[.error(RoomError(failure))]", becomes: "[]",
      by: configured),
    .value(
      "KA26.client", "RoomModel.swift", "[.connecting(progress: Float(progress))]",
      becomes: "[]", by: meeting),
    .value(
      "KA27.client", "RoomModel.swift", "[.connected(participantIDs: ids)]",
      becomes: "[.connected(participantIDs: [])]", by: configured),
    .value(
      "KA28.client", "RoomModel.swift", "DisconnectReason(ending.reason)",
      becomes: "DisconnectReason.destroyed", by: meeting),
    .value(
      "KA30.client", "RoomModel.swift", "[.participantEntered(participant(id))]", becomes: "[]",
      by: meeting),
    .value(
      "KA31.client", "RoomModel.swift", "[.localMediaPublished(own.media)]", becomes: "[]",
      by: meeting),
    .value(
      "KA32.client", "RoomModel.swift", "[.remoteVideoUnpublished(owner, video)]", becomes: "[]",
      by: meeting),
    .value(
      "KA34.client", "RoomModel.swift", "[.remoteVideoStateChanged(owner, video)]",
      becomes: "[]", by: meeting),
    .value(
      "KA42", "Room.swift", "code.rawValue", becomes: "0",
      by: "ConnectLiveTests/subscriptionsThatCannotBeAreAnswered"),
    .without(
      "KA43.client", "Room.swift", "try await call(.restartICE)", by: configured),
  ]

  private static let meeting = "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"
  private static let configured = "MeetingTests/whatARoomIsConfiguredForHoldsAtTheClient"
}
