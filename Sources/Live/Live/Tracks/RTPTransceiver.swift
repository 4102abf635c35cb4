public import JSEP
public import Peer

/// W3C RTCRtpSender: what a transceiver sends.
public struct RTPSender: Sendable {
  let connection: PeerConnection
  /// The transceiver it belongs to.
  public let transceiver: UInt32

  /// The sent track, if any.
  public var track: (any MediaStreamTrack)? { connection.registry.sentTrack(on: transceiver) }

  /// Sends another track, or nothing, without negotiation.
  /// - Throws: `TypeError` for a track of the other kind, `InvalidAccessError` for a received one,
  ///   `InvalidStateError` if the transceiver is stopped.
  public func replaceTrack(_ track: (any MediaStreamTrack)?) async throws(PeerError) {
    guard let track else {
      try await connection.perform(.replaceSource(transceiver: transceiver, nil))
      return
    }
    let sent = try connection.sendable(track)
    if let before = self.track, before.kind != track.kind {
      throw PeerError(name: "TypeError", message: "a track is replaced by one of the same kind")
    }
    let initially = sent.core.initialState
    try await connection.perform(
      .replaceSource(transceiver: transceiver, sent.core.source, isEnabled: initially))
    connection.attach(sent, transceiver, streamIDs: nil, initially: initially)
  }

  /// W3C getParameters.
  public func parameters() async throws(PeerError) -> RTPSendParameters {
    try await connection.getParameters(of: transceiver)
  }

  /// W3C setParameters.
  public func setParameters(_ parameters: RTPSendParameters) async throws(PeerError) {
    try await connection.setParameters(parameters, of: transceiver)
  }
}

/// W3C RTCRtpReceiver: what a transceiver receives.
public struct RTPReceiver: Sendable {
  let connection: PeerConnection
  /// The transceiver it belongs to.
  public let transceiver: UInt32

  /// The track; nil before the peer sent one.
  public var track: (any MediaStreamTrack)? { connection.registry.receivedTrack(on: transceiver) }

  /// W3C getSynchronizationSources and getContributingSources.
  public func sources() async throws(PeerError) -> ReceivedSources {
    try await connection.sources(of: transceiver)
  }
}

/// W3C RTCRtpTransceiver: a sender and a receiver that share an m-section.
public struct RTPTransceiver: Sendable {
  let connection: PeerConnection
  /// The transceiver's number in its connection.
  public let id: UInt32

  /// The sender.
  public var sender: RTPSender { RTPSender(connection: connection, transceiver: id) }
  /// The receiver.
  public var receiver: RTPReceiver { RTPReceiver(connection: connection, transceiver: id) }

  /// The current transceiver, if it exists.
  public func info() async throws(PeerError) -> TransceiverInfo? {
    try await connection.transceivers.first { $0.id == id }
  }

  /// Sets the direction; needs negotiation.
  public func setDirection(_ direction: TransceiverDirection) async throws(PeerError) {
    try await connection.setDirection(direction, of: id)
  }

  /// W3C setCodecPreferences.
  public func setCodecPreferences(_ codecs: [RTPCodec]) async throws(PeerError) {
    try await connection.setCodecPreferences(codecs, of: id)
  }

  /// Stops it permanently (W3C stop).
  public func stop() async throws(PeerError) { try await connection.stopTransceiver(id) }
}
