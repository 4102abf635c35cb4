public import Media
public import Peer
public import Wire

/// W3C MediaStreamTrackState.
public enum MediaStreamTrackState: String, Hashable, Sendable {
  /// Media flows, or may flow again.
  case live
  /// Nothing will ever flow again.
  case ended
}

/// Something that became of a track.
public enum MediaStreamTrackEvent: Hashable, Sendable {
  /// The application let the track be heard or seen again, or made it silent or black.
  case enabled(Bool)
  /// W3C mute: nothing comes from the peer any more, and why.
  case mute(TrackChange.Reason?)
  /// W3C unmute: something comes from the peer.
  case unmute
  /// W3C ended, and why.
  case ended(TrackChange.Reason?)
}

/// A track with an identity of its own (W3C MediaStreamTrack): one that is sent, perhaps over
/// several connections, or one that is received.
///
/// There are four ways not to send, and a take tells them apart: a track that is not enabled sends
/// silence or black frames (`setEnabled`), a sender without a track sends nothing
/// (`replaceSource`), a transceiver may have another direction (`setDirection`), and an audio
/// device may stop capturing, after which there are no captured blocks.
public protocol MediaStreamTrack: AnyObject, Sendable {
  /// Names the track; the other side sees it in the `msid` of descriptions (RFC 8830).
  var id: String { get }
  /// Audio or video frames.
  var kind: MediaKind { get }
  /// Whether the track is heard or seen; else it is silent or black while packets flow on.
  ///
  /// Setting it is a recorded call on every connection that carries the track; to set what it is
  /// already does nothing.
  var isEnabled: Bool { get set }
  /// Whether nothing comes from the peer at present (W3C muted); false for local tracks.
  ///
  /// It is known where the configuration has the notice `tracks`, as a factory's connections do.
  var isMuted: Bool { get }
  /// Whether media may still flow.
  var readyState: MediaStreamTrackState { get }
  /// What becomes of the track from now on; every use gives a stream of its own.
  var events: AsyncStream<MediaStreamTrackEvent> { get }
}

/// Gets the decoded audio of a track.
public protocol AudioTrackSink: AnyObject, Sendable {
  /// Handles the next block, on the loop's thread; must return at once.
  ///
  /// Blocks of a received track follow each other without gaps; those of a track that is not
  /// enabled are silent.
  func audioTrack(_ id: String, didReceive block: AudioBlock)
}

/// Shows the frames of a track (RTCVideoRenderer).
public protocol VideoRenderer: AnyObject, Sendable {
  /// Frames have this size from the next one on.
  func setSize(width: Int, height: Int)
  /// Shows a frame, on the loop's thread; must return at once. Nil: there is nothing to show any
  /// more, because the track ended.
  func renderFrame(_ frame: VideoFrame?)
  /// The stream's video frames or its audio were switched on or off.
  func onSwitch(video isEnabled: Bool)
  /// The same of its audio.
  func onSwitch(audio isEnabled: Bool)
}

extension VideoRenderer {
  /// Does nothing.
  public func onSwitch(video isEnabled: Bool) {}
  /// Does nothing.
  public func onSwitch(audio isEnabled: Bool) {}
}

/// What the tracks of all kinds have: whether they are enabled and live, and who follows them.
struct TrackCondition {
  var isEnabled = true
  var isMuted = false
  var readyState = MediaStreamTrackState.live
  private var readers = Readers<MediaStreamTrackEvent>()

  init(isMuted: Bool = false) { self.isMuted = isMuted }

  /// How many events wait for a reader that is slow; the oldest are dropped beyond that.
  private static let eventsMaximum = 256

  /// Everything that is told from now on; nothing of a track that has ended.
  mutating func eventStream() -> AsyncStream<MediaStreamTrackEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: MediaStreamTrackEvent.self, bufferingPolicy: .bufferingNewest(Self.eventsMaximum))
    if readyState == .ended { continuation.finish() } else { readers.add(continuation) }
    return stream
  }

  /// False when nothing changed.
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

  /// False when it ended before.
  mutating func end(_ reason: TrackChange.Reason?) -> Bool {
    guard readyState == .live else { return false }
    readyState = .ended
    readers.yield(.ended(reason))
    readers.finish()
    return true
  }
}

/// Renderers by their identity, each with the size that it was told last.
struct RendererList {
  private struct Entry {
    let renderer: any VideoRenderer
    var size: (width: Int, height: Int)?
  }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var all: [any VideoRenderer] { entries.map(\.renderer) }

  /// Adds a renderer; one that is there already stays as it is.
  mutating func add(_ renderer: any VideoRenderer) {
    guard !entries.contains(where: { $0.renderer === renderer }) else { return }
    entries.append(Entry(renderer: renderer))
  }

  mutating func remove(_ renderer: any VideoRenderer) {
    entries.removeAll { $0.renderer === renderer }
  }

  /// Who gets the next frame, and who has to hear of its size before.
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
  /// Shows a frame; no lock is held, so that a renderer may call its track.
  func show(_ frame: VideoFrame) {
    for entry in self {
      if entry.isResized {
        entry.renderer.setSize(width: frame.displayWidth, height: frame.displayHeight)
      }
      entry.renderer.renderFrame(frame)
    }
  }
}
