import Live
import Media
public import RetakeRTC
import RoomClient
import Synchronization

/// A stream of a channel: the local one, or a received one.
public final class MediaStream: Sendable {
  let core: Live.MediaStream
  /// The local media; nil for a received stream.
  private let media: LocalMedia?
  private let shown = Mutex<ShownFrames?>(nil)
  private let isFilled = Mutex(false)

  init(_ core: Live.MediaStream, _ media: LocalMedia?) {
    (self.core, self.media) = (core, media)
  }

  /// The identifier of the stream: `publisherStreamId`, or that of its connection.
  public var streamId: String { core.id }

  /// Whether the audio is enabled; false if there is none.
  ///
  /// While disabled, the local stream sends silence, and the microphone continues.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }

  /// The volume of received audio, 0 to 10; nil for the local stream, whose volume cannot be
  /// changed.
  ///
  /// 0 is silent, 1 is unchanged; other values are clamped.
  public var remoteAudioVolume: Double? {
    get { core.remoteAudioVolume }
    set { core.remoteAudioVolume = newValue }
  }

  // MARK: Beyond the page

  /// Whether the video is enabled; otherwise it is black; not on the page.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }

  /// Displays the video in a renderer with libwebrtc's interface from now on; not on the page.
  ///
  /// It replaces the previous one; nil removes it.
  public func setVideoRenderer(_ renderer: (any RTCVideoRenderer)?) {
    let next = renderer.map { ShownFrames($0) }
    let former = shown.withLock { shown in
      defer { shown = next }
      return shown
    }
    for track in core.videoTracks {
      if let track = track as? RemoteVideoTrack {
        former.map { track.remove($0) }
        next.map { track.add($0) }
      } else if let track = track as? LocalVideoTrack {
        former.map { track.remove($0) }
        next.map { track.add($0) }
      }
    }
  }

  /// Sends a video frame of the application on the local stream, with its timestamp; not on the
  /// page.
  ///
  /// The camera stops with the first of them.
  public func send(videoFrame: RTCVideoFrame?) {
    guard let frame = videoFrame?.native else { return }
    let isFirst = isFilled.withLock { isFilled in
      defer { isFilled = true }
      return !isFilled
    }
    if isFirst { media?.endCapturing() }
    media?.video?.source.capture(frame)
  }
}
