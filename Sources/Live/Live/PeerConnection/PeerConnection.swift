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
/// Calls may come from any task; each becomes one step of the peer, in order of arrival. They throw
/// `PeerError` with the DOMException name that W3C prescribes.
public final class PeerConnection: Sendable {
  /// The name chosen at creation; `peer.label` in the take.
  public let label: String
  /// The peer's number in its take, counted from 1; 0 if nothing is recorded.
  public let number: UInt32

  let loop: MediaLoop
  let key: MediaLoop.PeerKey
  let observers: PeerObservers
  private let budget = CaptureBudget(maximum: PeerConnection.captureMaximum)

  /// The maximum number of blocks and frames that may wait for the loop; `send` refuses more.
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

  /// Sets a local description and starts gathering; without a description, first creates the
  /// appropriate offer or answer.
  public func setLocalDescription(_ description: SessionDescription? = nil) async throws(PeerError)
  {
    try await perform(.setLocalDescription(description))
  }

  /// Sets the remote description (W3C setRemoteDescription).
  public func setRemoteDescription(_ description: SessionDescription) async throws(PeerError) {
    try await perform(.setRemoteDescription(description))
  }

  /// Adds a remote candidate; nil means there are no more (W3C addIceCandidate).
  public func addICECandidate(_ candidate: CandidateInit?) async throws(PeerError) {
    try await perform(.addICECandidate(candidate))
  }

  /// The pending local description, or else the current one, with the candidates gathered so far.
  public var localDescription: SessionDescription? {
    get async throws(PeerError) {
      guard case .description(let description) = try await perform(.localDescription) else {
        return nil
      }
      return description
    }
  }

  /// Requests an ICE restart with the next offer (W3C restartIce).
  public func restartICE() async throws(PeerError) { try await perform(.restartICE) }

  // MARK: Tracks

  /// Adds a track that sends a source's media, on a free or new transceiver (W3C addTrack).
  @discardableResult
  public func addTrack(
    _ kind: MediaKind, source: MediaSource, streamIDs: [String] = [], trackID: String? = nil
  ) async throws(PeerError) -> TransceiverInfo {
    try await transceiver(
      .addTrack(kind: kind, streamIDs: streamIDs, source: source, trackID: trackID))
  }

  /// Adds a transceiver; without a source it sends nothing (W3C addTransceiver).
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

  /// Stops sending on a transceiver (W3C removeTrack); needs negotiation.
  public func removeTrack(_ transceiver: UInt32) async throws(PeerError) {
    try await perform(.removeTrack(transceiver: transceiver))
  }

