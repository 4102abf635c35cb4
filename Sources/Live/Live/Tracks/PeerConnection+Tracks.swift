public import JSEP
public import Peer
public import Wire

// Tracks and streams as objects.
extension PeerConnection {
  /// Receives events on the loop's thread; held weakly.
  public var delegate: (any PeerConnectionDelegate)? {
    get { registry.delegate }
    set { registry.delegate = newValue }
  }

  // MARK: Sending

  /// Sends a track in streams with these identifiers, on a free transceiver or a new one (W3C
  /// addTrack).
  /// - Throws: `DuplicateIDError` if another sent track has its identifier, `InvalidAccessError` if
  ///   it is already sent or is a received track, `InvalidStateError` if it has ended.
  @discardableResult
  public func addTrack(_ track: any MediaStreamTrack, streamIDs: [String] = [])
    async throws(PeerError) -> RTPSender
  {
    let sent = try newlySendable(track)
    let initially = sent.core.initialState
    let info = try await addTransceiver(
      by: .addTrack(
        kind: track.kind, streamIDs: streamIDs, source: sent.core.source, trackID: track.id,
        isEnabled: initially))
    attach(sent, info.id, streamIDs: streamIDs, initially: initially)
    return RTPSender(connection: self, transceiver: info.id)
  }

  /// Adds a transceiver that sends a track (W3C addTransceiver).
  @discardableResult
  public func addTransceiver(
    with track: any MediaStreamTrack, direction: TransceiverDirection = .sendrecv,
    streamIDs: [String] = [], sendEncodings: [RTPEncoding] = []
  ) async throws(PeerError) -> RTPTransceiver {
    let sent = try newlySendable(track)
    let initially = sent.core.initialState
    let info = try await addTransceiver(
      by: .addTransceiver(
        kind: track.kind, direction: direction, streamIDs: streamIDs, source: sent.core.source,
        sendEncodings: sendEncodings.isEmpty ? nil : sendEncodings, isEnabled: initially))
    attach(sent, info.id, streamIDs: streamIDs, initially: initially)
    return RTPTransceiver(connection: self, id: info.id)
  }

  /// Sends all tracks of a local stream, or none of them if it throws.
  /// - Throws: `DuplicateIDError` if the identifier of the stream or of one of its tracks is
  ///   already in use, `InvalidAccessError` if the stream has no track or belongs to the remote
  ///   peer.
  public func add(_ stream: MediaStream) async throws(PeerError) {
    var sent: [any SentTrack] = []
    for track in stream.tracks { sent.append(try newlySendable(track)) }
    let tracks = sent.map { track in
      MediaStreamInit.Track(
        id: track.id, kind: track.kind, source: track.core.source,
        isEnabled: track.core.initialState)
    }
    let made = try await addStream(MediaStreamInit(id: stream.id, tracks: tracks))
    let members = made.local.first { $0.id == stream.id }?.tracks ?? []
    for (track, given) in zip(sent, tracks) {
      guard let member = members.first(where: { $0.id == track.id }) else { continue }
      attach(
        track, member.transceiver, streamIDs: [stream.id], streams: [stream],
        initially: given.isEnabled)
    }
  }

  /// Stops sending a local stream's tracks, except for tracks that are also in other streams.
  public func remove(_ stream: MediaStream) async throws(PeerError) {
    try await removeStream(stream.id)
    let members = try await streams.local.flatMap(\.tracks).map(\.transceiver)
    registry.detach { !members.contains($0) }
  }

  /// Stops sending a sender's track (W3C removeTrack); needs negotiation.
  public func removeTrack(_ sender: RTPSender) async throws(PeerError) {
    guard sender.connection === self else {
      throw PeerError(
        name: "InvalidAccessError",
        message: "the sender belongs to another connection")
    }
    try await removeTrack(sender.transceiver)
  }

  /// The senders to which tracks were added, in the order of the additions; a sender whose track
  /// was replaced with nil sends nothing.
  public var senders: [RTPSender] {
    registry.sendingTransceivers.map { RTPSender(connection: self, transceiver: $0) }
  }

