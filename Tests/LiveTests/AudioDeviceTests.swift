import AudioSession
import Foundation
import Media
import Peer
import Synchronization
import Tape
import Testing
import Wire

@testable import Live

/// Tests audio devices, and the session that drives them.
@Suite(.timeLimit(.minutes(10))) struct AudioDeviceTests {
  /// Collects audio blocks in order of arrival, and lets a test wait for them.
  private final class Blocks: Sendable {
    private let all = Mutex<[AudioBlock]>([])
    private let stream: AsyncStream<Int>
    private let note: AsyncStream<Int>.Continuation

    init() { (stream, note) = AsyncStream.makeStream(of: Int.self) }

    func add(_ block: AudioBlock) {
      note.yield(
        all.withLock { all in
          all.append(block)
          return all.count
        })
    }

    var samples: [Int16] { all.withLock { $0.flatMap(\.samples) } }

    func wait(for count: Int) async {
      for await present in stream where present >= count { return }
    }
  }

  private func folder() throws -> String {
    let path = FileManager.default.temporaryDirectory.path + "/audio-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func session(_ path: String) throws -> Session {
    var options = Session.Options()
    options.takePath = path
    return try Session(options)
  }

  @Test func aToneIsCapturedAndBecomesTheMicrophoneOfAnotherCall() async throws {
    let folder = try folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let first = try await record(.tone(hertz: 440, nativeFrames: 512), folder + "/a.take")
    let tone = ToneGenerator(hertz: 440, pauseSeconds: 0)
    #expect(first.prefix(4_800) == tone.block(at: 0, frameCount: 4_800, channels: 1).samples[...])
    let second = try await record(.take(folder + "/a.take"), folder + "/b.take")
    #expect(second.prefix(4_800) == first.prefix(4_800))
    let take = try TakeFile.openForQueries(folder + "/b.take")
    #expect(try take.integer("SELECT count(*) FROM actor WHERE kind = 'audio session'") == 1)
    #expect(
      try take.integer("SELECT count(*) FROM capture WHERE samples = 512 AND content > 0") ?? 0
        >= 10)
  }

  /// Runs a device until it has delivered 100 ms, and returns what the senders received.
  private func record(_ device: PacedAudioDevice, _ path: String) async throws -> [Int16] {
    let session = try session(path)
    // On a busy machine, audio may be late; no silence must replace it here.
    var policy = AudioSessionPolicy()
    policy.starvationMilliseconds = 1_000
    let audio = try session.makeAudioSession(device: device, policy: policy)
    let blocks = Blocks()
    let subscription = audio.onCaptured { blocks.add($0) }
    try audio.call(.openConnection(1, sends: true, receives: true))
    await blocks.wait(for: 10)
    try audio.call(.closeConnection(1))
    withExtendedLifetime(subscription) {}
    try await session.finish()
    return blocks.samples
  }

  /// The end of a session closes all connections that are still open, and the take records this.
  @Test func theEndOfASessionStopsItsDevices() async throws {
    let folder = try folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let session = try session(folder + "/a.take")
    let device = ManualAudioDevice()
    let audio = try session.makeAudioSession(device: device)
    let events = audio.events
    try audio.call(.openConnection(1, sends: true, receives: true))
    try await session.finish()
    let last = device.operations.suffix(3).map(\.name)
    #expect(last == ["stopUnit", "uninitializeUnit", "setActive"])
    for await _ in events {}
    // After the end, the device gets no requests, captured audio is refused, and playout is silent.
    #expect(throws: AudioDeviceError.audioUnitInactive) {
      try device.port?.capture(PCMChunk(samples: Array(repeating: 1, count: 480)))
    }
    #expect(audio.pullPlayout(frames: 480).count == 480)
    let count = device.operations.count
    audio.handle(.mediaServerReset)
    #expect(device.operations.count == count)
    let take = try TakeFile.openForQueries(folder + "/a.take")
    let calls = "SELECT count(*) FROM call_request WHERE name = 'closeConnection'"
    #expect(try take.integer(calls) == 1)
  }

  @Test func aFileIsAMicrophone() async throws {
    let folder = try folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let samples = (0..<4_800).map { Int16($0) }
    let wave = folder + "/a.wav"
    let head: [UInt8] =
      Array("RIFF".utf8) + word(36 + 9_600) + Array("WAVEfmt ".utf8) + word(16)
      + [1, 0, 1, 0] + word(48_000) + word(96_000) + [2, 0, 16, 0] + Array("data".utf8)
      + word(9_600)
    let chunk = PCMChunk(samples: samples)
    try Data(head + chunk.data).write(to: URL(fileURLWithPath: wave))
    let got = try await record(.file(wave), folder + "/a.take")
    #expect(got.prefix(4_800) == samples[...])
    #expect(throws: (any Error).self) { try PacedAudioDevice.file(folder + "/none.wav") }
    #expect(throws: TapeError.self) { try PacedAudioDevice.take(wave) }
  }

  @Test func aTrackSourceSendsWhatTheSessionCaptures() async throws {
    let session = try Session()
    let audio = try session.makeAudioSession(device: PacedAudioDevice.tone(hertz: 440))
    let blocks = Blocks()
    let subscription = audio.addCaptureSink { blocks.add($0) }
    try audio.call(.openConnection(1, sends: true, receives: false))
    await blocks.wait(for: 3)
    #expect(blocks.samples.contains { $0 != 0 })
    withExtendedLifetime((subscription, AudioSource(device: audio))) {}
    try audio.call(.closeConnection(1))
    try await session.finish()
  }

  private func word(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  @Test func aManualDeviceRefusesChosenOperations() async throws {
    let session = try Session()
    let device = ManualAudioDevice()
    let audio = try session.makeAudioSession(device: device)
    #expect(throws: AudioSessionError.lockRequired) { try audio.call(.setMode(.videoChat)) }
    try audio.configure { (audio) throws(AudioSessionError) in
      try audio.call(.setMode(.videoChat))
    }
    device.behaviour.failures = ["setCategory": 9]
    #expect(throws: AudioSessionError.self) { try audio.apply(.videoChat) }
    device.behaviour.failures = [:]
    device.behaviour.permission = .denied
    await #expect(throws: AudioSessionError.permissionDenied) {
      try await audio.initializeInput()
    }
    #expect(throws: AudioDeviceError.audioUnitInactive) {
      try device.port?.capture(PCMChunk(samples: [1]))
    }
    #expect(try audio.deliver(PCMChunk(samples: [1, 2])) == 2)
    #expect(audio.counters.deliveredFrames == 2 && audio.counters.drops == 1)
    // While the device itself records, audio from other sources is refused.
    try audio.call(.openConnection(1, sends: false, receives: true))
    #expect(throws: AudioDeviceError.audioUnitActive) {
      try audio.deliver(PCMChunk(samples: [1, 2]))
    }
    #expect(audio.counters.dropsByReason["audioUnitActive"] == 1)
    try await session.finish()
  }

  /// A simulated device can imitate a platform release that had no output after returning to the
  /// default mode.
  @Test func aQuirkOfAPlatformCanBePlayed() async throws {
    let session = try Session()
    let device = ManualAudioDevice()
    let audio = try session.makeAudioSession(device: device)
    var events = audio.events.makeAsyncIterator()
    device.behaviour.losesOutputAfterDefaultMode = true
    try audio.apply(.videoChat)
    try audio.apply(.default(category: .playAndRecord, output: .default))
    let event = await events.next()
    guard case .didChangeRoute(_, let previous, let current) = event else {
      Issue.record("\(String(describing: event))")
      return
    }
    #expect(previous.renderFormat != nil && current.renderFormat == nil && current.output == "")
    try await session.finish()
  }

  @Test func silenceIsPutInThePlaceOfAnApplicationThatStops() async throws {
    let session = try Session()
    let audio = try session.makeAudioSession(device: NullAudioDevice())
    let blocks = Blocks()
    let subscription = audio.onCaptured { blocks.add($0) }
    try audio.deliver(PCMChunk(samples: Array(repeating: 7, count: 480)))
    await blocks.wait(for: 5)
    #expect(blocks.samples.prefix(480).allSatisfy { $0 == 7 })
    #expect(blocks.samples.dropFirst(480).allSatisfy { $0 == 0 })
    #expect(audio.counters.starvations == 1)
    withExtendedLifetime(subscription) {}
    try await session.finish()
  }

  @Test(arguments: [(48_000, 1), (44_100, 2), (16_000, 1), (8_000, 6)])
  func playoutHasTheFormatOfTheDevice(rate: Int, channels: Int) async throws {
    let session = try Session()
    let format = AudioFormat(sampleRate: rate, channels: channels)
    let audio = try session.makeAudioSession(device: ManualAudioDevice(renderFormat: format))
    try audio.call(.openConnection(1, sends: false, receives: true))
    for _ in 0..<10 {
      audio.play(AudioBlock(samples: Array(repeating: 900, count: 960), channels: 1), track: 1)
    }
    var played: [Int16] = []
    for _ in 0..<20 {
      let samples = audio.pullPlayout(frames: rate / 128)
      #expect(samples.count == rate / 128 * channels)
      played += samples
    }
    let middle = played[(rate / 32 * channels)..<(rate / 16 * channels)]
    #expect(middle.enumerated().allSatisfy { $1 == 0 || abs(Int($1) - 900) < 30 })
    #expect(middle.contains { $0 > 800 })
    try await session.finish()
  }

  /// SO10: settings made while a connection is connecting are overwritten once it is connected.
  @Test func aModeThatIsSetWhileConnectingIsWrittenOverOnceItIsConnected() async throws {
    let call = try LoopbackCall()
    let device = ManualAudioDevice()
    let audio = try call.session.makeAudioSession(device: device)
    let sent = try await call.caller.addTrack(.audio, source: .application)
    let attachment = try audio.attach(call.caller, sending: sent.id)
    try audio.apply(.default(category: .ambient, output: .default))
    #expect(audio.snapshot.category == "ambient")
    try await call.connect()
    while audio.snapshot.category == "ambient" { await Task.yield() }
    #expect(audio.snapshot.category == "playAndRecord" && audio.snapshot.mode == "voiceChat")
    // Settings made after the connection is established stay.
    try audio.apply(.videoChat)
    #expect(audio.snapshot.mode == "videoChat")
    let count = device.operations.count
    _ = try await call.caller.getStats()
    #expect(device.operations.count == count && audio.snapshot.mode == "videoChat")
    withExtendedLifetime(attachment) {}
    try await call.session.finish()
  }

  // MARK: The machine's audio

  /// Replaces PulseAudio's tools with scripts: `parec` emits a 500 Hz tone, `pacat` discards its
  /// input.
  @Test func theDefaultDeviceIsPulseAudiosIfInstalled() async throws {
    let folder = try folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    // 500 Hz in samples of 8000 and -8000.
    let wave =
      String(repeating: #"\100\037"#, count: 48) + String(repeating: #"\300\340"#, count: 48)
    let pieces = String(repeating: "'\(wave)' ", count: 10)
    let recorder = "#!/bin/sh\nwhile printf %b \(pieces); do sleep 0.02; done\n"
    for (name, text) in [("parec", recorder), ("pacat", "#!/bin/sh\ncat > /dev/null\n")] {
      try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o755], ofItemAtPath: folder + "/" + name)
    }
    let environment = ["PATH": folder, "PULSE_SERVER": "unix:/nowhere"]
    let device = SystemAudioDevice.make(environment)
    #expect(device.name == "pulse" && device is VoiceProcessingDevice)
    #expect(SystemAudioDevice.make(["PATH": "/nowhere", "PULSE_SERVER": "x"]).name == "silence")
    let session = try session(folder + "/a.take")
    let audio = try session.makeAudioSession(device: device)
    let blocks = Blocks()
    let subscription = audio.onCaptured { blocks.add($0) }
    try audio.call(.openConnection(1, sends: true, receives: true))
    await blocks.wait(for: 5)
    try audio.call(.closeConnection(1))
    withExtendedLifetime(subscription) {}
    try await session.finish()
    #expect(blocks.samples.contains { $0 != 0 })
    let take = try TakeFile.openForQueries(folder + "/a.take")
    let routes =
      "SELECT count(*) FROM state WHERE machine = 'audio-route' AND to_state LIKE '%pulse%'"
    #expect(try take.integer(routes) == 1)
  }

  @Test func aToolThatIsNotThereIsReported() throws {
    let error = #expect(throws: AudioDeviceError.self) {
      try PulseAudioDevice.find("parec", in: "/nowhere:/neither")
    }
    #expect(error?.description.contains("install pulseaudio-utils") == true)
  }

  /// With the tools but no server, the missing microphone is reported; with a server, it delivers
  /// audio.
  @Test(.enabled(if: (try? PulseAudioDevice.find("parec")) != nil))
  func theToolsOfTheMachineStart() async throws {
    let session = try Session()
    let audio = try session.makeAudioSession(device: try PulseAudioDevice())
    let (told, note) = AsyncStream.makeStream(of: String.self)
    let subscription = audio.onCaptured { _ in note.yield("sound") }
    let events = audio.events
    try audio.call(.openConnection(1, sends: true, receives: true))
    let watcher = Task {
      for await event in events {
        if case .didChangeRoute(.oldDeviceUnavailable, _, _) = event { note.yield("lost") }
      }
    }
    var first: String?
    for await word in told {
      first = word
      break
    }
    #expect(first != nil)
    try audio.call(.closeConnection(1))
    watcher.cancel()
    withExtendedLifetime(subscription) {}
    try await session.finish()
  }
}
