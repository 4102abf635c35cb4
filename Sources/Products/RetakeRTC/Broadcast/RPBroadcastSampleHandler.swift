public import Foundation

/// What a buffer of a broadcast holds, numbered as in ReplayKit.
public enum RPSampleBufferType: Int, Sendable {
  /// A picture of the screen.
  case video = 1
  /// What applications play.
  case audioApp
  /// What the microphone records.
  case audioMic
}

/// Takes what a broadcast of the screen gives, in the place of the class of ReplayKit: an heir gets
/// the buffers from whatever captures on this system.
open class RPBroadcastSampleHandler {
  /// Hears that the handler ends the broadcast by itself, and why: what the system shows its user.
  public var onFinish: ((any Error) -> Void)?

  /// Creates a handler.
  public init() {}

  /// The broadcast has begun.
  open func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {}
  /// It pauses: no buffers come.
  open func broadcastPaused() {}
  /// It continues.
  open func broadcastResumed() {}
  /// Its user ended it.
  open func broadcastFinished() {}
  /// Handles a buffer.
  open func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {}

  /// Ends the broadcast with a reason for its user: an error whose description is shown.
  public final func finishBroadcastWithError(_ error: any Error) { onFinish?(error) }
}
