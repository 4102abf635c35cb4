/// What the audio session tells, on a thread of its own; all of it is optional.
public protocol RTCAudioSessionDelegate: AnyObject {
  /// Somebody else takes the device.
  func audioSessionDidBeginInterruption(_ session: RTCAudioSession)
  /// The device is free again.
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool)
  /// Audio goes another way.
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription)
  /// The system's server of audio has ended.
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession)
  /// It is there again.
  func audioSessionMediaServerReset(_ session: RTCAudioSession)
  /// Whether the device may run has changed.
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool)
  /// The first connection plays or records.
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession)
  /// The last one does no longer.
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession)
  /// The device is about to be asked for the right to audio.
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool)
  /// The device said yes.
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool)
  /// The device said no.
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error)
}

// What the header marks as optional.
extension RTCAudioSessionDelegate {
  /// Does nothing.
  public func audioSessionDidBeginInterruption(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionDidEndInterruption(
    _ session: RTCAudioSession, shouldResumeSession: Bool
  ) {}
  /// Does nothing.
  public func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription
  ) {}
  /// Does nothing.
  public func audioSessionMediaServerTerminated(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionMediaServerReset(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSession(
    _ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool
  ) {}
  /// Does nothing.
  public func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {}
  /// Does nothing.
  public func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {}
  /// Does nothing.
  public func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
  ) {}
}
