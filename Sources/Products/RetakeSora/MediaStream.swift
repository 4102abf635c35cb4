import Live
import Media
public import RetakeRTC
import RoomClient
import Synchronization

/// A stream of a channel: the local one, or one that is received.
public final class MediaStream: Sendable {
  let core: Live.MediaStream
  /// The local media; nil of a received stream.
  private let media: LocalMedia?
  private let shown = Mutex<ShownFrames?>(nil)
  private let isFilled = Mutex(false)

  init(_ core: Live.MediaStream, _ media: LocalMedia?) {
    (self.core, self.media) = (core, media)
  }

  /// Names the stream: `publisherStreamId`, or the connection that it comes from.
  public var streamId: String { core.id }

  /// Whether the audio is on; false if there is none.
  ///
  /// Of the local stream silence is sent where it is not, and the microphone continues.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }

  /// The volume of received audio, 0 to 10; nil of the local stream, whose volume cannot be
  /// changed.
  ///
  /// 0 is silent, 1 as received; others are taken for the nearest of these.
  public var remoteAudioVolume: Double? {
    get { core.remoteAudioVolume }
    set { core.remoteAudioVolume = newValue }
  }

  // MARK: What is not of the page

  /// Whether the video is on, else it is black; not of the page.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }

  /// Shows the video in a renderer of libwebrtc's interface from now on; not of the page.
  ///
  /// It takes the place of the one before; nil: nobody shows it.
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

  /// Sends a video frame of the application on the local stream, as of its time; not of the page.
  ///
  /// The camera ends with the first of them.
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
