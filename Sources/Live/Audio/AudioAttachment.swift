public import AudioSession
public import Media

/// Keeps a connection at an audio session for as long as it lives.
public final class AudioAttachment: Sendable {
  private let subscriptions: [MediaSubscription]
  private let end: @Sendable () -> Void

  init(_ subscriptions: [MediaSubscription], end: @escaping @Sendable () -> Void) {
    self.subscriptions = subscriptions
    self.end = end
  }

  deinit { end() }
}

extension Session {
  /// Makes an audio session over a device, recorded in the session's take when there is one.
  ///
  /// - Throws: `SystemError` when the system refuses a thread.
  public func makeAudioSession(
    device: any AudioDeviceModule, policy: AudioSessionPolicy = AudioSessionPolicy(),
    label: String = "audio"
  ) throws(SystemError) -> AudioSession {
    let session = try AudioSession(
      device: device, policy: policy, label: label, clock: clock, tape: tape)
    note(session)
    return session
  }
}

/// The audio of tracks: `AudioSource(device:)` sends what the session captures.
extension AudioSession: AudioCaptureDevice {
  /// Calls a closure with every 10 ms for the senders; keep the result as long as it shall go on.
  public func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void)
    -> AudioCaptureSubscription
  {
    let subscription = onCaptured(sink)
    return AudioCaptureSubscription { withExtendedLifetime(subscription) {} }
  }
}
