import RetakeRTC

/// A delegate isolated to the main actor, on which the factory calls its methods.
@MainActor class OrdinaryScreen: @MainActor RTCPeerConnectionDelegate {
  let factory: RTCPeerConnectionFactory
  var peerConn: RTCPeerConnection?
  var happened: [String] = []

  init(factory: RTCPeerConnectionFactory) {
    factory.callbackQueue = .main
    self.factory = factory
  }

  func call() {
    let none = RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
    let peerConn = factory.peerConnection(
      with: RTCConfiguration(), constraints: nil, delegate: self)
    self.peerConn = peerConn
    peerConn.addTransceiver(of: .audio)
    peerConn.offer(for: none) { sdp, _ in
      guard let sdp else { return }
      self.happened.append("offer")
      self.peerConn?.setLocalDescription(sdp) { _ in self.happened.append("set") }
    }
  }

  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState
  ) {
    MainActor.assertIsolated()
    happened.append("signaling \(stateChanged)")
  }
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream) {}
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream) {}
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate]
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel
  ) {}
}
