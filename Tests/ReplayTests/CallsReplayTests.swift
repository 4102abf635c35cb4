import Foundation
import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Secure
import Tape
import Testing
import Wire

@testable import Replay

struct CallsReplayTests {
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let pattern = MediaSource.pattern(width: 96, height: 64, framesPerSecond: 10)

  /// Makes every kind of request that an application can make; some requests are refused.
  private func everything(_ call: VirtualCall) {
    call.call(
      0,
      .addStream(
        MediaStreamInit(
          id: "s",
          tracks: [
            .init(id: "a", kind: .audio, source: CallsReplayTests.tone),
            .init(id: "v", kind: .video, source: CallsReplayTests.pattern),
          ])))
    call.call(0, .addStream(MediaStreamInit(id: "s", tracks: [])))
    call.call(1, .addTrack(kind: .audio, streamIDs: ["t"], source: CallsReplayTests.tone))
    call.call(
      0,
      .setCodecPreferences(
        transceiver: 2, [RTPCodec(mimeType: "video/VP8", clockRate: 90_000)]))
    // Both peers offer; the first one is polite.
    call.call(0, .setLocalDescription(nil))
    #expect(call.negotiate(from: 1, to: 0) == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    if case .parameters(var parameters) = call.call(0, .getParameters(transceiver: 2)) {
      parameters.encodings[0].scaleResolutionDownBy = 2
      parameters.encodings[0].maxFramerate = 5
      #expect(call.call(0, .setParameters(transceiver: 2, parameters)).error == nil)
      call.call(0, .setParameters(transceiver: 2, parameters))
    }
    call.run(for: .seconds(1))
    call.call(0, .setStreams(transceiver: 2, ["u"]))
    #expect(call.negotiate() == nil)
    call.call(1, .streams)
    call.call(1, .sources(transceiver: 1))
    call.call(1, .limitAudioSlots(1))
    call.call(1, .exemptFromAudioSlots(transceiver: 1, true))
    call.call(1, .observeLoudest(LoudestSettings(intervalMilliseconds: 250)))
    call.call(1, .readDescription(.currentRemote))
    call.call(0, .removeStream("s"))
    #expect(call.negotiate() == nil)
    // The call moves to a third peer.
    call.call(2, .addTrack(kind: .video, streamIDs: [], source: CallsReplayTests.pattern))
    call.call(0, .restartICE)
    #expect(call.negotiate(from: 0, to: 2) == nil)
    call.run(for: .seconds(2))
    #expect(call.state("dtls", of: 2) == "connected")
  }

  /// Records with generated certificates, and with configured certificates at the first two peers.
  @Test(arguments: [false, true], [false, true])
  func everyCallReplaysBitForBit(_ skipsCodecs: Bool, _ hasCertificates: Bool) throws {
    try replayEverything(skipsCodecs, hasCertificates, keepsMedia: true)
  }

  @Test func everyCallReplaysFromItsPacketsAlone() throws {
    try replayEverything(true, false, keepsMedia: false)
  }

  private func replayEverything(
    _ skipsCodecs: Bool, _ hasCertificates: Bool, keepsMedia: Bool
  ) throws {
    let folder = FileManager.default.temporaryDirectory.path + "/replay-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/calls.take"
    var options = TapeWriter.Options()
    options.waitsForDisk = true
    options.keepsMedia = keepsMedia
    options.toolchain = Toolchain(openssl: "3.0", cpu: "here")
    let writer = try TapeWriter(path: path, options: options)
    let numbers = ["one", "two", "three"].map { writer.addPeer(label: $0, role: $0).actor }
    var configuration = PeerConfiguration()
    let algorithms: [CertificateAlgorithm] = hasCertificates ? [.rsa2048, .ecdsaP256] : []
    configuration.certificates = algorithms.map {
      PeerCertificate(
        algorithm: $0, seed: [4, 2], createdUnixSeconds: labEpoch / 1_000_000_000,
        lifetimeSeconds: 3_600)
    }
    configuration.srtpProtections = [.aeadAES256GCM]
    configuration.bundlePolicy = .maxBundle
    // The third peer differs from the second only if it has another certificate.
    var third = configuration
    third.certificates = []
    let call = VirtualCall(
      seed: 91, links: [LinkSettings(), LinkSettings(), LinkSettings()],
      configurations: [configuration, configuration, third], peerNumbers: numbers
    ) { writer.record($0) }
    everything(call)
    for peer in 0..<3 { call.call(peer, .close) }
    _ = try writer.finish()
    var replaying = Replayer.Options()
    replaying.skipsCodecs = skipsCodecs
    let report = try replay(path, replaying)
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.steps > 500)
  }

  /// Sections with separate transports, which another exchange bundles.
  @Test(arguments: [false, true]) func aCallThatIsNotBundledReplaysBitForBit(substitutes: Bool)
    throws
  {
    let folder = FileManager.default.temporaryDirectory.path + "/replay-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var configuration = PeerConfiguration()
    configuration.bundlePolicy = .maxCompat
    let recording = try RecordedVirtualCall(
      path: folder + "/apart.take", seed: 92, links: [LinkSettings(), LinkSettings()],
      labels: ["one", "two"], configurations: [configuration, configuration],
      security: OtherLibraries())
    let call = recording.call
    call.addMedia(videoFrames: CallsReplayTests.pattern)
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    let group = "a=group:BUNDLE 0 1 2\r\n"
    #expect(call.negotiate { $0.replacing(group, with: "") } == nil)
    recording.run(for: .seconds(2))
    call.send(0, DataMessage(channel: 0, isBinary: true, bytes: [1, 2, 3]))
    recording.run(for: .seconds(1))
    #expect(call.state("dtls 3", of: 1) == "connected")
    #expect(call.negotiate(from: 1, to: 0) == nil)
    recording.run(for: .seconds(1))
    #expect(call.state("connection", of: 1) == "connected")
    let summary = try recording.finish()
    var options = Replayer.Options()
    if substitutes { options.security = [.dtls, .srtp] }
    let report = try Replayer(
      path: folder + "/apart.take", options: options, codecs: { LibraryCodecs() }
    ) { codecs in
      PeerMachine(codecs: codecs, security: OtherLibraries())
    }.run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.steps == summary.steps)
  }
}
