public import ICE
public import JSEP
public import Media
public import Peer
import RTP
public import SDP
public import Stats
public import Wire

/// A WebRTC peer connection (W3C RTCPeerConnection) whose every step can be recorded.
///
/// Calls may come from any task; each becomes one step of the peer, in the order of arrival. They
/// throw `PeerError` with the DOMException name that W3C prescribes.
public final class PeerConnection: Sendable {
  /// The name given at creation; the take's `peer.label`.
  public let label: String
  /// The number of the peer in its take, counted from 1; 0 when nothing is recorded.
  public let number: UInt32

  let loop: MediaLoop
  let key: MediaLoop.PeerKey
  let observers: PeerObservers
  private let budget = CaptureBudget(maximum: PeerConnection.captureMaximum)

  /// How many blocks and video frames may wait for the loop before `send` refuses more.
  private static let captureMaximum = 16

  init(
    label: String, number: UInt32, loop: MediaLoop, key: MediaLoop.PeerKey, observers: PeerObservers
  ) {
    self.label = label
    self.number = number
    self.loop = loop
    self.key = key
    self.observers = observers
    registry.belong(to: self)
  }

  /// The tracks and streams as objects.
  var registry: TrackRegistry { observers.registry }

  deinit {
    let observers = observers
    if !loop.mailbox.post(.remove(key) { observers.finish() }) { observers.finish() }
  }

  // MARK: Descriptions and candidates

  /// Creates an offer (W3C createOffer); the state does not change.
  public func createOffer(iceRestart: Bool = false) async throws(PeerError) -> SessionDescription {
    try await description(.createOffer(iceRestart: iceRestart))
  }

  /// Creates an answer to the peer's offer (W3C createAnswer); the state does not change.
  public func createAnswer() async throws(PeerError) -> SessionDescription {
    try await description(.createAnswer)
  }

  /// Applies a local description and begins to gather; without one, makes the right one first.
  public func setLocalDescription(_ description: SessionDescription? = nil) async throws(PeerError)
  {
    try await perform(.setLocalDescription(description))
  }

  /// Applies the peer's description (W3C setRemoteDescription).
  public func setRemoteDescription(_ description: SessionDescription) async throws(PeerError) {
    try await perform(.setRemoteDescription(description))
  }

  /// Adds a candidate of the peer; nil when it has no more (W3C addIceCandidate).
  public func addICECandidate(_ candidate: CandidateInit?) async throws(PeerError) {
    try await perform(.addICECandidate(candidate))
  }

  /// The pending or else current local description with the candidates gathered so far.
  public var localDescription: SessionDescription? {
    get async throws(PeerError) {
      guard case .description(let description) = try await perform(.localDescription) else {
        return nil
      }
      return description
    }
  }

  /// Asks that the next offer restarts ICE (W3C restartIce).
  public func restartICE() async throws(PeerError) { try await perform(.restartICE) }

  // MARK: Tracks

  /// Adds a track that is sent from a source, on a free transceiver or a new one (W3C addTrack).
  @discardableResult
  public func addTrack(
    _ kind: MediaKind, source: MediaSource, streamIDs: [String] = [], trackID: String? = nil
  ) async throws(PeerError) -> TransceiverInfo {
    try await transceiver(
      .addTrack(kind: kind, streamIDs: streamIDs, source: source, trackID: trackID))
  }

  /// Adds a transceiver; without a source it sends nothing until it gets one (W3C addTransceiver).
  @discardableResult
  public func addTransceiver(
    _ kind: MediaKind, direction: TransceiverDirection = .sendrecv, source: MediaSource? = nil,
    streamIDs: [String] = [], sendEncodings: [RTPEncoding] = []
  ) async throws(PeerError) -> TransceiverInfo {
    try await transceiver(
      .addTransceiver(
        kind: kind, direction: direction, streamIDs: streamIDs, source: source,
        sendEncodings: sendEncodings.isEmpty ? nil : sendEncodings))
  }

  /// Stops sending on a transceiver (W3C removeTrack); negotiation is needed.
  public func removeTrack(_ transceiver: UInt32) async throws(PeerError) {
    try await perform(.removeTrack(transceiver: transceiver))
  }