  /// Sets a transceiver's direction; needs negotiation.
  public func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setDirection(transceiver: transceiver, direction))
  }

  /// Replaces a transceiver's source without negotiation; nil sends nothing (W3C replaceTrack).
  public func replaceSource(_ source: MediaSource?, of transceiver: UInt32) async throws(PeerError)
  {
    try await perform(.replaceSource(transceiver: transceiver, source))
  }

  /// Stops a transceiver permanently (W3C RTCRtpTransceiver.stop).
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

  /// Returns the current stats (W3C getStats) of everything or of one sender or receiver.
  ///
  /// This also works after `close`.
  public func getStats(of selector: StatsSelector? = nil) async throws(PeerError) -> StatsReport {
    guard case .stats(let report) = try await perform(.getStats(of: selector)) else {
      return StatsReport()
    }
    return report
  }

  /// Closes the connection (RTCP BYE, DTLS close_notify), its sockets and event streams.
  ///
  /// States and stats stay readable. Closing again has no effect.
  public func close() async {
    _ = await reply(to: .close)
    observers.finish()
  }

  /// Removes the peer from its loop: it makes no further step, and its resources are released even
  /// if the connection is still referenced.
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

  // MARK: States and events

  /// All current states.
  public var states: PeerConnectionStates { observers.states }
  /// W3C signalingState.
  public var signalingState: SignalingState { states.signaling }
  /// W3C iceConnectionState.
  public var iceConnectionState: ICEConnectionState { states.iceConnection }
  /// W3C iceGatheringState.
  public var iceGatheringState: ICEGatheringState { states.iceGathering }
  /// W3C connectionState.
  public var connectionState: ConnectionState { states.connection }
  /// Counts of frames processed by the codecs.
  public var counters: MediaCounters { observers.counters }

  /// Events from now on, in order; every access returns a new stream.
  ///
  /// If a reader is more than 4096 events behind, the oldest events are dropped. `close` ends the
  /// stream.
  public var events: AsyncStream<PeerConnectionEvent> { observers.eventStream() }

  /// The current states, and then the newest states whenever they change; `close` ends the stream.
  public var stateChanges: AsyncStream<PeerConnectionStates> { observers.stateStream() }

  // MARK: Media

  /// Sends audio of any length on a transceiver whose source is `.application`.
  /// - Returns: false if the loop is too busy to accept it or has ended.
  @discardableResult
  public func send(_ block: AudioBlock, on transceiver: UInt32) -> Bool {
    send(.audio(block), on: transceiver)
  }

  /// Sends a video frame now on a transceiver whose source is `.application`.
  /// - Returns: false if the loop is too busy to accept it or has ended.
  @discardableResult
  public func send(_ videoFrame: I420Buffer, on transceiver: UInt32) -> Bool {
    send(.videoFrame(videoFrame), on: transceiver)
  }

  /// Sends a frame in a codec that is not encoded here, on a transceiver whose source is
  /// `.application`.
  ///
  /// If the codec was negotiated, frames are sent immediately, from the first key frame on.
  /// - Returns: false if the loop is too busy to accept it or has ended, or for an unsupported
  ///   codec.
  @discardableResult
  public func send(_ videoFrame: EncodedVideoChunk, on transceiver: UInt32) -> Bool {
    guard let codec = Codec.named(videoFrame.codec), codec.look != nil else { return false }
    return send(.encoded(codec.name, videoFrame.bytes), on: transceiver)
  }

  /// Returns how many key frames the peer has requested on a transceiver (PLI and FIR); nil before
  /// the first frame is sent.
  public func keyframeRequests(on transceiver: UInt32) -> Int? {
    observers.keyframeRequests(on: transceiver)
  }

  private func send(_ media: CapturedMedia, on transceiver: UInt32) -> Bool {
    send(on: transceiver) { media }
  }

  /// Creates media and passes it to the loop, unless too much is already waiting.
  func send(on transceiver: UInt32, _ make: () -> CapturedMedia) -> Bool {
    guard budget.acquire() else { return false }
    let media = make()
    if loop.mailbox.post(.captured(key, transceiver: transceiver, media, budget)) { return true }
    budget.release()
    return false
  }

  /// Calls a closure with all received media, decoded where possible, until the result is released.
  ///
  /// The closure runs on the loop's thread and must not block.
  public func onMedia(_ sink: @escaping @Sendable (ReceivedMedia) -> Void) -> MediaSubscription {
    let observers = observers
    let id = observers.addMediaSink(sink)
    return MediaSubscription { observers.removeMediaSink(id) }
  }

  // MARK: Signaling

  /// Records a message from the application's signaling channel in the take, and does nothing else
  /// with it.
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

  /// Makes a call without waiting for its reply; calls are performed in order.
  func post(_ call: PeerCall) { _ = loop.mailbox.post(.call(key, call) { _ in }) }

  private func description(_ call: PeerCall) async throws(PeerError) -> SessionDescription {
    guard case .description(let description) = try await perform(call) else {
      throw PeerError(name: "OperationError", message: "no description was created")
    }
    return description
  }

  /// Sets the remote end's description as the local description of a relay's leg, and waits for the
  /// leg's candidates.
  /// - Returns: the description to signal to the peer on this leg.
  package func show(_ description: SessionDescription) async throws(PeerError)
    -> SessionDescription
  {
    let shown = try await self.description(.setLocalDescription(description))
    // Without a transport there is nothing to gather.
    guard shown.sdp.contains("a=ice-ufrag:") else { return shown }
    do {
      try await waitForGatheringComplete()
    } catch {
      guard error.name == "TimeoutError" else { throw error }
    }
    return try await self.description(.localDescription)
  }

  /// Makes a relay's leg encrypt and send a packet.
  package func send(_ packet: RelayedPacket) {
    _ = loop.mailbox.post(.input(key, .relayed(packet)))
  }

  private func transceiver(_ call: PeerCall) async throws(PeerError) -> TransceiverInfo {
    guard case .transceiver(let info) = try await perform(call) else {
      throw PeerError(name: "OperationError", message: "no transceiver was created")
    }
    return info
  }
}

