public import RetakeRTC

/// Receives the events of the audio session on the callback queue; every method is optional.
public protocol AudioSessionDelegate: AnyObject {
  /// The system or another application takes over the device.
  func didBeginInterruption()
  /// The device is free again.
  func didEndInterruption(shouldResumeSession: Bool)
  /// The audio route changed.
  func didChangeRoute(
    reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription)
  /// The system's audio server terminated.
  func mediaServerTerminated()
  /// The audio server is available again.
  func mediaServerReset()
  /// Whether the device may run changed.
  func didChangeCanPlayOrRecord(canPlayOrRecord: Bool)
  /// The first room started to play or record.
  func didStartPlayOrRecord()
  /// The last room stopped playing and recording.
  func didStopPlayOrRecord()
  /// The audio session is about to be activated or deactivated.
  func willSetActive(active: Bool)
  /// The audio session was activated or deactivated.
  func didSetActive(active: Bool)
  /// Activating or deactivating the audio session failed.
  func failedToSetActive(active: Bool, error: any Error)
}

extension AudioSessionDelegate {
  /// Does nothing.
  public func didBeginInterruption() {}
  /// Does nothing.
  public func didEndInterruption(shouldResumeSession: Bool) {}
  /// Does nothing.
  public func didChangeRoute(
    reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription
  ) {}
  /// Does nothing.
  public func mediaServerTerminated() {}
  /// Does nothing.
  public func mediaServerReset() {}
  /// Does nothing.
  public func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) {}
  /// Does nothing.
  public func didStartPlayOrRecord() {}
  /// Does nothing.
  public func didStopPlayOrRecord() {}
  /// Does nothing.
  public func willSetActive(active: Bool) {}
  /// Does nothing.
  public func didSetActive(active: Bool) {}
  /// Does nothing.
  public func failedToSetActive(active: Bool, error: any Error) {}
}

/// Forwards the events of the process's audio session to the application.
final class AudioSessionForwarder: RTCAudioSessionDelegate, Sendable {
  private let delegate: WeakDelegate<any AudioSessionDelegate>
  private let calls: CallbackQueue

  init(_ delegate: any AudioSessionDelegate, _ calls: CallbackQueue) {
    self.delegate = WeakDelegate { [weak delegate] in delegate }
    self.calls = calls
  }

  private func notify(_ body: @escaping @Sendable (any AudioSessionDelegate) -> Void) {
    calls.call { [delegate] in delegate.value.map(body) }
  }

  func audioSessionDidBeginInterruption(_ session: RTCAudioSession) {
    notify { $0.didBeginInterruption() }
  }
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool) {
    notify { $0.didEndInterruption(shouldResumeSession: shouldResumeSession) }
  }
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription
  ) { notify { $0.didChangeRoute(reason: reason, previousRoute: previousRoute) } }
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession) {
    notify { $0.mediaServerTerminated() }
  }
  func audioSessionMediaServerReset(_ session: RTCAudioSession) { notify { $0.mediaServerReset() } }
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool) {
    notify { $0.didChangeCanPlayOrRecord(canPlayOrRecord: canPlayOrRecord) }
  }
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession) {
    notify { $0.didStartPlayOrRecord() }
  }
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession) {
    notify { $0.didStopPlayOrRecord() }
  }
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {
    notify { $0.willSetActive(active: active) }
  }
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {
    notify { $0.didSetActive(active: active) }
  }
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
  ) { notify { $0.failedToSetActive(active: active, error: error) } }
}
