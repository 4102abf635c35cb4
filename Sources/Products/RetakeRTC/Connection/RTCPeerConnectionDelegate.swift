/// What a connection tells, on its factory's queue and in the order in which it happens.
///
/// Nothing is told of streams and channels that the application itself added.
public protocol RTCPeerConnectionDelegate: AnyObject {
  /// The offer/answer exchange is in another state.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState)
  /// The peer sends a stream that it did not send before.
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream)
  /// The peer sends nothing of a stream any more.
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream)
  /// An exchange of descriptions is needed.
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection)
  /// The checks of candidate pairs are in another state.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState)
  /// The gathering of candidates is in another state.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState)
  /// A local candidate is to be signaled.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate)
  /// Local candidates that were signaled are gone.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate])
  /// The other side made a data channel.
  func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel)

  /// The same as `didChange` of the checks' state. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState)
  /// ICE and DTLS together are in another state. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState)
  /// The peer sends on a transceiver. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver)
  /// A receiver and its track begin. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream])
  /// A receiver and its track end. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver)
  /// Another pair of candidates carries a transport: why, and how many milliseconds ago something
  /// last came over it. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String)
  /// A server gave no candidate. Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didFailToGatherIceCandidate event: RTCIceCandidateErrorEvent)
}

// What the header marks as optional.
extension RTCPeerConnectionDelegate {
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream]
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String
  ) {}
  /// Does nothing.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didFailToGatherIceCandidate event: RTCIceCandidateErrorEvent
  ) {}
}
