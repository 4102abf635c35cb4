public import ICE
public import JSEP
public import Peer
public import SDP

/// Hears what a connection tells (RTCPeerConnectionDelegate), on the loop's thread and in order; it
/// must return at once.
///
/// All methods may be left out. Streams and tracks that the application itself adds or removes are
/// not told. Removed candidates, gathering errors, pair changes, speech into disabled tracks
/// and the end need the notices of `PeerConfiguration`, which a factory's connections have.
public protocol PeerConnectionDelegate: AnyObject, Sendable {
  /// W3C signalingstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: SignalingState)
  /// W3C iceconnectionstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ICEConnectionState)
  /// W3C icegatheringstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ICEGatheringState)
  /// W3C connectionstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ConnectionState)
  /// W3C negotiationneeded.
  func peerConnectionShouldNegotiate(_ connection: PeerConnection)
  /// The peer sends a stream that it did not send before.
  func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream)
  /// The peer sends nothing of a stream any more.
  func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream)
  /// W3C track: the peer sends a track, which belongs to these streams.
  func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream])
  /// The peer no longer sends a track.
  func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver)
  /// The peer's description made a transceiver receive.
  func peerConnection(
    _ connection: PeerConnection, didStartReceivingOn transceiver: RTPTransceiver)
  /// W3C icecandidate: a candidate to be signaled; not told of the end of candidates.
  func peerConnection(_ connection: PeerConnection, didGenerate candidate: CandidateInit)
  /// Candidates that were signaled are gone.
  func peerConnection(_ connection: PeerConnection, didRemove candidates: [CandidateInit])
  /// W3C icecandidateerror.
  func peerConnection(_ connection: PeerConnection, didFailToGather error: GatheringError)
  /// Another candidate pair carries the connection.
  func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange)
  /// W3C datachannel: the other side made a channel.
  func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel)
  /// Somebody speaks into the microphone of a sent track that is disabled, or no longer does.
  func peerConnection(
    _ connection: PeerConnection, didNoticeMutedSpeech isSpeaking: Bool, transceiver: UInt32)
  /// The connection is over, and why.
  func peerConnection(_ connection: PeerConnection, didEnd reason: ConnectionEnd)
}

extension PeerConnectionDelegate {
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didChange state: SignalingState) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didChange state: ICEConnectionState) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didChange state: ICEGatheringState) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didChange state: ConnectionState) {}
  /// Does nothing.
  public func peerConnectionShouldNegotiate(_ connection: PeerConnection) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream) {}
  /// Does nothing.
  public func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream]
  ) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver) {}
  /// Does nothing.
  public func peerConnection(
    _ connection: PeerConnection, didStartReceivingOn transceiver: RTPTransceiver
  ) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didGenerate candidate: CandidateInit) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didRemove candidates: [CandidateInit]) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didFailToGather error: GatheringError) {}
  /// Does nothing.
  public func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange
  ) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel) {}
  /// Does nothing.
  public func peerConnection(
    _ connection: PeerConnection, didNoticeMutedSpeech isSpeaking: Bool, transceiver: UInt32
  ) {}
  /// Does nothing.
  public func peerConnection(_ connection: PeerConnection, didEnd reason: ConnectionEnd) {}
}