  /// Changes what is wanted of a transceiver; negotiation is needed.
  public func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setDirection(transceiver: transceiver, direction))
  }

  /// Replaces what a transceiver sends without negotiation; nil sends nothing (W3C replaceTrack).
  public func replaceSource(_ source: MediaSource?, of transceiver: UInt32) async throws(PeerError)
  {
    try await perform(.replaceSource(transceiver: transceiver, source))
  }

  /// Stops a transceiver for good (W3C RTCRtpTransceiver.stop).
  public func stopTransceiver(_ transceiver: UInt32) async throws(PeerError) {
    try await perform(.stopTransceiver(transceiver))
  }

  /// The transceivers in order of creation (W3C getTransceivers).
  public var transceivers: [TransceiverInfo] {
    get async throws(PeerError) {
      guard case .transceivers(let all) = try await perform(.transceivers) else { return [] }
      return all
    }
  }

  // MARK: Stats and closing

  /// The present stats (W3C getStats), of everything or of one sender or receiver; works after
  /// `close` too.
  public func getStats(of selector: StatsSelector? = nil) async throws(PeerError) -> StatsReport {
    guard case .stats(let report) = try await perform(.getStats(of: selector)) else {
      return StatsReport()
    }
    return report
  }

  /// Says goodbye (RTCP BYE, DTLS close_notify), closes the sockets and ends the event streams.
  ///
  /// States and stats stay readable. Closing twice does nothing.
  public func close() async {
    _ = await reply(to: .close)
    observers.finish()
  }

  /// Takes the peer off its loop: from then on it makes no further step, and all that it held is
  /// given back although somebody still holds the connection.
  package func retire() async {
    let observers = observers
    await withCheckedContinuation { continuation in
      let message = MediaLoop.Message.remove(key) {
        observers.finish()
        continuation.resume()
      }
      if !loop.mailbox.post(message) { continuation.resume() }
    }
  }

  // MARK: What happens

  /// All states at this moment.
  public var states: PeerConnectionStates { observers.states }
  /// W3C signalingState.
  public var signalingState: SignalingState { states.signaling }
  /// W3C iceConnectionState.
  public var iceConnectionState: ICEConnectionState { states.iceConnection }
  /// W3C iceGatheringState.
  public var iceGatheringState: ICEGatheringState { states.iceGathering }
  /// W3C connectionState.
  public var connectionState: ConnectionState { states.connection }
  /// How many frames went through the codecs.
  public var counters: MediaCounters { observers.counters }

  /// What happens from now on, in order; every use gives a stream of its own.
  ///
  /// A reader that stays more than 4096 events behind loses the oldest. `close` ends the stream.
  public var events: AsyncStream<PeerConnectionEvent> { observers.eventStream() }

  /// The present states, then the newest ones whenever they change; `close` ends the stream.
  public var stateChanges: AsyncStream<PeerConnectionStates> { observers.stateStream() }

  // MARK: Media

  /// Hands audio to a transceiver whose source is `.application`; any length.
  ///
  /// - Returns: false when the loop is too busy to take it, or has ended.
  @discardableResult
  public func send(_ block: AudioBlock, on transceiver: UInt32) -> Bool {
    send(.audio(block), on: transceiver)
  }

  /// Hands a video frame to a transceiver whose source is `.application`; it is sent as of now.
  ///
  /// - Returns: false when the loop is too busy to take it, or has ended.
  @discardableResult
  public func send(_ videoFrame: I420Buffer, on transceiver: UInt32) -> Bool {
    send(.videoFrame(videoFrame), on: transceiver)
  }

  /// Hands a video frame of a codec that is not encoded here to a transceiver whose source is
  /// `.application`; it is sent as of now when that codec was agreed on, from the first key frame
  /// on.
  ///
  /// - Returns: false when the loop is too busy to take it, or has ended, or for another codec.
  @discardableResult
  public func send(_ videoFrame: EncodedVideoChunk, on transceiver: UInt32) -> Bool {
    guard let codec = Codec.named(videoFrame.codec), codec.look != nil else { return false }
    return send(.encoded(codec.name, videoFrame.bytes), on: transceiver)
  }

  /// How many key frames the peer asked for on a transceiver (PLI and FIR); nil before the first
  /// video frame was sent.
  public func keyframeRequests(on transceiver: UInt32) -> Int? {
    observers.keyframeRequests(on: transceiver)
  }

  private func send(_ media: CapturedMedia, on transceiver: UInt32) -> Bool {
    send(on: transceiver) { media }
  }

  /// Makes media and hands it over, unless too much waits already.
  func send(on transceiver: UInt32, _ make: () -> CapturedMedia) -> Bool {
    guard budget.acquire() else { return false }
    let media = make()
    if loop.mailbox.post(.captured(key, transceiver: transceiver, media, budget)) { return true }
    budget.release()
    return false
  }

  /// Calls a closure with all decoded media from now on; keep the result as long as it shall
  /// continue.
  ///
  /// The closure runs on the loop's thread and must return at once.
  public func onMedia(_ sink: @escaping @Sendable (ReceivedMedia) -> Void) -> MediaSubscription {
    let observers = observers
    let id = observers.addMediaSink(sink)
    return MediaSubscription { observers.removeMediaSink(id) }
  }

  // MARK: Signaling

  /// Keeps a message of the application's signaling channel in the take; it is not acted on.
  public func recordSignaling(_ message: SignalingMessage) {
    _ = loop.mailbox.post(.input(key, .signaling(message)))
  }

  /// The former name of `recordSignaling`.
  @available(*, deprecated, renamed: "recordSignaling")
  public func noteSignaling(_ message: SignalingMessage) { recordSignaling(message) }

  // MARK: Calls as steps

  private func reply(to call: PeerCall) async -> PeerReply {
    await withCheckedContinuation { continuation in
      let message = MediaLoop.Message.call(key, call) { continuation.resume(returning: $0) }
      if !loop.mailbox.post(message) { continuation.resume(returning: .failure(.ended)) }
    }
  }

  @discardableResult
  func perform(_ call: PeerCall) async throws(PeerError) -> PeerReply {
    let reply = await reply(to: call)
    if case .failure(let error) = reply { throw error }
    registry.performed(call)
    return reply
  }

  /// Makes a call whose reply nobody waits for; calls come in the order in which they were made.
  func post(_ call: PeerCall) { _ = loop.mailbox.post(.call(key, call) { _ in }) }

  private func description(_ call: PeerCall) async throws(PeerError) -> SessionDescription {
    guard case .description(let description) = try await perform(call) else {
      throw PeerError(name: "OperationError", message: "no description was made")
    }
    return description
  }

  private func transceiver(_ call: PeerCall) async throws(PeerError) -> TransceiverInfo {
    guard case .transceiver(let info) = try await perform(call) else {
      throw PeerError(name: "OperationError", message: "no transceiver was made")
    }
    return info
  }
}

/// Keeps a closure subscribed to media for as long as it lives.
public final class MediaSubscription: Sendable {
  private let end: @Sendable () -> Void

  init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}
