import Foundation
import Retake
import Synchronization
import Testing

/// The code in the article "Send and receive tracks".
@Suite(.timeLimit(.minutes(10))) struct SendingTracksTests {
  // PX1, GU3, GU4, GU13, GU22, SO1, SO3, SO16, SO17
  @Test func aCallWithMutedTracksMakesATakeThatShowsThem() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/tracks-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    try await call(path)
    let take = try Take.open(path)
    let calls = try take.query(
      "SELECT name || ' ' || arguments FROM call_request", as: String.self
    ).all()
    // The article's four ways to stop sending are recorded as four different calls.
    #expect(calls.count { $0.hasPrefix("setEnabled") && $0.contains("false") } == 2)
    #expect(calls.contains(#"replaceSource {"transceiver":1}"#))
    #expect(calls.contains { $0.hasPrefix("setDirection") })
    #expect(calls.contains { $0.hasPrefix("removeTrack") })
    #expect(calls.contains(#"setVolume {"transceiver":1,"volume":0.5}"#))
    let events = try take.query(
      "SELECT type FROM event WHERE peer = 2", as: String.self
    ).all()
    for type in ["unmute", "disabled", "selectedcandidatepairchange", "mute", "connectionend"] {
      #expect(events.contains(type))
    }
    #expect(try await take.replay().isIdentical)
    #expect(try await take.replay(.withoutCodecs).isIdentical)
  }

  @Test func layersAreOfferedByTheirNames() async throws {
    let factory = try PeerConnectionFactory(options: Session.Options())
    let caller = factory.peerConnection(label: "caller")
    let transceiver = try await caller.addTransceiver(
      .video, direction: .sendonly, source: .pattern(width: 1280, height: 720, framesPerSecond: 30),
      sendEncodings: [RTPEncoding(rid: "q"), RTPEncoding(rid: "h"), RTPEncoding(rid: "f")])
    let offer = try await caller.createOffer()
    #expect(offer.sdp.contains("a=simulcast:send q;h;f"))
    let parameters = try await caller.getParameters(of: transceiver.id)
    #expect(parameters.encodings.map(\.scaleResolutionDownBy) == [4, 2, 1])
    await caller.close()
  }

  private final class Speaker: AudioTrackSink {
    let blocks = Mutex(0)
    func audioTrack(_ id: String, didReceive block: AudioBlock) { blocks.withLock { $0 += 1 } }
  }

  private final class Observer: PeerConnectionDelegate {
    let streams = Mutex<[String]>([])
    func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream) {
      streams.withLock { $0.append(stream.id) }
    }
  }

  /// Waits until a connection has played `count` more blocks.
  private func play(_ count: Int, of connection: PeerConnection) async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    let left = Mutex(count)
    let subscription = connection.onMedia { media in
      guard case .audio = media.content else { return }
      let isOver = left.withLock { left in
        left -= 1
        return left <= 0
      }
      if isOver { continuation.finish() }
    }
    for await _ in stream {}
    withExtendedLifetime(subscription) {}
  }

  private func call(_ path: String) async throws {
    let observer = Observer()
    var options = Session.Options()
    options.takePath = path
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let factory = try PeerConnectionFactory(options: options)
    let caller = factory.peerConnection(label: "caller")
    let callee = factory.peerConnection(label: "callee", delegate: observer)

    let microphone = AudioSource(.tone(hertz: 440, pauseSeconds: 0))
    let audio = factory.audioTrack(with: microphone, trackID: "microphone")
    let stream = factory.mediaStream(withStreamID: "caller")
    try stream.addTrack(audio)
    try await caller.add(stream)

    try await negotiate(caller, callee)
    try await callee.waitUntilConnected()
    #expect(observer.streams.withLock { $0 } == ["caller"])

    let speaker = Speaker()
    if let remote = callee.receiverStream(connectionID: "caller"),
      let voice = remote.audioTracks.first as? RemoteAudioTrack
    {
      voice.addSink(speaker)
      voice.volume = 0.5
    }
    await play(15, of: callee)
    #expect(speaker.blocks.withLock { $0 } > 5)

    audio.isEnabled = false  // silence, while packets flow on
    callee.remoteStreams.first?.audioEnabled = false  // silence here alone
    await play(15, of: callee)

    let sender = caller.senders[0]
    try await sender.replaceTrack(nil)  // no packets, without negotiation
    try await sender.replaceTrack(audio)
    try await caller.setDirection(.inactive, of: sender.transceiver)  // after negotiation
    try await caller.removeTrack(sender)  // the stream ends, after negotiation
    try await negotiate(caller, callee)

    try await factory.finish()
  }
}
