public import JSEP
public import Media
public import Peer
public import SDP

// Senders, streams and other descriptions than `localDescription`.
extension PeerConnection {
  // MARK: Senders

  /// The parameters of a sender (W3C RTCRtpSender.getParameters); change the encodings and set
  /// them.
  public func getParameters(of transceiver: UInt32) async throws(PeerError) -> RTPSendParameters {
    let reply = try await perform(.getParameters(transceiver: transceiver))
    guard case .parameters(let parameters) = reply else {
      throw PeerError(name: "OperationError", message: "no parameters were read")
    }
    return parameters
  }

  /// Changes the parameters of a sender without negotiation (W3C RTCRtpSender.setParameters).
  /// - Throws: `InvalidStateError` if the parameters were not read before or were set since,
  ///   `InvalidModificationError` if something besides the encodings was changed, `RangeError` for
  ///   invalid values.
  public func setParameters(_ parameters: RTPSendParameters, of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setParameters(transceiver: transceiver, parameters))
  }

  /// Sets the streams of a sent track (W3C RTCRtpSender.setStreams); needs negotiation.
  public func setStreams(_ streamIDs: [String], of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setStreams(transceiver: transceiver, streamIDs))
  }

  /// Sets the codecs to negotiate in order of preference; an empty list restores the defaults (W3C
  /// RTCRtpTransceiver.setCodecPreferences).
  /// - Throws: `InvalidModificationError` for codecs that are not in `RTPCodec.capabilities`, or if
  ///   none of them carries media.
  public func setCodecPreferences(_ codecs: [RTPCodec], of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setCodecPreferences(transceiver: transceiver, codecs))
  }

  /// Replaces a transceiver's source without negotiation (W3C replaceTrack); nil sends nothing.
  public func replaceTrack(_ transceiver: UInt32, with source: MediaSource?)
    async throws(PeerError)
  {
    try await perform(.replaceSource(transceiver: transceiver, source))
  }

  /// Presses telephone keys in place of a sender's audio, replacing those not pressed yet (W3C
  /// RTCDTMFSender.insertDTMF, RFC 4733).
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, which pause for two seconds; empty to
  ///     stop.
  ///   - duration: of each key, in milliseconds: 40 to 6000.
  ///   - gap: between two keys, in milliseconds: 30 to 6000.
  /// - Throws: `InvalidCharacterError` for other keys; `InvalidStateError` if no audio is sent, or
  ///   the peer does not accept telephone events.
  public func insertDTMF(
    _ tones: String, duration: UInt32 = 100, gap: UInt32 = 70, into transceiver: UInt32
  ) async throws(PeerError) {
    try await perform(
      .insertDTMF(transceiver: transceiver, tones: tones, duration: duration, gap: gap))
  }

  // MARK: Streams

  /// Sends all tracks of a stream, or none (the API from before transceivers).
  /// - Throws: `DuplicateIDError` if the identifier of the stream or one of its tracks is already
  ///   sent.
  @discardableResult
  public func addStream(_ stream: MediaStreamInit) async throws(PeerError) -> MediaStreams {
    guard case .streams(let streams) = try await perform(.addStream(stream)) else {
      return MediaStreams()
    }
    return streams
  }

  /// Stops sending the tracks of a stream, except for those in other streams.
  public func removeStream(_ id: String) async throws(PeerError) {
    try await perform(.removeStream(id))
  }

  /// The sent and received streams.
  public var streams: MediaStreams {
    get async throws(PeerError) {
      guard case .streams(let streams) = try await perform(.streams) else { return MediaStreams() }
      return streams
    }
  }

  // MARK: Descriptions

  /// A description of the current or last exchange, if there is one.
  public func description(_ slot: DescriptionSlot) async throws(PeerError) -> SessionDescription? {
    guard case .description(let description) = try await perform(.readDescription(slot)) else {
      return nil
    }
    return description
  }

  /// The peer's pending or else current description (W3C remoteDescription).
  public var remoteDescription: SessionDescription? {
    get async throws(PeerError) { try await description(.remote) }
  }

  /// Whether the peer supports trickle ICE, so that a description may be sent before all candidates
  /// are known; nil without a remote description (W3C canTrickleIceCandidates).
  public var canTrickleICECandidates: Bool? {
    get async throws(PeerError) {
      guard let text = try await remoteDescription?.sdp else { return nil }
      return try? SDPDocument(parsing: text).trickles
    }
  }
}
