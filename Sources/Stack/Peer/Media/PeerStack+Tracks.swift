import JSEP
import Media
import Wire

// Muting, volume and the end of tracks (W3C MediaStreamTrack).
extension PeerStack {
  /// Makes a track silent or black, or ends that; RTP continues, and what is received is counted.
  ///
  /// No effect, and no event, if the state is unchanged.
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
        // Video that arrives encoded starts with a key frame.
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

  /// Sets the volume of received audio, 0 to 10; kept while the track is disabled.
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

  /// Presses telephone keys in place of a sender's audio; an empty text stops.
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

  // MARK: Events of received tracks

  /// Records that the peer sends a track.
  func beginReceiving(_ id: UInt32) { _ = tracks.receivers.setLive(true, of: id) }

  /// Records whether a track receives anything.
  func recordMuted(_ isMuted: Bool, of id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setMuted(isMuted, of: id) else { return }
    notify(
      .tracks,
      .trackChanged(
        TrackChange(
          transceiver: id, isInbound: true, kind: isMuted ? .mute : .unmute, reason: reason)))
  }

  /// Records that a track has ended.
  func endReceiving(_ id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setLive(false, of: id) else { return }
    _ = tracks.receivers.setMuted(true, of: id)
    notify(
      .tracks,
      .trackChanged(TrackChange(transceiver: id, isInbound: true, kind: .ended, reason: reason)))
  }

  /// Emits an event only if genesis asks for it.
  func notify(_ notice: PeerNotice, _ event: @autoclosure () -> PeerEvent) {
    if genesis.configuration.notices?.contains(notice) == true { emit(event()) }
  }
}
