public import JSEP
public import Media
public import Peer
public import SDP

// Senders, streams and the descriptions beside `localDescription`.
extension PeerConnection {
  // MARK: Senders

  /// How a transceiver sends (W3C RTCRtpSender.getParameters); change the encodings and set it.
  public func getParameters(of transceiver: UInt32) async throws(PeerError) -> RTPSendParameters {
    let reply = try await perform(.getParameters(transceiver: transceiver))
    guard case .parameters(let parameters) = reply else {
      throw PeerError(name: "OperationError", message: "no parameters were read")
    }
    return parameters
  }

  /// Changes how a transceiver sends, without negotiation (W3C RTCRtpSender.setParameters).
  ///
  /// - Throws: `InvalidStateError` when the parameters were not read before or were set since,
  ///   `InvalidModificationError` when something besides the encodings was changed, `RangeError`
  ///   for values that mean nothing.
  public func setParameters(_ parameters: RTPSendParameters, of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setParameters(transceiver: transceiver, parameters))
  }

  /// Sets the streams that a sent track belongs to (W3C RTCRtpSender.setStreams); negotiation is
  /// needed.
  public func setStreams(_ streamIDs: [String], of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setStreams(transceiver: transceiver, streamIDs))
  }

  /// Sets which codecs the next exchange may agree on, the preferred one first; none returns to the
  /// defaults (W3C RTCRtpTransceiver.setCodecPreferences).
  ///
  /// - Throws: `InvalidModificationError` for codecs that are not among
  ///   `RTPCodec.capabilities`, or when none of them carries media.
  public func setCodecPreferences(_ codecs: [RTPCodec], of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setCodecPreferences(transceiver: transceiver, codecs))
  }

  /// Replaces what a transceiver sends without negotiation (W3C replaceTrack); nil sends nothing.
  public func replaceTrack(_ transceiver: UInt32, with source: MediaSource?)
    async throws(PeerError)
  {
    try await perform(.replaceSource(transceiver: transceiver, source))
  }

  /// Presses keys of a telephone in the place of a sender's audio, and forgets those that were not
  /// pressed yet (W3C RTCDTMFSender.insertDTMF, RFC 4733).
  ///
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, each of which waits two seconds; none end
  ///     what is under way.
  ///   - duration: how long each key is down, in milliseconds: 40 to 6000.
  ///   - gap: how long none is down between two, in milliseconds: 30 to 6000.
  /// - Throws: `InvalidCharacterError` for other keys; `InvalidStateError` where no audio is sent,
  ///   or the peer takes no events beside it.
  public func insertDTMF(
    _ tones: String, duration: UInt32 = 100, gap: UInt32 = 70, into transceiver: UInt32
  ) async throws(PeerError) {
    try await perform(
      .insertDTMF(transceiver: transceiver, tones: tones, duration: duration, gap: gap))
  }

  // MARK: Streams

  /// Sends all tracks of a stream, or none (the API from before transceivers).
  ///
  /// - Throws: `DuplicateIDError` when the stream or one of its tracks has the identifier of
  ///   another one that is sent.
  @discardableResult
  public func addStream(_ stream: MediaStreamInit) async throws(PeerError) -> MediaStreams {
    guard case .streams(let streams) = try await perform(.addStream(stream)) else {
      return MediaStreams()
    }
    return streams
  }

  /// Stops sending the tracks of a stream; tracks that stand in other streams too continue there.
  public func removeStream(_ id: String) async throws(PeerError) {
    try await perform(.removeStream(id))
  }

  /// The streams that are sent and received.
  public var streams: MediaStreams {
    get async throws(PeerError) {
      guard case .streams(let streams) = try await perform(.streams) else { return MediaStreams() }
      return streams
    }
  }

  // MARK: Descriptions

  /// A description of the exchange under way or of the last one; nil when there is none.
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

  /// Whether the peer takes candidates one by one, so that a description may be sent before all are
  /// known; nil as long as there is no description of the peer (W3C canTrickleIceCandidates).
  public var canTrickleICECandidates: Bool? {
    get async throws(PeerError) {
      guard let text = try await remoteDescription?.sdp else { return nil }
      return try? SDPDocument(parsing: text).trickles
    }
  }
}