  /// Returns the track that a transceiver receives, if any.
  package func receivedTrack(on transceiver: UInt32) -> (any MediaStreamTrack)? {
    registry.receivedTrack(on: transceiver)
  }

  // MARK: Streams

  /// The local streams that are sent.
  public var localStreams: [MediaStream] { registry.localStreams }
  /// The streams that the peer sends, including local ones that a server sends back.
  public var remoteStreams: [MediaStream] { registry.remoteStreams }

  /// The streams of remote participants, without local streams that a server sends back.
  public var receiverStreams: [MediaStream] {
    let own = Set(localStreams.map(\.id))
    return remoteStreams.filter { !own.contains($0.id) }
  }

  /// Returns the stream with a connection's name, for servers that name streams after the
  /// connections they come from; nil if there is none.
  public func receiverStream(connectionID: String) -> MediaStream? {
    receiverStreams.first { $0.id == connectionID }
  }

  /// The receivers of all tracks so far, one per transceiver.
  public var receivers: [RTPReceiver] {
    registry.receivedTracks.compactMap { track in
      (track as? any ReceivedTrack).map {
        RTPReceiver(connection: self, transceiver: $0.core.transceiver)
      }
    }
  }

  /// Returns a received track by its identifier; nil if there is none.
  public func remoteTrack(id: String) -> (any MediaStreamTrack)? {
    registry.receivedTracks.first { $0.id == id }
  }

  // MARK: Muting

  /// Mutes or unmutes all local tracks of a kind: they send silence or black frames while the
  /// device continues.
  /// - Throws: `MuteError` if the connection is not established, sends no track of the kind, or
  ///   has no local stream.
  public func setSoftMute(_ isMuted: Bool, of kind: MediaKind) async throws(MuteError) {
    guard connectionState == .connected else { throw .notConnected }
    let all = (try? await transceivers)?.filter { $0.kind == kind && $0.direction != .stopped }
    guard let all, !all.isEmpty else { throw .notUsed(kind) }
    guard all.contains(where: { $0.direction.sends }) else { throw .notASender }
    guard !localStreams.isEmpty else { throw .noSenderStream }
    let tracks = senders.compactMap(\.track).filter { $0.kind == kind }
    guard !tracks.isEmpty else { throw .noTrack(kind) }
    for track in tracks { track.isEnabled = !isMuted }
  }

  // MARK: Calls

  /// Returns a local track for sending; throws for a received track, and for one that has ended.
  func sendable(_ track: any MediaStreamTrack) throws(PeerError) -> any SentTrack {
    guard let sent = track as? any SentTrack else {
      throw PeerError(
        name: "InvalidAccessError",
        message: "the track \(track.id) is a received one, not a local one")
    }
    guard sent.core.isLive else {
      throw PeerError(name: "InvalidStateError", message: "the track \(track.id) has ended")
    }
    return sent
  }

  /// Records that a transceiver sends a track that was added with the state `initially`; if that
  /// has changed since, applies the new state.
  func attach(
    _ track: any SentTrack, _ transceiver: UInt32, streamIDs: [String]?,
    streams: [MediaStream] = [], initially: Bool?
  ) {
    registry.attach(track, transceiver, streamIDs: streamIDs, streams: streams)
    guard track.core.initialState != initially else { return }
    post(
      .setEnabled(transceiver: transceiver, isInbound: false, isEnabled: track.isEnabled))
  }

  private func newlySendable(_ track: any MediaStreamTrack) throws(PeerError) -> any SentTrack {
    guard !senders.contains(where: { $0.track === track }) else {
      throw PeerError(
        name: "InvalidAccessError", message: "the track \(track.id) is sent already")
    }
    return try sendable(track)
  }

  private func addTransceiver(by call: PeerCall) async throws(PeerError) -> TransceiverInfo {
    guard case .transceiver(let info) = try await perform(call) else {
      throw PeerError(name: "OperationError", message: "no transceiver was created")
    }
    return info
  }
}

