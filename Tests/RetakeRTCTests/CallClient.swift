import RetakeRTC
import Synchronization

/// The messages of an application's signaling; the application chooses the transport.
protocol CallClientDelegate: AnyObject, Sendable {
  func callClient(_ client: CallClient, didDiscover candidate: RTCIceCandidate)
  func callClient(_ client: CallClient, didChange state: RTCIceConnectionState)
  func callClientDidOpenChat(_ client: CallClient)
  func callClient(_ client: CallClient, didReceive data: Data)
}

/// An application's call logic, as on a phone.
///
/// It does not know whether the peer is live or a take.
final class CallClient: Sendable {
  private struct State {
    weak var delegate: (any CallClientDelegate)?
    var channel: RTCDataChannel?
    var hasRemoteDescription = false
    /// Remote candidates that arrived before their description.
    var early: [RTCIceCandidate] = []
  }

  static let streamId = "stream"

  let peerConnection: RTCPeerConnection
  let localAudioTrack: RTCAudioTrack
  let localVideoTrack: RTCVideoTrack
  let videoSource: RTCVideoSource
  private let state: Mutex<State>
  private let constraints = RTCMediaConstraints(
    mandatoryConstraints: [
      kRTCMediaConstraintsOfferToReceiveAudio: kRTCMediaConstraintsValueTrue,
      kRTCMediaConstraintsOfferToReceiveVideo: kRTCMediaConstraintsValueTrue,
    ], optionalConstraints: nil)

  init?(
    factory: RTCPeerConnectionFactory, iceServers: [String] = [],
    delegate: (any CallClientDelegate)?
  ) {
    let configuration = RTCConfiguration()
    if !iceServers.isEmpty {
      configuration.iceServers = [RTCIceServer(urlStrings: iceServers)]
    }
    configuration.sdpSemantics = .unifiedPlan
    configuration.continualGatheringPolicy = .gatherContinually
    configuration.tcpCandidatePolicy = .disabled
    let constraints = RTCMediaConstraints(
      mandatoryConstraints: nil,
      optionalConstraints: ["DtlsSrtpKeyAgreement": kRTCMediaConstraintsValueTrue])
    guard
      let connection = factory.peerConnection(
        with: configuration, constraints: constraints, delegate: nil)
    else { return nil }
    peerConnection = connection
    state = Mutex(State(delegate: delegate))
    let audioSource = factory.audioSource(
      with: RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil))
    localAudioTrack = factory.audioTrack(with: audioSource, trackId: "audio0")
    videoSource = factory.videoSource()
    localVideoTrack = factory.videoTrack(with: videoSource, trackId: "video0")
    connection.add(localAudioTrack, streamIds: [CallClient.streamId])
    connection.add(localVideoTrack, streamIds: [CallClient.streamId])
    connection.delegate = self
  }

  var delegate: (any CallClientDelegate)? { state.withLock { $0.delegate } }

  // MARK: Signaling

  func offer(_ completion: @escaping @Sendable (RTCSessionDescription) -> Void) {
    openChannel()
    peerConnection.offer(for: constraints) { sdp, _ in self.apply(sdp, completion) }
  }

  func answer(_ completion: @escaping @Sendable (RTCSessionDescription) -> Void) {
    peerConnection.answer(for: constraints) { sdp, _ in self.apply(sdp, completion) }
  }

  private func apply(
    _ sdp: RTCSessionDescription?, _ completion: @escaping @Sendable (RTCSessionDescription) -> Void
  ) {
    guard let sdp else { return }
    peerConnection.setLocalDescription(sdp) { error in
      if error == nil { completion(sdp) }
    }
  }

  func set(
    remoteSdp: RTCSessionDescription, _ completion: @escaping @Sendable ((any Error)?) -> Void
  ) {
    peerConnection.setRemoteDescription(remoteSdp) { error in
      let early = self.state.withLock { state in
        state.hasRemoteDescription = error == nil
        defer { state.early = [] }
        return error == nil ? state.early : []
      }
      for candidate in early { self.add(candidate) }
      completion(error)
    }
  }

  func set(remoteCandidate: RTCIceCandidate) {
    let isEarly = state.withLock { state in
      if !state.hasRemoteDescription { state.early.append(remoteCandidate) }
      return !state.hasRemoteDescription
    }
    if !isEarly { add(remoteCandidate) }
  }

  private func add(_ candidate: RTCIceCandidate) {
    peerConnection.add(candidate) { _ in }
  }

  // MARK: Data

  private func openChannel() {
    let configuration = RTCDataChannelConfiguration()
    guard
      let channel = peerConnection.dataChannel(
        forLabel: "chat", configuration: configuration)
    else { return }
    take(channel)
  }

  private func take(_ channel: RTCDataChannel) {
    channel.delegate = self
    state.withLock { $0.channel = channel }
  }

  @discardableResult
  func sendData(_ data: Data) -> Bool {
    let buffer = RTCDataBuffer(data: data, isBinary: true)
    return state.withLock { $0.channel }?.sendData(buffer) ?? false
  }

  func hangUp() { peerConnection.close() }
}

extension CallClient: RTCPeerConnectionDelegate {
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState
  ) {}
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream) {}
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream) {}
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState
  ) {
    delegate?.callClient(self, didChange: newState)
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate
  ) {
    delegate?.callClient(self, didDiscover: candidate)
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate]
  ) {}
  func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel) {
    take(dataChannel)
  }
}

extension CallClient: RTCDataChannelDelegate {
  func dataChannelDidChangeState(_ dataChannel: RTCDataChannel) {
    if dataChannel.readyState == .open { delegate?.callClientDidOpenChat(self) }
  }
  func dataChannel(
    _ dataChannel: RTCDataChannel, didReceiveMessageWith buffer: RTCDataBuffer
  ) {
    delegate?.callClient(self, didReceive: buffer.data)
  }
}
