public import ICE
public import JSEP
public import Peer
public import SDP

/// Receives the events of a connection (RTCPeerConnectionDelegate), on the loop's thread and in
/// order; methods must return at once.
///
/// All methods are optional. Streams and tracks that the application itself adds or removes are not
/// reported. Removed candidates, gathering errors, pair changes, speech into disabled tracks and
/// the end need the notices of `PeerConfiguration`, which a factory's connections have.
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
  /// The peer started to send a stream.
  func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream)
  /// The peer stopped sending a stream.
  func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream)
  /// W3C track: the peer sends a track, which belongs to these streams.
  func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream])
  /// The peer stopped sending a track.
  func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver)
  /// The peer's description made a transceiver receive.
  func peerConnection(
    _ connection: PeerConnection, didStartReceivingOn transceiver: RTPTransceiver)
  /// W3C icecandidate: a candidate to signal; the end of candidates is not reported.
  func peerConnection(_ connection: PeerConnection, didGenerate candidate: CandidateInit)
  /// Signaled candidates became invalid.
  func peerConnection(_ connection: PeerConnection, didRemove candidates: [CandidateInit])
  /// W3C icecandidateerror.
  func peerConnection(_ connection: PeerConnection, didFailToGather error: GatheringError)
  /// Another candidate pair was selected.
  func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange)
  /// W3C datachannel: the peer created a channel.
  func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel)
  /// Somebody speaks into a disabled sent track, or stopped.
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
