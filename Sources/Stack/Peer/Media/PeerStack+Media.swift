import Flow
import JSEP
import Media
import RTP
import Wire

// Connects the RTP flows with the tracks that capture and play media.
extension PeerStack {
  // MARK: Flow

  func drive(_ bundle: Bundle, _ input: MediaFlow.Input) {
    guard bundle.step(input, at: now) else { return }
    while let output = bundle.nextFlowOutput() { handle(output, of: bundle) }
  }

  private func handle(_ output: consuming MediaFlow.Output, of bundle: Bundle) {
    switch consume output {
    case .rtp(let packet):
      let mark = marks.mark(ofRTP: packet)
      drive(bundle, PeerTransport.Input.rtp(packet, codePoint: mark))
    case .rtcp(let packet):
      drive(bundle, PeerTransport.Input.rtcp(packet, codePoint: marks.control))
    case .received(let frame): play(frame)
    case .keyframeRequested(let mid, let rid): requestKeyframe(mid, rid: rid)
    case .targetBitrate(let bitrate):
      bundle.setVideoBitrate(bitrate)
      shareBitrate(of: bundle)
    case .lossReported(let mid, let share):
      for index in tracks.sendingIndices(ofMID: mid, .audio) {
        drive(sending: index, .lossReported(share))
      }
    case .rtcpBlock(let record):
      emit(.rtcp(record))
      bundle.record(isGoodbye: record.isInbound && record.type == "bye", at: now)
      // A sender report maps RTP times to the sender's clock, by which tracks are synchronised.
      if record.isInbound, record.type == "sr" { alignPlayouts() }
    case .streamBegan: break
    case .streamEnded(let mid, _):
      // Only a BYE mutes the track. A stream that ends without one is replaced by a new stream, or
      // the track's end is reported.
      guard bundle.hasLeft(at: now),
        let section = sections.first(where: { $0.mid == mid })
      else { break }
      recordMuted(true, of: section.transceiverID, .goodbye)
    }
  }

  /// Requests key frames for a section, for one layer or for all.
  func requestKeyframe(_ mid: String, rid: String? = nil) {
    for index in tracks.sendingIndices(ofMID: mid, .video, rid: rid) {
      drive(sending: index, .requestKeyframe)
      // Only the remote peer can encode a key frame for an echoed stream.
      if tracks.sending[index].source == .echo, !tracks.sending[index].video.isEncoding {
        drive(bundles.carrying(mid), .requestKeyframe(mid: mid))
      }
    }
  }

  // MARK: Received tracks

  private func play(_ frame: ReceivedFrame) {
    // The section is accessed in place, because copying it is expensive.
    let sections = self.sections
    guard let place = sections.firstIndex(where: { $0.mid == frame.mid }) else { return }
    switch tracks.layers.decide(frame) {
    case .shown: break
    case .passedOver: return
    case .needsKey: return drive(bundles.carrying(frame.mid), .requestKeyframe(mid: frame.mid))
    }
    let index = tracks.receivingIndex(of: sections[place])
    recordMuted(false, of: sections[place].transceiverID, .media)
    drive(receiving: index, .frame(frame))
  }

  private func drive(receiving index: Int, _ input: ReceivingTrack.Input) {
    var outputs = Outbox<ReceivingTrack.Output>()
    swap(&outputs, &tracks.received)
    defer { swap(&outputs, &tracks.received) }
    tracks.receiving[index].step(input, at: now, into: &outputs)
    let transceiver = tracks.receiving[index].transceiver
    let mid = tracks.receiving[index].mid
    while let output = outputs.next() {
      switch output {
      case .audio(let block, let level, let record):
        emit(.frame(record))
        observe(record, level: level)
        // Sending decoded media makes the local peer a mixer (RFC 3550 section 7.1).
        echo(
          .media(.audio(block), from: [Contributor(source: record.ssrc, level: level)]),
          of: transceiver)
      case .videoFrame(let videoFrame, let frame, let record):
        emit(.frame(record))
        // Frames of a pass-through codec are sent as received, not encoded again.
        echo(
          frame.codec.isPassedThrough ? .passOn(frame) : .media(.videoFrame(videoFrame), from: []),
          of: transceiver)
      case .undecodable(let record):
        emit(.frame(record))
        drive(bundles.carrying(mid), .requestKeyframe(mid: mid))
      case .passed(let frame, let record):
        emit(.frame(record))
        echo(.passOn(frame), of: transceiver)
      }
    }
  }