/// Why local tracks cannot be muted.
public enum MuteError: Error, Hashable, Sendable {
  /// The connection is not established.
  case notConnected
  /// The connection has no media of the kind.
  case notUsed(MediaKind)
  /// The connection does not send media of the kind.
  case notASender
  /// No local stream is sent.
  case noSenderStream
  /// No local track of the kind is sent.
  case noTrack(MediaKind)
}

// MARK: - RTPTransceiver

/// The sending half of a transceiver (W3C RTCRtpSender).
public struct RTPSender: Sendable {
  let connection: PeerConnection
  /// The transceiver's number.
  public let transceiver: UInt32

  /// The sent track, if any.
  public var track: (any MediaStreamTrack)? { connection.registry.sentTrack(on: transceiver) }

  /// Sends another track, or nothing, without negotiation.
  /// - Throws: `TypeError` for a track of the other kind, `InvalidAccessError` for a received
  ///   track, `InvalidStateError` if the transceiver is stopped or the track has ended.
  public func replaceTrack(_ track: (any MediaStreamTrack)?) async throws(PeerError) {
    guard let track else {
      try await connection.perform(.replaceSource(transceiver: transceiver, nil))
      return
    }
    let sent = try connection.sendable(track)
    if let before = self.track, before.kind != track.kind {
      throw PeerError(
        name: "TypeError",
        message: "a track can only be replaced by one of the same kind")
    }
    let initially = sent.core.initialState
    try await connection.perform(
      .replaceSource(transceiver: transceiver, sent.core.source, isEnabled: initially))
    connection.attach(sent, transceiver, streamIDs: nil, initially: initially)
  }

  /// Returns the parameters (W3C getParameters).
  public func parameters() async throws(PeerError) -> RTPSendParameters {
    try await connection.getParameters(of: transceiver)
  }

  /// Sets the parameters (W3C setParameters).
  public func setParameters(_ parameters: RTPSendParameters) async throws(PeerError) {
    try await connection.setParameters(parameters, of: transceiver)
  }
}

/// The receiving half of a transceiver (W3C RTCRtpReceiver).
public struct RTPReceiver: Sendable {
  let connection: PeerConnection
  /// The transceiver's number.
  public let transceiver: UInt32

  /// The received track; nil before the peer has sent one.
  public var track: (any MediaStreamTrack)? { connection.registry.receivedTrack(on: transceiver) }

  /// Returns the sources (W3C getSynchronizationSources and getContributingSources).
  public func sources() async throws(PeerError) -> ReceivedSources {
    try await connection.sources(of: transceiver)
  }
}

/// A sender and a receiver that share an m-section (W3C RTCRtpTransceiver).
public struct RTPTransceiver: Sendable {
  let connection: PeerConnection
  /// The transceiver's number in its connection.
  public let id: UInt32

  /// The transceiver's sender, which exists even if the direction does not send (W3C
  /// RTCRtpTransceiver).
  public var sender: RTPSender { RTPSender(connection: connection, transceiver: id) }
  /// The transceiver's receiver, which exists even if the direction does not receive.
  public var receiver: RTPReceiver { RTPReceiver(connection: connection, transceiver: id) }

  /// Returns the transceiver's current state; nil if it does not exist.
  public func info() async throws(PeerError) -> TransceiverInfo? {
    try await connection.transceivers.first { $0.id == id }
  }

  /// Sets the direction; needs negotiation.
  public func setDirection(_ direction: TransceiverDirection) async throws(PeerError) {
    try await connection.setDirection(direction, of: id)
  }

  /// Sets the codecs to negotiate, in order of preference (W3C setCodecPreferences).
  public func setCodecPreferences(_ codecs: [RTPCodec]) async throws(PeerError) {
    try await connection.setCodecPreferences(codecs, of: id)
  }

  /// Stops the transceiver permanently (W3C stop).
  public func stop() async throws(PeerError) { try await connection.stopTransceiver(id) }
}
