/// Receives the events of a connection, on its factory's queue and in the order in which they
/// happen.
///
/// Streams and channels that the application itself added are not reported.
public protocol RTCPeerConnectionDelegate: AnyObject {
  /// The signaling state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState)
  /// The peer added a stream.
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream)
  /// The peer removed a stream.
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream)
  /// Negotiation is needed.
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection)
  /// The ICE connection state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState)
  /// The ICE gathering state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState)
  /// A local candidate was gathered, to be signaled.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate)
  /// Local candidates that were signaled were removed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate])
  /// The peer opened a data channel.
  func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel)

  /// The standardized ICE connection state changed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState)
  /// The connection state changed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState)
  /// The peer sends on a transceiver.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver)
  /// A receiver and its track were added.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream])
  /// A receiver and its track were removed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver)
  /// Another candidate pair was selected: the reason, and the milliseconds since the last data on
  /// it.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String)
  /// A server failed to provide a candidate.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didFailToGatherIceCandidate event: RTCIceCandidateErrorEvent)
}

// The methods that the header marks as optional.
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
