import Foundation
import JSEP
import Live
import Media
import MediaFiles
import Peer
import SDP
import Secure
import Stats
import Synchronization
import Testing
import Wire

/// Two real stacks in one session over loopback UDP.
struct LoopbackCall {
  let session: Session
  let caller: PeerConnection
  let callee: PeerConnection

  init(
    take: String? = nil, address: String = "127.0.0.1", statsInterval: Interval? = nil,
    configuration: PeerConfiguration = PeerConfiguration()
  ) throws {
    var options = Session.Options()
    options.takePath = take
    options.label = "loopback"
    options.statsInterval = statsInterval
    options.bind = .addresses([try #require(IPAddress(address))])
    session = try Session(options)
    caller = session.makePeer(label: "caller", role: "caller", configuration: configuration)
    callee = session.makePeer(label: "callee", role: "callee", configuration: configuration)
  }

  /// Exchanges an offer and its answer with all candidates, and waits for both connections.
  func connect() async throws {
    try await caller.setLocalDescription()
    try await caller.waitForGatheringComplete(timeout: .seconds(120))
    try await callee.setRemoteDescription(try #require(try await caller.localDescription))
    try await callee.setLocalDescription()
    try await callee.waitForGatheringComplete(timeout: .seconds(120))
    try await caller.setRemoteDescription(try #require(try await callee.localDescription))
    try await caller.waitUntilConnected(timeout: .seconds(120))
    try await callee.waitUntilConnected(timeout: .seconds(120))
  }

  /// Waits until a peer has delivered the given numbers of video frames and blocks.
  static func receive(videoFrames: Int, blocks: Int, of peer: PeerConnection) async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    let counts = Mutex((videoFrames: 0, blocks: 0))
    let subscription = peer.onMedia { media in
      let isEnough = counts.withLock { counts in
        switch media.content {
        case .audio: counts.blocks += 1
        case .videoFrame, .encodedVideo: counts.videoFrames += 1
        }
        return counts.videoFrames >= videoFrames && counts.blocks >= blocks
      }
      if isEnough { continuation.finish() }
    }
    for await _ in stream {}
    withExtendedLifetime(subscription) {}
  }

  /// Returns the closure's result for a path in a folder that is removed afterwards.
  static func inFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.path + "/live-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try await body(folder + "/call")
  }
}

@Suite(.timeLimit(.minutes(10)), .serialized) struct LoopbackCallTests {
  static let pattern = MediaSource.pattern(width: 160, height: 120, framesPerSecond: 15)
  static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)

  @Test(arguments: ["127.0.0.1", "::1"])
  func audioAndVideoFramesTravelBothWaysOverLoopback(address: String) async throws {
    let call = try LoopbackCall(address: address)
    for peer in [call.caller, call.callee] {
      try await peer.addTrack(.audio, source: LoopbackCallTests.tone)
      try await peer.addTrack(.video, source: LoopbackCallTests.pattern)
    }
    try await call.connect()
    await LoopbackCall.receive(videoFrames: 5, blocks: 20, of: call.caller)
    await LoopbackCall.receive(videoFrames: 5, blocks: 20, of: call.callee)
    #expect(call.caller.signalingState == .stable)
    #expect(call.caller.states.dtls == .connected)
    #expect(call.caller.counters.videoFramesSent > 4)
    let stats = try await call.caller.getStats()
    #expect(stats.objects.contains { $0.type == "inbound-rtp" })
    let sent = try await call.caller.getStats(of: .sender(transceiver: 2))
    let streams = sent.objects.filter { $0.type == "outbound-rtp" }
    #expect(streams.count == 1)
    // Live codecs are timed, and the time is part of the stats.
    #expect(streams.first?["totalEncodeTime"] != nil)
    // A window of 100 ms in which the machine stalled is quieter, so the levels are read
    // repeatedly.
    var levels = call.caller.audioLevels
    func areOfTheTone() -> Bool {
      levels.allSatisfy { (-20 ... -10).contains($0.decibels) && $0.percent > 60 }
    }
    for _ in 0..<100 where !areOfTheTone() {
      await LoopbackCall.receive(videoFrames: 0, blocks: 5, of: call.caller)
      levels = call.caller.audioLevels
    }
    #expect(Set(levels.map(\.track.isInbound)) == [false, true])
    #expect(areOfTheTone(), "\(levels)")
    #expect(call.caller.occupantLevels.isEmpty)
    let slots = call.caller.events
    try await call.caller.limitAudioSlots()
    try await call.caller.observeLoudest(LoudestSettings(count: 2, intervalMilliseconds: 250))
    var hasSlot = false
    for await event in slots {
      if case .audioSubscribed(let track) = event { hasSlot = track.isInbound }
      if case .loudestSpeakers(let volumes) = event, volumes.count == 2, hasSlot { break }
    }
    #expect(call.caller.occupantLevels.map(\.track.isInbound) == [true])
    #expect(call.caller.occupantLevels.allSatisfy { $0.percent > 60 })
    let sources = try await call.caller.sources(of: 1)
    #expect(sources.synchronization.count == 1 && sources.contributing.isEmpty)
    await call.caller.close()
    #expect(call.caller.connectionState == .closed)
    // The remote peer receives the DTLS closure alert.
    for await states in call.callee.stateChanges where states.dtls == .closed { break }
    try await call.session.finish()
  }

  @Test func applicationMediaIsSentAndReceived() async throws {
    let call = try LoopbackCall()
    let audio = try await call.caller.addTrack(.audio, source: .application)
    let video = try await call.caller.addTrack(.video, source: .application)
    try await call.connect()
    let received = Task { await LoopbackCall.receive(videoFrames: 2, blocks: 10, of: call.callee) }
    let sending = Task {
      let block = AudioBlock(samples: (0..<960).map { Int16($0 % 100) * 100 }, channels: 1)
      let bytes = [UInt8](repeating: 90, count: I420Buffer.byteCount(width: 64, height: 48))
      for number in 0... {
        guard !Task.isCancelled else { return }
        call.caller.send(block, on: audio.id)
        if number % 2 == 0 {
          call.caller.send(I420Buffer(width: 64, height: 48, samples: bytes), on: video.id)
        }
        // The next block is sent once this one has been encoded.
        while call.caller.counters.audioSent <= number, !Task.isCancelled { await Task.yield() }
      }
    }
    await received.value
    sending.cancel()
    await sending.value
    try await call.session.finish()
  }

  @Test func filesAreSentAndWhatIsReceivedIsWrittenToFiles() async throws {
    try await LoopbackCall.inFolder { path in
      let call = try LoopbackCall()
      let header = Y4MWriter.header(Y4MHeader(width: 64, height: 64, rateNumerator: 30))
      let pattern = TestPattern(width: 64, height: 64)
      let frames = (0..<4).flatMap { Y4MWriter.frame(pattern.videoFrame($0)) }
      try Data(header + frames).write(to: URL(filePath: path + ".y4m"))
      let format = WAVFormat(channels: 1, sampleRate: 48_000)
      let audio = AudioBlock(samples: (0..<48_000).map { Int16($0 % 200) * 50 }, channels: 1)
      try Data(WAVWriter.header(format, dataByteCount: 96_000) + WAVWriter.samples(audio)).write(
        to: URL(filePath: path + ".wav"))
      let feeds = FileFeeds()
      for (format, ending) in [(MediaFileFormat.wav, ".wav"), (.y4m, ".y4m")] {
        let info = try await call.caller.addTrack(format.kind, source: .application)
        try feeds.start(path + ending, format: format, on: info.id, of: call.caller)
      }
      let videoFrames = try FileSink(path: path + "-out.y4m", kind: .video, from: call.callee)
      let blocks = try FileSink(path: path + "-out.wav", kind: .audio, from: call.callee)
      try await call.connect()
      await LoopbackCall.receive(videoFrames: 8, blocks: 20, of: call.callee)
      #expect(feeds.errors.isEmpty)
      try await call.session.finish()
      let written = (try await videoFrames.finish(), try await blocks.finish())
      #expect(written.0.written >= 8 && written.0.dropped == 0)
      #expect(written.1.written >= 20 && written.1.dropped == 0)
      var read = try Y4MFileSource(path: path + "-out.y4m", loops: false)
      var count = 0
      while try read.next() != nil { count += 1 }
      #expect(count == written.0.written)
      #expect(read.width == 64 && read.height == 64)
      _ = try WAVFileSource(path: path + "-out.wav", loops: false)
    }
  }

  @Test func aRecordedCallMakesATake() async throws {
    try await LoopbackCall.inFolder { path in
      let call = try LoopbackCall(take: path, statsInterval: .milliseconds(200))
      for peer in [call.caller, call.callee] {
        try await peer.addTrack(.audio, source: LoopbackCallTests.tone)
        try await peer.addTrack(.video, source: LoopbackCallTests.pattern)
      }
      try await call.connect()
      await LoopbackCall.receive(videoFrames: 3, blocks: 10, of: call.callee)
      let summary = try #require(try await call.session.finish())
      #expect(summary.path == path)
      #expect(summary.steps > 100)
      #expect(summary.packets > 50)
      #expect(summary.bytes > 10_000)
      // An existing take is not overwritten.
      #expect(throws: SessionError.self) { try LoopbackCall(take: path) }
    }
  }
}
