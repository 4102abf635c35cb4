import Live
import Media
import Peer
import Synchronization
import Wire

/// The state that local and remote tracks of both kinds share.
final class TrackCore: Sendable {
  /// A connection's transceiver.
  struct Place: Sendable {
    let connection: PeerConnection
    let transceiver: UInt32

    /// Makes a call without waiting for its result.
    func post(_ call: PeerCall) { connection.perform(call) { _ in } }
  }

  private struct State {
    var isEnabled = true
    var readyState = RTCMediaStreamTrackState.live
    /// The transceivers that send the track.
    var outlets: [Place] = []
    var atEnd: (@Sendable () -> Void)?
    var atOutlet: (@Sendable (Place, _ isSent: Bool) -> Void)?
  }

  let id: String
  let kind: MediaKind
  /// A local track's source.
  let source: MediaSource?
  /// A received track's transceiver.
  let inlet: Place?
  private let state = Mutex(State())

  init(id: String, kind: MediaKind, source: MediaSource) {
    self.id = id
    self.kind = kind
    self.source = source
    inlet = nil
  }

  init(id: String, kind: MediaKind, received inlet: Place) {
    self.id = id
    self.kind = kind
    self.inlet = inlet
    source = nil
  }

  var readyState: RTCMediaStreamTrackState { state.withLock { $0.readyState } }

  /// Calls a closure once, when the peer has permanently stopped sending.
  func atEnd(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.atEnd = body } }

  /// Ends the track, because the peer has permanently stopped sending.
  func end() {
    let body = state.withLock { state in
      state.readyState = .ended
      defer { state.atEnd = nil }
      return state.atEnd
    }
    body?()
  }

  // MARK: Enabled

  var isEnabled: Bool {
    get { state.withLock { $0.isEnabled } }
    set {
      let outlets = state.withLock { state -> [Place]? in
        guard state.isEnabled != newValue else { return nil }
        state.isEnabled = newValue
        return state.outlets
      }
      guard let outlets else { return }
      for place in outlets {
        place.post(
          .setEnabled(transceiver: place.transceiver, isInbound: false, isEnabled: newValue))
      }
      if let inlet {
        inlet.post(
          .setEnabled(transceiver: inlet.transceiver, isInbound: true, isEnabled: newValue))
      }
    }
  }

  /// False if the track is disabled, nil if it is enabled, in the form that the call to start
  /// sending expects.
  var initiallyEnabled: Bool? { isEnabled ? nil : false }

  // MARK: Outlets

  /// The transceivers that send the track.
  var outlets: [Place] { state.withLock { $0.outlets } }

  /// Calls a closure whenever a transceiver starts or stops sending the track.
  func onOutlets(_ body: @escaping @Sendable (Place, _ isSent: Bool) -> Void) {
    state.withLock { $0.atOutlet = body }
  }

  func add(_ place: Place) {
    let body = state.withLock { state in
      state.outlets.append(place)
      return state.atOutlet
    }
    body?(place, true)
  }

  func remove(_ place: Place) {
    let body = state.withLock { state in
      state.outlets.removeAll {
        $0.connection === place.connection && $0.transceiver == place.transceiver
      }
      return state.atOutlet
    }
    body?(place, false)
  }

  /// Returns whether a connection sends the track.
  func isSent(by connection: PeerConnection) -> Bool {
    outlets.contains { $0.connection === connection }
  }
}

// MARK: - RTCVideoTrack

/// A local or received video track.
public final class RTCVideoTrack: RTCMediaStreamTrack {
  /// The source that supplies a local track's frames; a received track's source supplies none.
  nonisolated public let source: RTCVideoSource
  nonisolated private let renderers = RendererList()
  nonisolated private let subscription = Mutex<MediaSubscription?>(nil)

  nonisolated init(_ source: RTCVideoSource, trackId: String) {
    self.source = source
    super.init(TrackCore(id: trackId, kind: .video, source: .application))
    source.feed(self)
    core.onOutlets { [weak source] place, isSent in source?.outletChanged(place, isSent: isSent) }
  }

  nonisolated init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCVideoSource(received: inlet)
    super.init(TrackCore(id: trackId, kind: .video, received: inlet))
    core.atEnd { [renderers] in renderers.show(nil) }
  }

  // MARK: Renderers

  /// Displays the track in a renderer from now on.
  nonisolated public func add(_ renderer: any RTCVideoRenderer) {
    renderers.add(renderer)
    guard let inlet = core.inlet else { return }
    subscription.withLock { subscription in
      guard subscription == nil else { return }
      subscription = inlet.connection.onMedia { [renderers] media in
        guard media.transceiver == inlet.transceiver, let frame = media.frame else { return }
        renderers.show(RTCVideoFrame(frame))
      }
    }
  }

  /// Stops displaying the track in a renderer.
  nonisolated public func remove(_ renderer: any RTCVideoRenderer) {
    renderers.remove(renderer)
    if renderers.isEmpty { subscription.withLock { $0 = nil } }
  }

  /// Sends and displays the source's frame.
  nonisolated func captured(_ frame: RTCVideoFrame, _ upright: VideoFrame?) {
    if let upright {
      for place in core.outlets { place.connection.send(upright, on: place.transceiver) }
    }
    guard !renderers.isEmpty else { return }
    // A disabled track is also black locally, as the peer sees it.
    let shown =
      isEnabled
      ? frame
      : RTCVideoFrame(
        buffer: RTCI420Buffer(width: frame.width, height: frame.height),
        rotation: frame.rotation, timeStampNs: frame.timeStampNs)
    renderers.show(shown)
  }
}
