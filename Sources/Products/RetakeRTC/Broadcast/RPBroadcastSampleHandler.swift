public import Foundation

/// The content of a broadcast buffer, numbered as in ReplayKit.
public enum RPSampleBufferType: Int, Sendable {
  /// An image of the screen.
  case video = 1
  /// Audio of the applications.
  case audioApp
  /// Audio of the microphone.
  case audioMic
}

/// Receives the buffers of a screen broadcast, in place of ReplayKit's class: a subclass gets them
/// from whatever captures on this system.
open class RPBroadcastSampleHandler {
  /// Called when the handler ends the broadcast by itself, with the reason that the system
  /// displays.
  public var onFinish: ((any Error) -> Void)?

  /// Creates a handler.
  public init() {}

  /// The broadcast started.
  open func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {}
  /// The broadcast paused: no buffers follow.
  open func broadcastPaused() {}
  /// The broadcast resumed.
  open func broadcastResumed() {}
  /// The user ended the broadcast.
  open func broadcastFinished() {}
  /// Handles a buffer.
  open func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {}

  /// Ends the broadcast with a reason for its user: an error whose description is displayed.
  public final func finishBroadcastWithError(_ error: any Error) { onFinish?(error) }
}
