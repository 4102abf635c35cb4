import JSEP
import Live
import Media
import Peer
import SDP
import Synchronization
import Testing
import Wire

/// Two connections from one factory over loopback UDP, and their delegates' events.
struct FactoryCall {
  let factory: PeerConnectionFactory
  let caller: PeerConnection
  let callee: PeerConnection
  let heard = (caller: Listener(), callee: Listener())

  init(take: String? = nil, device: (any AudioCaptureDevice)? = nil) throws {
    var options = Session.Options()
    options.takePath = take
    options.statsInterval = nil
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    factory = try PeerConnectionFactory(audioDeviceModule: device, options: options)
    caller = factory.peerConnection(label: "caller", delegate: heard.caller)
    callee = factory.peerConnection(label: "callee", delegate: heard.callee)
  }

  func connect() async throws {
    try await Self.negotiate(caller, callee)
    try await caller.waitUntilConnected(timeout: .seconds(120))
    try await callee.waitUntilConnected(timeout: .seconds(120))
  }

  /// Exchanges an offer and its answer with all candidates.
  static func negotiate(_ offerer: PeerConnection, _ answerer: PeerConnection) async throws {
    try await offerer.setLocalDescription()
    try await offerer.waitForGatheringComplete(timeout: .seconds(120))
    try await answerer.setRemoteDescription(try #require(try await offerer.localDescription))
    try await answerer.setLocalDescription()
    try await answerer.waitForGatheringComplete(timeout: .seconds(120))
    try await offerer.setRemoteDescription(try #require(try await answerer.localDescription))
  }
}

/// Records delegate events, and lets a test wait for them.
final class Listener: PeerConnectionDelegate, AudioTrackSink, VideoRenderer {
  private let told = Mutex<[String]>([])
  private let blocks = Mutex<[AudioBlock]>([])
  private let changes: AsyncStream<Void>
  private let note: AsyncStream<Void>.Continuation

  init() {
    (changes, note) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The events so far.
  var all: [String] { told.withLock { $0 } }
  /// The audio so far.
  var audio: [AudioBlock] { blocks.withLock { $0 } }

  /// Waits until a condition holds, checking it after every event.
  func wait(until holds: (Listener) -> Bool) async {
    if holds(self) { return }
    for await _ in changes where holds(self) { return }
  }

  private func tell(_ text: String) {
    told.withLock { $0.append(text) }
    note.yield()
  }

  func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream) {
    tell("stream \(stream.id): \(stream.tracks.map(\.id).joined(separator: " "))")
  }
  func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream) {
    tell("no stream \(stream.id)")
  }
  func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream]
  ) {
    tell("track \(receiver.track?.id ?? "") in \(streams.map(\.id).joined(separator: " "))")
  }
  func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver) {
    tell("no track \(receiver.track?.id ?? "")")
  }
  func peerConnection(_ connection: PeerConnection, didEnd reason: ConnectionEnd) {
    tell("end \(reason)")
  }
  func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel) {
    tell("channel \(channel.label)")
  }
  func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange
  ) {
    tell("pair \(change.reason)")
  }

  func audioTrack(_ id: String, didReceive block: AudioBlock) {
    blocks.withLock { $0.append(block) }
    note.yield()
  }

  func setSize(width: Int, height: Int) { tell("size \(width)x\(height)") }
  func renderFrame(_ frame: VideoFrame?) {
    guard let videoFrame = frame?.videoFrame() else { return tell("nothing") }
    let isBlack = videoFrame.samples.prefix(videoFrame.width * videoFrame.height).allSatisfy {
      $0 < 24
    }
    tell(isBlack ? "black" : "frame")
  }
  func onSwitch(video isEnabled: Bool) { tell("video \(isEnabled)") }
  func onSwitch(audio isEnabled: Bool) { tell("audio \(isEnabled)") }
}

/// A microphone fed by a test.
final class TestMicrophone: AudioCaptureDevice {
  private let sinks = Mutex<[Int: @Sendable (AudioBlock) -> Void]>([:])
  private let last = Mutex(0)

  var sinkCount: Int { sinks.withLock { $0.count } }

  func addCaptureSink(
    _ sink: @escaping @Sendable (AudioBlock) -> Void
  ) -> AudioCaptureSubscription {
    let id = last.withLock { last in
      last += 1
      return last
    }
    sinks.withLock { $0[id] = sink }
    return AudioCaptureSubscription { [weak self] in self?.sinks.withLock { $0[id] = nil } }
  }

  func speak(_ block: AudioBlock) {
    for sink in sinks.withLock({ Array($0.values) }) { sink(block) }
  }
}
