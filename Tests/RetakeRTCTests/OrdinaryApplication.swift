import RetakeRTC

// An application in the style of Swift 5: ordinary classes with mutable state, closures that hold
// `self`, no concurrency annotations. It compiles here in Swift 6 mode.

/// One end of a call, as in the guide to the Objective-C API.
class OrdinaryClient: RTCPeerConnectionDelegate, RTCVideoRenderer {
  let factory: RTCPeerConnectionFactory
  var peerConn: RTCPeerConnection?
  var stream: RTCMediaStream?
  var other: OrdinaryClient?
  var received: RTCMediaStream?
  var waiting: [RTCIceCandidate] = []
  var isConnected = false
  var frames = 0
  var size = CGSize.zero
  var lastFrame: RTCVideoFrame?
  var whatHappens: () -> Void = {}
  var errors: [String] = []

  init(factory: RTCPeerConnectionFactory) { self.factory = factory }

  func open() {
    let peerConn = factory.peerConnection(
      with: RTCConfiguration(), constraints: nil, delegate: nil)
    peerConn.delegate = self
    self.peerConn = peerConn
  }

  func publish() {
    guard let peerConn else { return }
    let videoSource = factory.videoSource()
    let videoTrack = factory.videoTrack(with: videoSource, trackId: "video")
    let audioSource = factory.audioSource(with: nil)
    let audioTrack = factory.audioTrack(with: audioSource, trackId: "audio")
    let stream = factory.mediaStream(withStreamId: "stream")
    stream.addVideoTrack(videoTrack)
    stream.addAudioTrack(audioTrack)
    peerConn.add(stream)
    self.stream = stream
  }

  func call(_ other: OrdinaryClient) {
    self.other = other
    other.other = self
    let constraints = RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
    peerConn?.offer(for: constraints) { sdp, error in
      guard let sdp else { return self.fail(error) }
      self.peerConn?.setLocalDescription(sdp) { error in
        if error != nil { return self.fail(error) }
        other.answer(sdp, constraints)
      }
    }
  }

  func answer(_ offer: RTCSessionDescription, _ constraints: RTCMediaConstraints) {
    peerConn?.setRemoteDescription(offer) { error in
      if error != nil { return self.fail(error) }
      self.peerConn?.answer(for: constraints) { sdp, error in
        guard let sdp else { return self.fail(error) }
        self.peerConn?.setLocalDescription(sdp) { error in
          if error != nil { return self.fail(error) }
          self.other?.peerConn?.setRemoteDescription(sdp) { error in
            if error != nil { return self.fail(error) }
            for client in [self, self.other] { client?.addWaiting() }
          }
        }
      }
    }
  }

  private func fail(_ error: (any Error)?) {
    errors.append(error.map { "\($0)" } ?? "no description")
    whatHappens()
  }

  private func addWaiting() {
    for candidate in waiting { peerConn?.add(candidate) { _ in } }
    waiting = []
  }

  func take(_ candidate: RTCIceCandidate) {
    waiting.append(candidate)
    if peerConn?.remoteDescription != nil { addWaiting() }
  }

  // MARK: RTCPeerConnectionDelegate

  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState
  ) {}
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream) {
    received = stream
    stream.videoTracks.first?.add(self)
    whatHappens()
  }
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream) {}
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState
  ) {
    if newState == .connected {
      isConnected = true
      whatHappens()
    }
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate
  ) { other?.take(candidate) }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate]
  ) {}
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel
  ) {}

  // MARK: RTCVideoRenderer

  func setSize(_ size: CGSize) { self.size = size }
  func renderFrame(_ frame: RTCVideoFrame?) {
    guard let frame else { return }
    frames += 1
    lastFrame = frame
    whatHappens()
  }
}

/// Shares a screen with its sound, as in the fork's README.
class SampleHandler: RPBroadcastSampleHandler {
  var module: RTCAudioDeviceModule?
  var client: OrdinaryClient?
  var videoSource: RTCVideoSource?
  lazy var capturer: RTCVideoCapturer? = videoSource.map { RTCVideoCapturer(delegate: $0) }

  override func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {
    RTCAudioSession.sharedInstance().useManualAudio = true
    RTCAudioSession.sharedInstance().isAudioEnabled = false
    let module = RTCAudioDeviceModule()
    module.audioUnitSubType = kAudioUnitSubType_RemoteIO
    let factory = RTCPeerConnectionFactory(
      encoderFactory: RTCDefaultVideoEncoderFactory(),
      decoderFactory: RTCDefaultVideoDecoderFactory(), audioDeviceModule: module)
    let client = OrdinaryClient(factory: factory)
    client.open()
    let videoSource = factory.videoSource(forScreenCast: true)
    client.peerConn?.add(
      factory.videoTrack(with: videoSource, trackId: "screen"), streamIds: ["broadcast"])
    client.peerConn?.add(factory.audioTrack(withTrackId: "sound"), streamIds: ["broadcast"])
    self.module = module
    self.client = client
    self.videoSource = videoSource
  }

  override func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {
    switch sampleBufferType {
    case .video:
      guard let pixels = CMSampleBufferGetImageBuffer(sampleBuffer), let capturer else { return }
      let time = CMTimeGetSeconds(CMSampleBufferGetPresentationTimeStamp(sampleBuffer))
      videoSource?.capturer(
        capturer,
        didCapture: RTCVideoFrame(
          pixelBuffer: pixels, rotation: ._0, timeStampNs: Int64(time * 1_000_000_000)))
    case .audioMic: module?.deliverRecordedData(sampleBuffer)
    case .audioApp: break
    @unknown default: break
    }
  }

  override func broadcastFinished() { client?.peerConn?.close() }
}