  /// Passes media that a transceiver received to its own sender, if the sender echoes.
  private func echo(_ input: @autoclosure () -> SendingTrack.Input, of transceiver: UInt32) {
    feed(input(), to: transceiver, whoseSourceIs: .echo)
  }

  /// Synchronises the tracks of each remote stream.
  private func alignPlayouts() {
    tracks.alignPlayouts(bundles.inboundStreams) { id in
      negotiation.transceivers.first { $0.id == id }?.remoteStreamIDs ?? []
    }
  }

  // MARK: Sent tracks

  /// Passes the application's media to a sender; ignored unless the sender is running with the
  /// application as its source.
  func capture(_ media: CapturedMedia, for transceiver: UInt32) {
    feed(
      .media(media, from: [], limit: videoLimit(of: transceiver)), to: transceiver,
      whoseSourceIs: .application)
  }

  private func feed(
    _ input: @autoclosure () -> SendingTrack.Input, to transceiver: UInt32,
    whoseSourceIs source: MediaSource
  ) {
    for index in tracks.sending.indices
    where tracks.sending[index].transceiver == transceiver && tracks.sending[index].isRunning
      && tracks.sending[index].source == source
    {
      drive(sending: index, input())
    }
  }

  func drive(sending index: Int, _ input: SendingTrack.Input) {
    var outputs = Outbox<SendingTrack.Output>()
    swap(&outputs, &tracks.sent)
    defer { swap(&outputs, &tracks.sent) }
    tracks.sending[index].step(input, at: now, into: &outputs)
    var beganLayer: String?
    while let output = outputs.next() {
      switch output {
      case .frame(let frame, let mid, let record):
        emit(.frame(record))
        if frame.kind == .audio {
          let level = AudioMeter.level(
            energy: record.energy, frameCount: AudioBlock.sampleRate / 50)
          observe(record, level: record.audioLevel ?? level)
        }
        let rid = tracks.sending[index].stream.rid
        if rid != nil, frame.isKey { beganLayer = mid }
        drive(bundles.carrying(mid), .frame(mid: mid, rid: rid, frame))
      case .audioEnded:
        forgetSpeaker(tracks.sending[index].transceiver, isInbound: false)
      case .mutedSpeech(let isSpeaking):
        let transceiver = tracks.sending[index].transceiver
        notify(.mutedSpeech, .mutedSpeech(transceiver: transceiver, isSpeaking: isSpeaking))
      case .failure(let reason): refuse(layer: "encoder", reason)
      }
    }
    // A layer's useful bit rate is known once the frame size is.
    if let beganLayer { shareBitrate(of: bundles.carrying(beganLayer)) }
  }

  // MARK: Ending playouts and deadlines

  /// Ends all playouts except those of the given sections.
  func endPlayouts(besides sections: [NegotiatedSection]) {
    for transceiver in tracks.endPlayouts(besides: sections) {
      forgetSpeaker(transceiver, isInbound: true)
    }
  }

  func reachTrackDeadlines() {
    for index in tracks.receiving.indices {
      if let due = tracks.receiving[index].deadline, due <= now {
        drive(receiving: index, .deadline)
      }
    }
    for index in tracks.sending.indices {
      if let due = tracks.sending[index].deadline, due <= now { drive(sending: index, .deadline) }
    }
  }
}

// MARK: - Tracks

