public import Media
import Synchronization

/// A microphone, or whatever gives audio: what a factory needs of an audio device.
public protocol AudioCaptureDevice: Sendable {
  /// Calls a closure with every captured block, in 48 kHz, from now on; keep the result as long as
  /// it shall go on.
  func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void) -> AudioCaptureSubscription
}

/// Keeps a sink of an audio device for as long as it lives.
public final class AudioCaptureSubscription: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a subscription that ends by a closure.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// Where the audio of own tracks comes from (RTCAudioSource).
///
/// What goes in is sent by all tracks of the source on all their connections, and recorded on each.
/// There is no volume: what a microphone sends cannot be changed, only muted.
public final class AudioSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()
  private let subscription = Mutex<AudioCaptureSubscription?>(nil)

  /// Creates a source that the application feeds with `deliver`.
  public init() { mediaSource = .application }

  /// Creates a source whose audio every connection makes by itself: a tone, or what it receives.
  public init(_ source: MediaSource) { mediaSource = source }

  /// Creates a source that a device feeds.
  public init(device: some AudioCaptureDevice) {
    mediaSource = .application
    let made = device.addCaptureSink { [weak self] block in self?.deliver(block) }
    subscription.withLock { $0 = made }
  }

  /// Sends a block of any length.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func deliver(_ block: AudioBlock) -> Bool { hub.send(.audio(block)) }
}

/// Where the video frames of own tracks come from (RTCVideoSource).
public final class VideoSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()

  /// Creates a source that the application or a capturer feeds with `capture`.
  public init() { mediaSource = .application }

  /// Creates a source whose video frames every connection makes by itself: a pattern, or what it
  /// receives.
  public init(_ source: MediaSource) { mediaSource = source }

  /// Sends a frame at its own time; it is converted once, however many tracks there are.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func capture(_ frame: VideoFrame) -> Bool { hub.send(.frame(frame.upright)) }

  /// Sends a video frame as of now.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func capture(_ videoFrame: I420Buffer) -> Bool { hub.send(.videoFrame(videoFrame)) }

  /// Sends a video frame of a codec that is not encoded here as of now.
  ///
  /// Tracks that are not enabled leave it out, for a black one cannot be made.
  @discardableResult
  public func capture(_ videoFrame: EncodedVideoChunk) -> Bool { hub.send(.encoded(videoFrame)) }
}

/// What a source hands to its tracks.
enum SourceMedia {
  case audio(AudioBlock)
  /// A frame with a time of its own, upright.
  case frame(VideoFrame)
  case videoFrame(I420Buffer)
  case encoded(EncodedVideoChunk)
}

/// The tracks of a source.
final class SourceHub: Sendable {
  private struct Member {
    weak var track: LocalTrackCore?
  }

  private let members = Mutex<[Member]>([])

  func attach(_ track: LocalTrackCore) {
    members.withLock { members in
      members.removeAll { $0.track == nil }
      members.append(Member(track: track))
    }
  }

  func send(_ media: SourceMedia) -> Bool {
    let tracks = members.withLock { members in members.compactMap(\.track) }
    return tracks.map { $0.send(media) }.allSatisfy { $0 }
  }
}
