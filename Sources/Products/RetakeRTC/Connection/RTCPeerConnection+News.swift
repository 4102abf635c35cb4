import Live
import Peer
import SCTP
import SDP
import Synchronization
import Wire

// Converts the stack's events to delegate calls.
extension RTCPeerConnection {
  /// Receives an event on the loop's thread and forwards it to the factory's queue, in order.
  func receive(_ news: PeerConnectionNews) {
    // A channel must be registered before its first message arrives.
    switch news {
    case .event(.dataChannel(let channel)), .event(.dataChannelState(let channel, _)),
      .message(let channel, _):
      _ = rtcChannel(channel)
    default: break
    }
    callBack { self.notify(news) }
  }

  private func notify(_ news: PeerConnectionNews) {
    switch news {
    case .event(let event):
      if !notifyState(event), !notifyMedia(event), let delegate { notify(event, to: delegate) }
    case .message(let channel, let message): rtcChannel(channel).received(message)
    }
  }

  /// Reports a state of the connection or a channel; returns false for other events.
  private func notifyState(_ event: PeerConnectionEvent) -> Bool {
    let delegate = delegate
    switch event {
    case .signalingState(let state):
      delegate?.peerConnection(self, didChange: RTCSignalingState(state))
    case .iceConnectionState(let state):
      delegate?.peerConnection(self, didChange: RTCIceConnectionState(state))
      delegate?.peerConnection(
        self, didChangeStandardizedIceConnectionState: RTCIceConnectionState(state))
    case .iceGatheringState(let state):
      delegate?.peerConnection(self, didChange: RTCIceGatheringState(state))
    case .connectionState(let state):
      delegate?.peerConnection(self, didChange: RTCPeerConnectionState(state))
    case .dataChannelState(let channel, let channelState):
      rtcChannel(channel).changed()
      if channelState == .closed { state.withLock { $0.channels[channel.number] = nil } }
    case .bufferedAmountLow(let channel): rtcChannel(channel).drained()
    case .mutedSpeech(_, let isSpeaking): factory.lines?.notify(isSpeaking: isSpeaking)
    default: return false
    }
    return true
  }

  /// Reports a received track or stream; returns false for other events.
  private func notifyMedia(_ event: PeerConnectionEvent) -> Bool {
    let delegate = delegate
    switch event {
    case .track(let info):
      let transceiver = transceiver(info)
      if info.kind == .audio { factory.lines?.receive(connection) }
      let streams = info.remoteStreamIDs.map { remoteStream($0) }
      // A known stream is not reported again when a track is added to it.
      for stream in streams { stream.received(transceiver.receiver.named(info.remoteTrackID)) }
      delegate?.peerConnection(self, didStartReceivingOn: transceiver)
      delegate?.peerConnection(self, didAdd: transceiver.receiver, streams: streams)
    case .trackEnded(let id):
      guard let receiver = state.withLock({ $0.transceivers[id]?.receiver }) else { return true }
      if let track = receiver.track {
        for stream in state.withLock({ $0.remoteStreams }) { stream.lost(track) }
      }
      delegate?.peerConnection(self, didRemove: receiver)
    case .trackChanged(let change) where change.isInbound && change.kind == .ended:
      state.withLock { $0.transceivers[change.transceiver]?.receiver }?.ended()
    case .streamAdded(let info):
      let stream = remoteStream(info.id)
      for track in info.tracks {
        guard let transceiver = transceiver(track.transceiver) else { continue }
        stream.received(transceiver.receiver.named(track.id))
      }
      delegate?.peerConnection(self, didAdd: stream)
    case .streamRemoved(let id):
      let stream = remoteStream(id)
      state.withLock { state in state.remoteStreams.removeAll { $0 === stream } }
      delegate?.peerConnection(self, didRemove: stream)
    default: return false
    }
    return true
  }

  /// Returns the object for a remote stream, creating it if it is new.
  private func remoteStream(_ id: String) -> RTCMediaStream {
    state.withLock { state in
      if let known = state.remoteStreams.first(where: { $0.streamId == id }) { return known }
      let made = RTCMediaStream(streamId: id)
      state.remoteStreams.append(made)
      return made
    }
  }

  private func notify(
    _ event: PeerConnectionEvent, to delegate: any RTCPeerConnectionDelegate
  ) {
    switch event {
    case .negotiationNeeded: delegate.peerConnectionShouldNegotiate(self)
    case .iceCandidate(let candidate?):
      let own = RTCIceCandidate(candidate)
      connection.record(own, isInbound: false)
      delegate.peerConnection(self, didGenerate: own)
    case .dataChannel(let channel):
      delegate.peerConnection(self, didOpen: rtcChannel(channel))
    case .iceCandidatesRemoved(let candidates):
      delegate.peerConnection(self, didRemove: candidates.map { RTCIceCandidate($0) })
    case .iceCandidateError(let error):
      delegate.peerConnection(
        self, didFailToGatherIceCandidate: RTCIceCandidateErrorEvent(error))
    case .selectedCandidatePair(let change):
      delegate.peerConnection(
        self, didChangeLocalCandidate: RTCIceCandidate(CandidateInit(candidate: change.local)),
        remoteCandidate: RTCIceCandidate(CandidateInit(candidate: change.remote)),
        lastReceivedMs: Int32(clamping: change.lastReceivedMilliseconds ?? 0),
        changeReason: change.reason.rawValue)
    default: break
    }
  }

  /// Returns the object for a channel, creating it if it is new.
  func rtcChannel(_ channel: DataChannel) -> RTCDataChannel {
    state.withLock { state in
      if let known = state.channels[channel.number] { return known }
      let made = RTCDataChannel(channel, of: connection)
      state.channels[channel.number] = made
      return made
    }
  }
}

// MARK: - RTCPeerConnectionDelegate

/// Receives a connection's events in order, on its factory's queue.
///
/// Streams and channels that the application itself added are not reported.
public protocol RTCPeerConnectionDelegate: AnyObject {
  /// Reports that the signaling state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState)
  /// Reports that the peer added a stream.
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream)
  /// Reports that the peer removed a stream.
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream)
  /// Reports that negotiation is needed.
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection)
  /// Reports that the ICE connection state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState)
  /// Reports that the ICE gathering state changed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState)
  /// Passes a local candidate to be signaled.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate)
  /// Reports that local candidates already signaled were removed.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate])
  /// Reports that the peer opened a data channel.
  func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel)

  /// Reports that the standardized ICE connection state changed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState)
  /// Reports that the connection state changed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState)
  /// Reports that the peer sends on a transceiver.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver)
  /// Reports that a receiver and its track were added.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream])
  /// Reports that a receiver and its track were removed.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver)
  /// Reports that another candidate pair was selected, with the reason and how many milliseconds
  /// ago the pair last received data.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String)
  /// Reports that a server failed to provide a candidate.
  ///
  /// Optional.
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didFailToGatherIceCandidate event: RTCIceCandidateErrorEvent)
}

// Methods that the Objective-C header marks as optional.
extension RTCPeerConnectionDelegate {
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream]
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String
  ) {}
  /// Does nothing by default.
  public func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didFailToGatherIceCandidate event: RTCIceCandidateErrorEvent
  ) {}
}