// Muting, volume and the end of tracks (W3C MediaStreamTrack).
extension PeerStack {
  /// Enables or disables a track; a disabled track is silent or black.
  ///
  /// A disabled track's RTP packets continue and are counted, except for local video that arrives
  /// encoded, which pauses. If the state does not change, the call has no effect and emits no
  /// event.
  func setEnabled(
    _ isEnabled: Bool, of id: UInt32, isInbound: Bool
  ) throws(PeerError) {
    try checkLive(id)
    if isInbound {
      guard tracks.receivers.setEnabled(isEnabled, of: id) else { return }
      tracks.applySettings(of: id)
    } else {
      let first = try sentTrack(of: id)
      guard tracks.sending[first].isEnabled != isEnabled else { return }
      for index in tracks.sendingIndices(of: id) {
        drive(sending: index, .enabled(isEnabled))
        // Video that arrives encoded can resume only at a key frame.
        if isEnabled, let mid = tracks.sending[index].stream.mid,
          tracks.sending[index].kind == .video
        {
          requestKeyframe(mid, rid: tracks.sending[index].rid)
        }
      }
    }
    emit(
      .trackChanged(
        TrackChange(
          transceiver: id, isInbound: isInbound, kind: isEnabled ? .enabled : .disabled)))
  }

  /// Sets the volume of received audio from 0 to 10; it is kept while the track is disabled.
  func setVolume(_ volume: Double, of id: UInt32) throws(PeerError) {
    try checkLive(id)
    guard try info(id).kind == .audio else {
      throw PeerError(name: "InvalidAccessError", message: "transceiver \(id) carries no sound")
    }
    guard volume.isFinite else {
      throw PeerError(name: "RangeError", message: "a volume must be a number from 0 to 10")
    }
    let limits = PlayoutGain.volumes
    let volume = min(max(volume, limits.lowerBound), limits.upperBound)
    if tracks.receivers.setVolume(volume, of: id) { tracks.applySettings(of: id) }
  }

  /// Sends DTMF tones in place of a sender's audio; empty text stops them.
  func insertTones(_ text: String, duration: UInt32, gap: UInt32, into id: UInt32)
    throws(PeerError)
  {
    try checkLive(id)
    let section = negotiation.sections.first { $0.transceiverID == id }
    guard section?.kind == .audio, section?.direction.sends == true, section?.sentEvents != nil,
      let index = tracks.sendingIndex(of: id), tracks.sending[index].isRunning
    else {
      throw PeerError(
        name: "InvalidStateError",
        message: "transceiver \(id) sends no audio beside which telephone events were agreed on")
    }
    guard let tones = KeyTones(text, duration: duration, gap: gap) else {
      throw PeerError(
        name: "InvalidCharacterError",
        message: "keys are 0 to 9, *, #, A to D and a comma, 256 at most")
    }
    drive(sending: index, .tones(tones))
  }

  func trackState(of id: UInt32, isInbound: Bool) throws(PeerError) -> TrackState {
    guard !isInbound else {
      _ = try info(id)
      return tracks.receivers.state(of: id)
    }
    return TrackState(isEnabled: tracks.sending[try sentTrack(of: id)].isEnabled)
  }

  private func checkLive(_ id: UInt32) throws(PeerError) {
    guard try info(id).direction != .stopped else {
      throw PeerError(name: "InvalidStateError", message: "transceiver \(id) is stopped")
    }
  }

  private func sentTrack(of id: UInt32) throws(PeerError) -> Int {
    _ = try info(id)
    guard let index = tracks.sendingIndex(of: id), tracks.sending[index].source != nil else {
      throw PeerError(name: "InvalidStateError", message: "transceiver \(id) sends no track")
    }
    return index
  }

  // MARK: Received track events

  /// Marks a transceiver's received track as live, once the remote peer has announced it.
  func beginReceiving(_ id: UInt32) { _ = tracks.receivers.setLive(true, of: id) }

  /// Records whether a received track's media arrives; a change is reported as W3C mute or unmute.
  func recordMuted(_ isMuted: Bool, of id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setMuted(isMuted, of: id) else { return }
    notify(
      .tracks,
      .trackChanged(
        TrackChange(
          transceiver: id, isInbound: true, kind: isMuted ? .mute : .unmute, reason: reason)))
  }

  func endReceiving(_ id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setLive(false, of: id) else { return }
    _ = tracks.receivers.setMuted(true, of: id)
    notify(
      .tracks,
      .trackChanged(TrackChange(transceiver: id, isInbound: true, kind: .ended, reason: reason)))
  }

  /// Emits an event only if the genesis requests it.
  func notify(_ notice: PeerNotice, _ event: @autoclosure () -> PeerEvent) {
    if genesis.configuration.notices?.contains(notice) == true { emit(event()) }
  }
}
