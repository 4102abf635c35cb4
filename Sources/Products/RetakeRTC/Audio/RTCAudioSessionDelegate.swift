/// Receives the events of the audio session, on a thread of its own; all methods are optional.
public protocol RTCAudioSessionDelegate: AnyObject {
  /// The system or another application takes over the device.
  func audioSessionDidBeginInterruption(_ session: RTCAudioSession)
  /// The device is free again.
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool)
  /// The audio route changed.
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription)
  /// The system's audio server terminated.
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession)
  /// The audio server is available again.
  func audioSessionMediaServerReset(_ session: RTCAudioSession)
  /// Whether the device may run changed.
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool)
  /// The first connection started to play or record.
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession)
  /// The last connection stopped playing and recording.
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession)
  /// The session is about to be activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool)
  /// The session was activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool)
  /// Activating or deactivating the session failed.
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error)
}

// The methods that the header marks as optional.
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