/// Keeps a closure subscribed to media until this object is released.
public final class MediaSubscription: Sendable {
  private let end: @Sendable () -> Void

  init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

// MARK: - Waiting

// Waiting for states, with a time limit.
extension PeerConnection {
  /// Returns once all local candidates are known; throws `TimeoutError` after the time limit.
  public func waitForGatheringComplete(timeout: Duration = .seconds(5)) async throws(PeerError) {
    try await wait(for: "all candidates", timeout: timeout) { $0.iceGathering == .complete }
  }

  /// Returns once media can flow; throws if the connection fails, closes or takes too long.
  public func waitUntilConnected(timeout: Duration = .seconds(10)) async throws(PeerError) {
    try await wait(for: "a connection", timeout: timeout) { $0.connection == .connected }
  }

  /// Returns once the call is established: the exchange is complete, ICE is connected and all local
  /// candidates are known.
  /// - Throws: `TimeoutError` after the configuration's `establishmentTimeoutMilliseconds` (by the
  ///   stack's own clock, as recorded in the take), `NetworkError` if the connection failed first,
  ///   `InvalidStateError` if it was closed, `AbortError` if the task was cancelled.
  public func waitUntilEstablished() async throws(PeerError) {
    for await states in stateChanges {
      switch states.establishment {
      case .established: return
      case .timedOut:
        throw PeerError(name: "TimeoutError", message: "the call was not established in time")
      case .new, .establishing, .closed: break
      }
      if states.connection == .failed {
        throw PeerError(name: "NetworkError", message: "the connection failed")
      }
    }
    try TimeLimit.throwIfCancelled("the call")
    throw PeerError(name: "InvalidStateError", message: "the connection was closed")
  }

  /// Returns once a condition on the states holds.
  /// - Throws: `TimeoutError` after the time limit, `InvalidStateError` if the connection was
  ///   closed, `NetworkError` if it failed first, `AbortError` if the task was cancelled.
  public func wait(
    for what: String, timeout: Duration,
    until holds: @escaping @Sendable (PeerConnectionStates) -> Bool
  ) async throws(PeerError) {
    let changes = stateChanges
    try await TimeLimit.wait(for: what, within: timeout) {
      for await states in changes {
        if holds(states) { return nil }
        if states.connection == .failed {
          return PeerError(name: "NetworkError", message: "the connection failed")
        }
      }
      return PeerError(name: "InvalidStateError", message: "the connection was closed")
    }
  }
}

/// Waits with a time limit.
enum TimeLimit {
  /// Waits until `ended` returns, and throws the error that it returns, if any.
  /// - Throws: also `TimeoutError` after the limit and `AbortError` if the caller's task was
  ///   cancelled.
  static func wait(
    for what: String, within limit: Duration,
    until ended: @escaping @Sendable () async -> PeerError?
  ) async throws(PeerError) {
    let outcome = await withTaskGroup(of: PeerError?.self) { group in
      group.addTask { await ended() }
      group.addTask {
        try? await Task.sleep(for: limit)
        return PeerError(name: "TimeoutError", message: "\(what) took longer than \(limit)")
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      return first
    }
    guard let outcome else { return }
    try throwIfCancelled(what)
    throw outcome
  }

  /// Throws `AbortError` if the current task was cancelled; cancellation also ends every stream of
  /// states.
  static func throwIfCancelled(_ what: String) throws(PeerError) {
    guard Task.isCancelled else { return }
    throw PeerError(name: "AbortError", message: "the wait for \(what) was cancelled")
  }
}
