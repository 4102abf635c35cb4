import RetakeRTC
import Synchronization

/// Records reports as strings, and waits for them.
final class Told: Sendable {
  private struct State {
    var log: [String] = []
    var waiting: [(text: String, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  /// The reports so far, in order.
  var log: [String] { state.withLock { $0.log } }

  /// Returns the index of a report's first occurrence; nil if there is none.
  func place(of text: String) -> Int? { log.firstIndex(of: text) }

  func note(_ text: String) {
    let done = state.withLock { state in
      state.log.append(text)
      let count = state.log.count { $0 == text }
      let done = state.waiting.filter { $0.text == text && $0.count <= count }
      state.waiting.removeAll { $0.text == text && $0.count <= count }
      return done
    }
    for waiter in done { waiter.continuation.resume() }
  }

  /// Waits until a report has occurred `count` times.
  func wait(for text: String, count: Int = 1) async {
    await withCheckedContinuation { continuation in
      let isTold = state.withLock { state in
        if state.log.count(where: { $0 == text }) >= count { return true }
        state.waiting.append((text, count, continuation))
        return false
      }
      if isTold { continuation.resume() }
    }
  }
}

/// A delegate that records all of its calls.
final class Listener: RTCPeerConnectionDelegate, RTCDataChannelDelegate, Sendable {
  let told = Told()
  /// The local candidates in order of arrival.
  let candidates: AsyncStream<RTCIceCandidate>
  private let candidate: AsyncStream<RTCIceCandidate>.Continuation
  private let found = Mutex<(streams: [RTCMediaStream], channels: [RTCDataChannel])>(([], []))

  init() { (candidates, candidate) = AsyncStream.makeStream() }

  /// The remote streams reported so far.
  var streams: [RTCMediaStream] { found.withLock { $0.streams } }
  /// The remote channels reported so far.
  var channels: [RTCDataChannel] { found.withLock { $0.channels } }

  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState
  ) { told.note("signaling \(stateChanged)") }
  func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream) {
    found.withLock { $0.streams.append(stream) }
    told.note("added \(stream.streamId)")
  }
  func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream) {
    told.note("removed \(stream.streamId)")
  }
  func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection) {
    told.note("negotiate")
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState
  ) { told.note("ice \(newState)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState
  ) { told.note("gathering \(newState)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate
  ) {
    self.candidate.yield(candidate)
    told.note("candidate")
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate]
  ) { told.note("removed \(candidates.count) candidates") }
  func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel) {
    dataChannel.delegate = self
    found.withLock { $0.channels.append(dataChannel) }
    told.note("channel \(dataChannel.label)")
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection,
    didChangeStandardizedIceConnectionState newState: RTCIceConnectionState
  ) { told.note("standardized ice \(newState)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState
  ) { told.note("connection \(newState)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver
  ) { told.note("receiving \(transceiver.mediaType)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver,
    streams mediaStreams: [RTCMediaStream]
  ) {
    told.note("receiver of \(mediaStreams.map(\.streamId).joined(separator: ","))")
  }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didRemove rtpReceiver: RTCRtpReceiver
  ) { told.note("removed \(rtpReceiver.receiverId)") }
  func peerConnection(
    _ peerConnection: RTCPeerConnection, didChangeLocalCandidate local: RTCIceCandidate,
    remoteCandidate remote: RTCIceCandidate, lastReceivedMs lastDataReceivedMs: Int32,
    changeReason reason: String
  ) { told.note("pair") }

  func dataChannelDidChangeState(_ dataChannel: RTCDataChannel) {
    told.note("\(dataChannel.label) \(dataChannel.readyState)")
  }
  func dataChannel(
    _ dataChannel: RTCDataChannel, didReceiveMessageWith buffer: RTCDataBuffer
  ) {
    told.note("message \(String(decoding: buffer.data, as: UTF8.self))")
  }
  func dataChannel(_ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64) {
    told.note("buffered \(amount)")
  }
}
