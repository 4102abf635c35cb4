import JSEP
import Media
import Wire

// Muting, volume and the ends of tracks (W3C MediaStreamTrack).
extension PeerStack {
  /// Makes a track silent or black, or lets it be heard or seen again; RTP flows on, and what is
  /// received is counted on.
  ///
  /// Nothing happens, and nothing is told, where that is so already.
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
        // What comes encoded begins with a video frame that a decoder can begin with.
        if isEnabled, let mid = tracks.sending[index].stream.mid,
          tracks.sending[index].kind == .video
        {
          requestKeyframe(mid, rid: tracks.sending[index].rid)
        }
      }
    }
    tell(
      .trackChanged(
        TrackChange(
          transceiver: id, isInbound: isInbound, kind: isEnabled ? .enabled : .disabled)))
  }

  /// Sets how loud received audio is, 0 to 10; kept while the track is disabled.
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

  /// Presses keys in the place of a sender's audio; none are pressed any more if there are none.
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

  /// Records that something of a track came, or that nothing comes any more.
  func noteMuted(_ isMuted: Bool, of id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setMuted(isMuted, of: id) else { return }
    notify(
      .tracks,
      .trackChanged(
        TrackChange(
          transceiver: id, isInbound: true, kind: isMuted ? .mute : .unmute, reason: reason)))
  }

  /// Records that a track is over for good.
  func endReceiving(_ id: UInt32, _ reason: TrackChange.Reason) {
    guard tracks.receivers.setLive(false, of: id) else { return }
    _ = tracks.receivers.setMuted(true, of: id)
    notify(
      .tracks,
      .trackChanged(TrackChange(transceiver: id, isInbound: true, kind: .ended, reason: reason)))
  }

  /// Tells something that is told only where genesis says so.
  func notify(_ notice: PeerNotice, _ event: @autoclosure () -> PeerEvent) {
    if genesis.configuration.notices?.contains(notice) == true { tell(event()) }
  }
}
