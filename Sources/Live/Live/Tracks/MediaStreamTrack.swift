public import Media
public import Peer
public import Wire

/// W3C MediaStreamTrackState.
public enum MediaStreamTrackState: String, Hashable, Sendable {
  /// Media flows, or may flow again.
  case live
  /// The track has ended.
  case ended
}

/// An event of a track.
public enum MediaStreamTrackEvent: Hashable, Sendable {
  /// The application enabled or disabled the track.
  case enabled(Bool)
  /// W3C mute: media stopped arriving, and why.
  case mute(TrackChange.Reason?)
  /// W3C unmute: media arrives.
  case unmute
  /// W3C ended, and why.
  case ended(TrackChange.Reason?)
}

/// A track as an object (W3C MediaStreamTrack): one that is sent, possibly over several
/// connections, or one that is received.
///
/// There are four ways not to send, and a take distinguishes them: a disabled track sends silence
/// or black frames (`setEnabled`), a sender without a track sends nothing (`replaceSource`), a
/// transceiver may have another direction (`setDirection`), and an audio device may stop capturing,
/// after which there are no captured blocks.
public protocol MediaStreamTrack: AnyObject, Sendable {
  /// The track's identifier; the peer sees it in the `msid` of descriptions (RFC 8830).
  var id: String { get }
  /// Audio or video frames.
  var kind: MediaKind { get }
  /// Whether the track is enabled; otherwise it is silent or black while packets continue.
  ///
  /// Setting it is a recorded call on every connection with the track; no effect if unchanged.
  var isEnabled: Bool { get set }
  /// Whether nothing currently arrives from the peer (W3C muted); false for local tracks.
  ///
  /// Needs the notice `tracks` in the configuration, which a factory's connections have.
  var isMuted: Bool { get }
  /// Whether media can still flow.
  var readyState: MediaStreamTrackState { get }
  /// The events from now on; every access returns a new stream.
  var events: AsyncStream<MediaStreamTrackEvent> { get }
}

/// Receives the decoded audio of a track.
public protocol AudioTrackSink: AnyObject, Sendable {
  /// Handles the next block, on the loop's thread; must return at once.
  ///
  /// Blocks of a received track are contiguous; those of a disabled track are silent.
  func audioTrack(_ id: String, didReceive block: AudioBlock)
}

/// Renders the frames of a track (RTCVideoRenderer).
public protocol VideoRenderer: AnyObject, Sendable {
  /// Sets the size of the frames from the next one on.
  func setSize(width: Int, height: Int)
  /// Renders a frame, on the loop's thread; must return at once.
  ///
  /// Nil clears the display because the track ended.
  func renderFrame(_ frame: VideoFrame?)
  /// The stream's video was switched on or off.
  func onSwitch(video isEnabled: Bool)
  /// The stream's audio was switched on or off.
  func onSwitch(audio isEnabled: Bool)
}

extension VideoRenderer {
  /// Does nothing.
  public func onSwitch(video isEnabled: Bool) {}
  /// Does nothing.
  public func onSwitch(audio isEnabled: Bool) {}
}

/// State common to all tracks: whether they are enabled and live, and their readers.
struct TrackCondition {
  var isEnabled = true
  var isMuted = false
  var readyState = MediaStreamTrackState.live
  private var readers = Readers<MediaStreamTrackEvent>()

  init(isMuted: Bool = false) { self.isMuted = isMuted }

  /// The most events that wait for a slow reader; beyond that the oldest are dropped.
  private static let eventsMaximum = 256

  /// The events from now on; none of a track that has ended.
  mutating func eventStream() -> AsyncStream<MediaStreamTrackEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: MediaStreamTrackEvent.self, bufferingPolicy: .bufferingNewest(Self.eventsMaximum))
    if readyState == .ended { continuation.finish() } else { readers.add(continuation) }
    return stream
  }

  /// False if unchanged.
  mutating func setEnabled(_ isEnabled: Bool) -> Bool {
    guard isEnabled != self.isEnabled else { return false }
    self.isEnabled = isEnabled
    readers.yield(.enabled(isEnabled))
    return true
  }

  mutating func setMuted(_ isMuted: Bool, _ reason: TrackChange.Reason?) {
    guard isMuted != self.isMuted, readyState == .live else { return }
    self.isMuted = isMuted
    readers.yield(isMuted ? .mute(reason) : .unmute)
  }

  /// False if it had ended.
  mutating func end(_ reason: TrackChange.Reason?) -> Bool {
    guard readyState == .live else { return false }
    readyState = .ended
    readers.yield(.ended(reason))
    readers.finish()
    return true
  }
}

/// Renderers by identity, each with the size last reported.
struct RendererList {
  private struct Entry {
    let renderer: any VideoRenderer
    var size: (width: Int, height: Int)?
  }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var all: [any VideoRenderer] { entries.map(\.renderer) }

  /// Adds a renderer unless it is there.
  mutating func add(_ renderer: any VideoRenderer) {
    guard !entries.contains(where: { $0.renderer === renderer }) else { return }
    entries.append(Entry(renderer: renderer))
  }

  mutating func remove(_ renderer: any VideoRenderer) {
    entries.removeAll { $0.renderer === renderer }
  }

  /// The renderers of the next frame, and whether they need its size first.
  mutating func next(_ frame: VideoFrame) -> [(renderer: any VideoRenderer, isResized: Bool)] {
    let size = (frame.displayWidth, frame.displayHeight)
    return entries.indices.map { index in
      let isResized = entries[index].size.map { $0 != size } ?? true
      entries[index].size = size
      return (entries[index].renderer, isResized)
    }
  }
}

extension [(renderer: any VideoRenderer, isResized: Bool)] {
  /// Renders a frame without holding a lock, so that a renderer may call its track.
  func show(_ frame: VideoFrame) {
    for entry in self {
      if entry.isResized {
        entry.renderer.setSize(width: frame.displayWidth, height: frame.displayHeight)
      }
      entry.renderer.renderFrame(frame)
    }
  }
}
