import Foundation
import JSEP
import Media
import Peer
import Stats
import Synchronization
import Tape
import Testing
import Wire

@testable import Live

/// Tests how senders start and stop capturers, and what takes record about the capturers.
@Suite(.timeLimit(.minutes(10)), .serialized) struct SendingCapturersTests {
  private static let format = VideoFormat(width: 64, height: 48, framesPerSecond: 30)

  /// A capturer that records the requests it gets.
  private final class Watched: VideoCapturer {
    let isScreencast: Bool
    let supportedFormats: [VideoFormat]
    private let log = Mutex<[String]>([])

    init(isScreencast: Bool = false, formats: [VideoFormat] = [SendingCapturersTests.format]) {
      self.isScreencast = isScreencast
      supportedFormats = formats
    }

    var calls: [String] { log.withLock { $0 } }

    func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
      log.withLock { $0.append("start \(format.width)") }
      consumer.captureDidStart(true)
    }

    func stopCapture() { log.withLock { $0.append("stop") } }

    func wait(for calls: [String]) async {
      while self.calls != calls { await Task.yield() }
    }
  }

  // TW18: the pipeline starts and stops the capturer.
  @Test func aCapturerRunsFromTheFirstSenderToTheLast() async throws {
    let (one, two) = (try FactoryCall(), try FactoryCall())
    let capturer = Watched()
    let session = VideoCaptureSession(capturer)
    let source = VideoSource()
    session.feed(source)
    let track = LocalVideoTrack(source: source, id: "camera")
    #expect(capturer.calls.isEmpty && session.state == .stopped)
    let first = try await one.caller.addTrack(track)
    await capturer.wait(for: ["start 64"])
    #expect(session.state == .started)
    let second = try await two.caller.addTrack(track)
    try await one.caller.removeTrack(first)
    #expect(capturer.calls == ["start 64"])
    try await two.caller.removeTrack(second)
    await capturer.wait(for: ["start 64", "stop"])
    #expect(session.state == .stopped)
    // Sending starts the capturer again; closing the connection stops it.
    try await one.caller.addTrack(track)
    await capturer.wait(for: ["start 64", "stop", "start 64"])
    await one.caller.close()
    await capturer.wait(for: ["start 64", "stop", "start 64", "stop"])
    // A transceiver that sends without a track also starts and stops the capturer.
    let video = try await two.caller.addTransceiver(.video, source: .application)
    session.send(on: video.id, of: two.caller)
    await capturer.wait(for: ["start 64", "stop", "start 64", "stop", "start 64"])
    session.endSending(on: video.id, of: two.caller)
    #expect(session.state == .stopped)
    try await one.factory.finish()
    try await two.factory.finish()
  }

  // TW18: the application overrides the pipeline.
  @Test func theApplicationDecidesOnceItHasStartedOrStoppedTheCapturer() async throws {
    let call = try FactoryCall()
    let capturer = Watched(
      formats: [Self.format, VideoFormat(width: 32, height: 24, framesPerSecond: 30)])
    let session = VideoCaptureSession(capturer)
    let source = VideoSource()
    session.feed(source)
    let track = LocalVideoTrack(source: source, id: "camera")
    let sender = try await call.caller.addTrack(track)
    await capturer.wait(for: ["start 64"])
    // A format other than the first one, which the pipeline chose.
    let wish = VideoFormat(width: 32, height: 24, framesPerSecond: 30)
    #expect(await session.start(wish))
    #expect(capturer.calls == ["start 64", "stop", "start 32"] && session.state == .started)
    try await call.caller.removeTrack(sender)
    #expect(session.state == .started)
    session.stop()
    try await call.caller.addTrack(track)
    #expect(session.state == .stopped)
    let quiet = Watched()
    let manual = VideoCaptureSession(quiet, startsWhenSent: false)
    manual.feed(source)
    #expect(manual.state == .stopped && quiet.calls.isEmpty)
    try await call.factory.finish()
  }

  /// Returns what a take records about its senders' capturers.
  private func notes(
    _ body: (FactoryCall) async throws -> Void
  ) async throws -> [String] {
    try await LoopbackCall.inFolder { path in
      let call = try FactoryCall(take: path)
      try await body(call)
      try await call.factory.finish()
      let take = try TakeFile.openForQueries(path)
      let rows = try take.prepare(
        "SELECT name || ' ' || arguments FROM call_request WHERE name IN "
          + "('noteCapture', 'setContentHint') ORDER BY row")
      var texts: [String] = []
      while try rows.step() { texts.append(rows.text(0) ?? "") }
      return texts
    }
  }

  /// Waits until a session has started and its report is in the take.
  private static func started(_ session: VideoCaptureSession, _ call: FactoryCall) async throws {
    while session.state != .started { await Task.yield() }
    // The report follows the change of state.
    for _ in 0..<20 { _ = try await call.caller.getStats() }
  }

  // TW20: a screen is reported on every path from a source to a sender.
  @Test func aScreenIsReportedOnEveryWayToASender() async throws {
    let screen = #""isScreencast":true"#
    // The capturer starts after the track has been added, or before.
    for startsFirst in [false, true] {
      let told = try await notes { call in
        let session = VideoCaptureSession(Watched(isScreencast: true))
        let source = VideoSource()
        session.feed(source)
        if startsFirst { #expect(await session.start()) }
        let track = LocalVideoTrack(source: source, id: "screen")
        try await call.caller.addTrack(track)
        try await Self.started(session, call)
      }
      #expect(told.contains { $0.contains(screen) && $0.contains("started") }, "\(told)")
    }
    // A screen behind a filter.
    let filtered = try await notes { call in
      let capturer = FilteredVideoCapturer(Watched(isScreencast: true), filters: [])
      let session = VideoCaptureSession(capturer)
      let source = VideoSource()
      session.feed(source)
      try await call.caller.addTrack(LocalVideoTrack(source: source, id: "screen"))
      try await Self.started(session, call)
    }
    #expect(filtered.contains { $0.contains(screen) }, "\(filtered)")
    // A source without a capturer, whose content hint is set before and during sending.
    let said = try await notes { call in
      let source = VideoSource(contentHint: .detail)
      try await call.caller.addTrack(LocalVideoTrack(source: source, id: "screen"))
      source.contentHint = .text
      _ = try await call.caller.getStats()
    }
    #expect(said.filter { $0.contains("setContentHint") }.count == 2, "\(said)")
    // A camera causes no such report.
    let camera = try await notes { call in
      let session = VideoCaptureSession(Watched())
      let source = VideoSource()
      session.feed(source)
      try await call.caller.addTrack(LocalVideoTrack(source: source, id: "camera"))
      try await Self.started(session, call)
    }
    #expect(!camera.isEmpty && !camera.contains { $0.contains(screen) }, "\(camera)")
  }

  // TW5: a blocked encoder does not block the capturer.
  @Test func encodingHoldsUpNoCapturer() async throws {
    let encoder = StandingEncoder()
    var options = Session.Options()
    options.statsInterval = nil
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let factory = try PeerConnectionFactory(encoderFactory: encoder, options: options)
    let (caller, callee) = (factory.peerConnection(), factory.peerConnection())
    let source = factory.videoSource()
    try await caller.addTrack(factory.videoTrack(with: source, trackID: "v"))
    try await FactoryCall.negotiate(caller, callee)
    try await caller.waitUntilConnected(timeout: .seconds(120))
    // Captures frames until the encoder blocks on the first one.
    var time: Int64 = 0
    func capture() throws {
      time += 40_000_000
      let black = I420Buffer(
        width: 64, height: 48, samples: Array(repeating: 128, count: 64 * 48 * 3 / 2))
      source.capture(try VideoFrame(black, timestampNanoseconds: time))
    }
    while !encoder.isBusy {
      try capture()
      await Task.yield()
    }
    // Frames for which there is no room are dropped, and no call blocks.
    for _ in 0..<100 { try capture() }
    #expect(encoder.isBusy && encoder.threads.isDisjoint(with: [encoder.thread()]))
    encoder.goOn()
    try await factory.finish()
    #expect(encoder.threads.count == 1)
  }

  /// An encoder that blocks in the middle of its first frame.
  private final class StandingEncoder: VideoEncoderFactory {
    private struct State {
      var isBusy = false
      var threads: Set<UInt> = []
    }

    private let state = Mutex(State())
    private let gate = DispatchSemaphore(value: 0)

    var implementationName: String { "standing" }
    var supportedCodecs: [String] { ["vp8"] }
    var isBusy: Bool { state.withLock { $0.isBusy } }
    var threads: Set<UInt> { state.withLock { $0.threads } }
    func thread() -> UInt { UInt(pthread_self()) }

    func goOn() { for _ in 0..<1_000 { gate.signal() } }

    func encode() {
      state.withLock { state in
        state.isBusy = true
        state.threads.insert(thread())
      }
      gate.wait()
    }

    func makeEncoder(_ settings: VideoEncoderSettings) throws(VideoCodecError)
      -> any VideoEncoder
    {
      Encoder(factory: self)
    }
  }

  private final class Encoder: VideoEncoder {
    private let factory: StandingEncoder

    init(factory: StandingEncoder) { self.factory = factory }

    func encode(_ frame: I420Buffer, mediaTime: UInt32, needsKey: Bool) throws(VideoCodecError)
      -> EncodedVideoFrame?
    {
      factory.encode()
      return nil
    }

    func setBitrate(_ bitsPerSecond: UInt64) {}
  }
}
