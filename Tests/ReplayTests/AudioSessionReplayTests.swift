import AudioSession
import Debug
import Foundation
import Lab
import Media
import Page
import Peer
import Queries
import Replay
import Tape
import Testing
import Wire

/// An audio session in a take: recorded in virtual time, replayed, and shown in the timeline.
struct AudioScenario {
  let folder = try? MachineFolder()
  let path: String

  init(
    _ policy: AudioSessionPolicy = AudioSessionPolicy(),
    _ body: (VirtualAudioSession) -> Void
  ) throws {
    let writer = try #require(folder).writer("audio.take")
    body(VirtualAudioSession(policy, writer: writer))
    _ = try writer.finish()
    path = try #require(folder).file("audio.take")
  }

  func replay() throws -> ReplayReport {
    try Replayer(path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }).run()
  }

  func expectIdentical() throws {
    let report = try replay()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.peers == ["audio"] && report.isComplete)
  }

  /// Returns the timeline's entries, each with its milliseconds.
  func timeline(_ lanes: [String] = ["state", "event", "api"]) throws -> [String] {
    try Timeline(path: path, lanes: lanes).entries.map { entry in
      "\(entry.atNanoseconds / 1_000_000) \(entry.text)"
    }
  }
}

/// A microphone's audio, the same few pieces repeated.
enum Microphone {
  static func chunk(_ number: Int, frames: Int = 480, rate: Int = 48_000) -> PCMChunk {
    let samples = (0..<frames).map { Int16(($0 * (number % 7 + 3)) % 4_001 - 2_000) }
    return PCMChunk(samples: samples, sampleRate: rate, captureTimeNanoseconds: Int64(number))
  }
}

struct AudioSessionReplayTests {
  /// Starts a call: the session's own device captures for 50 ms.
  private func begin(_ session: VirtualAudioSession, rate: Int = 48_000) {
    session.call(.openConnection(1, sends: true, receives: true))
    talk(session, rate: rate)
  }

  private func talk(_ session: VirtualAudioSession, blocks: Int = 5, rate: Int = 48_000) {
    for number in 0..<blocks {
      session.deliver(Microphone.chunk(number, frames: rate / 100, rate: rate), from: .unit)
      session.receive(AudioBlock(samples: Array(repeating: 9, count: 480), channels: 1), on: 1)
      session.pull()
      session.wait(.milliseconds(10))
    }
  }

  @Test func anInterruptionInTheMiddleOfACall() throws {
    let scenario = try AudioScenario { session in
      begin(session)
      session.handle(.interruptionBegan)
      session.wait(.milliseconds(50))
      session.handle(.interruptionEnded(shouldResume: true))
      talk(session)
    }
    try scenario.expectIdentical()
    let told = try scenario.timeline().filter { !$0.hasPrefix("0 ") }
    #expect(
      told == [
        "50 interruptionBegan", "50 audio-session: active -> inactive",
        "50 audio-interruption: none -> interrupted", "50 didBeginInterruption",
        #"50 operation {"id":12,"operation":"stopUnit"}"#,
        "50 audio-unit: started -> initialized", "50 audio-recording: recording -> stopped",
        "50 audio-playout: playing -> stopped",
        "50 audio-source-0-microphone: flowing -> idle",
        "100 interruptionEnded", "100 audio-interruption: interrupted -> none",
        #"100 willSetActive {"active":true}"#,
        #"100 operation {"id":13,"operation":"setActive","active":true}"#,
        "100 audio-session: inactive -> active", #"100 didSetActive {"active":true}"#,
        #"100 didEndInterruption {"shouldResumeSession":true}"#,
        #"100 operation {"id":14,"operation":"startUnit"}"#,
        "100 audio-unit: initialized -> started", "100 audio-recording: stopped -> recording",
        "100 audio-playout: stopped -> playing", "100 audio-source-0-microphone: idle -> flowing",
      ])
  }

  @Test func aLateActivationByTheSystem() throws {
    let scenario = try AudioScenario { session in
      session.call(.useManualAudio(true))
      session.call(.openConnection(1, sends: true, receives: true))
      session.wait(.milliseconds(700))
      // The device does not exist yet, so audio delivered now is refused.
      session.deliver(Microphone.chunk(0), from: .unit)
      session.handle(.externallyActivated)
      session.call(.setAudioEnabled(true))
      talk(session)
      session.call(.setAudioEnabled(false))
      session.handle(.externallyDeactivated)
    }
    try scenario.expectIdentical()
    let told = try scenario.timeline(["state"])
    #expect(
      told.filter { !$0.contains("audio-source") } == [
        "0 audio-permission: undetermined -> granted", "700 audio-session: inactive -> active",
        "700 audio-unit: uninitialized -> initialized", "700 audio-unit: initialized -> started",
        "700 audio-recording: stopped -> recording", "700 audio-playout: stopped -> playing",
        "750 audio-unit: started -> initialized", "750 audio-recording: recording -> stopped",
        "750 audio-playout: playing -> stopped", "750 audio-unit: initialized -> uninitialized",
        "750 audio-session: active -> inactive",
      ])
    let events = try scenario.timeline(["event"])
    #expect(
      events.contains(
        #"700 sourceRefused {"source":0,"tag":"microphone","reason":"audioUnitInactive"}"#))
    // The system has activated the session, so the device gets no request for that.
    #expect(!events.contains { $0.contains(#""operation":"setActive""#) })
  }

  @Test func anotherRateWithAnotherRoute() throws {
    let scenario = try AudioScenario { session in
      begin(session)
      let format = AudioFormat(sampleRate: 44_100)
      session.handle(
        .routeChanged(
          .newDeviceAvailable,
          AudioRoute(
            input: "headset", output: "headset", captureFormat: format, renderFormat: format)))
      talk(session, rate: 44_100)
      // The device does not report its new rate, so the session drops one piece of audio instead of
      // playing it at the wrong rate.
      talk(session, rate: 16_000)
    }
    try scenario.expectIdentical()
    let told = try scenario.timeline().filter { $0.contains("oute") || $0.contains("ource") }
    #expect(
      told == [
        "0 audio-source-0-microphone: idle -> flowing",
        "50 routeChanged",
        "50 audio-route: microphone (48000 Hz, 1 channel) and receiver (48000 Hz, 1 channel)"
          + " -> headset (44100 Hz, 1 channel) and headset (44100 Hz, 1 channel)",
        #"50 didChangeRoute {"reason":"newDeviceAvailable"}"#,
        #"50 sourceFormatChanged {"source":0,"tag":"microphone","from":"48000 Hz, 1 channel","#
          + #""to":"44100 Hz, 1 channel","lostFrames":0}"#,
        "50 audio-source-0-microphone: flowing -> idle",
        "50 audio-source-0-microphone: idle -> flowing",
        #"100 sourceRefused {"source":0,"tag":"microphone","reason":"formatMismatch"}"#,
        "100 audio-route: headset (44100 Hz, 1 channel) and headset (44100 Hz, 1 channel)"
          + " -> headset (16000 Hz, 1 channel) and headset (44100 Hz, 1 channel)",
        #"100 didChangeRoute {"reason":"routeConfigurationChange"}"#,
        #"100 sourceFormatChanged {"source":0,"tag":"microphone","from":"44100 Hz, 1 channel","#
          + #""to":"16000 Hz, 1 channel","lostFrames":429}"#,
        "100 audio-source-0-microphone: flowing -> idle",
        "110 audio-source-0-microphone: idle -> flowing",
      ])
  }

  @Test func aSourceThatStarves() throws {
    let scenario = try AudioScenario { session in
      for number in 0..<5 {
        session.deliver(Microphone.chunk(number))
        session.wait(.milliseconds(10))
      }
      session.wait(.milliseconds(60))
      session.deliver(Microphone.chunk(9))
    }
    try scenario.expectIdentical()
    #expect(
      try scenario.timeline() == [
        "0 audio-source-1-microphone: idle -> flowing",
        "60 audio-source-1-microphone: flowing -> starved",
        #"60 sourceStarved {"source":1,"tag":"microphone"}"#,
        #"110 sourceResumed {"source":1,"tag":"microphone","silentBlocks":6}"#,
        "110 audio-source-1-microphone: starved -> flowing",
      ])
    let take = try TakeFile.openForQueries(scenario.path)
    let count = "SELECT count(*) FROM frame WHERE kind = 'pcm' AND outcome = "
    #expect(try take.integer(count + "'filler'") == 6)
    #expect(try take.integer(count + "'captured'") == 6)
  }

  @Test func aHardMuteLeavesNoAudio() throws {
    let scenario = try AudioScenario { session in
      begin(session)
      session.call(.pauseRecording)
      session.call(.pauseRecording)
      talk(session)
      session.call(.resumeRecording)
      talk(session)
    }
    try scenario.expectIdentical()
    let told = try scenario.timeline(["state", "api"]).filter { $0.contains("ecording") }
    #expect(
      told == [
        "0 audio-recording: stopped -> recording", "50 pauseRecording",
        "50 audio-recording: recording -> paused", "50 pauseRecording", "100 resumeRecording",
        "100 audio-recording: paused -> recording",
      ])
    let take = try TakeFile.openForQueries(scenario.path)
    let during = "SELECT count(*) FROM frame WHERE outcome = 'captured' AND at_ns "
    #expect(try take.integer(during + "BETWEEN 50000000 AND 99999999") == 0)
    #expect(try take.integer(during + ">= 100000000") == 5)
  }

  @Test func aModeThatTheDeviceRefuses() throws {
    let scenario = try AudioScenario { session in
      begin(session)
      session.failures = ["setMode": -50]
      session.call(.applyMode(.videoChat, options: .modeDefaults))
      talk(session)
    }
    try scenario.expectIdentical()
    let told = try scenario.timeline().filter { $0.hasPrefix("50 ") }
    #expect(
      told == [
        "50 applyMode", "50 audio-lock: unlocked -> locked",
        #"50 operation {"id":12,"operation":"setCategory","category":"playAndRecord","#
          + #""options":"allowBluetooth allowBluetoothA2DP allowAirPlay"}"#,
        #"50 operation {"id":13,"operation":"setMode","mode":"videoChat"}"#,
        "50 audio-lock: locked -> unlocked",
        "50 call 2 refused: refused: the device refused setMode, code -50",
      ])
  }

  // MARK: All verbs

  private func plain() throws -> AudioScenario {
    try AudioScenario { session in
      begin(session)
      session.call(.readCounters)
      for number in 0..<3 {
        session.deliver(Microphone.chunk(number), from: AudioSourceID(4, tag: .application))
      }
      session.call(.closeConnection(1))
      session.deliver(Microphone.chunk(2), from: AudioSourceID(4, tag: .application))
      session.wait(.milliseconds(40))
    }
  }

  @Test func everyVerbKnowsTheKind() throws {
    let scenario = try plain()
    let path = scenario.path
    let info = try TakeInfo(path: path)
    #expect(info.description.contains("actor 1 audio, audio session") && info.peers.isEmpty)
    #expect(try Timeline(path: path).text().contains(" audio "))
    let result = TakeVerification.run(path: path)
    #expect(result.isPassed && result.steps > 20, "\(result)")
    for skipsCodecs in [true, false] {
      let walk = try TapeWalk(
        path: path, skipsCodecs: skipsCodecs, codecs: { LibraryCodecs() })
      while try walk.advance() != nil {}
      #expect(walk.divergence == nil && walk.at == walk.end)
    }
    let sql = try TakeFile.openForQueries(path)
    #expect(try sql.integer("SELECT count(*) FROM actor WHERE kind = 'audio session'") == 1)
    #expect(try TakePage(path: path).html.contains("audio"))
    let upgrade = try Upgrade(
      path: path, output: try #require(scenario.folder).file("new.take"))
    #expect(upgrade.firstDifference == nil && upgrade.misses.isEmpty)
    let finder = try StepFinder(path: path)
    #expect(try finder.first(try StepCondition("state machine=audio-unit"), after: 0) != nil)
    #expect(try finder.first(try StepCondition("event didStartPlayOrRecord"), after: 0) == 2)
  }

  /// Equal audio is stored once, whatever its source.
  @Test func audioIsStoredOnce() throws {
    let scenario = try plain()
    let take = try TakeFile.openForQueries(scenario.path)
    #expect(try take.integer("SELECT count(*) FROM capture WHERE content IS NOT NULL") == 9)
    #expect(try take.integer("SELECT count(*) FROM content") == 5)
  }

  // MARK: Changed takes

  @Test func aChangedTakeGivesAVerdictOrAnError() throws {
    let scenario = try plain()
    let base = try MutableTake(path: scenario.path)
    let unfit: [Mutation.Kind] = [.datagramByte, .setting]
    var found = 0
    for number in 0..<120
    where !unfit.contains(Mutation.Kind.allCases[number % Mutation.Kind.allCases.count]) {
      var take = base
      let mutation = Mutation(number, of: &take)
      // A frame that was stored without bytes cannot have its bytes changed.
      if mutation.what == "frame.bytes" { continue }
      let path = try #require(scenario.folder).file("\(number).take")
      try take.write(to: path)
      defer { try? FileManager.default.removeItem(atPath: path) }
      do {
        let report = try Replayer(
          path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
        ).run()
        _ = try Timeline(path: path)
        switch report.verdict {
        case .diverged(let divergence):
          found += 1
          if mutation.kind == .output { #expect(divergence.step == mutation.step, "\(mutation)") }
        case .identical: #expect(mutation.kind != .output, "\(mutation)")
        case .altered: Issue.record("\(mutation)")
        }
      } catch {
        found += 1
        #expect(!error.description.isEmpty)
      }
    }
    #expect(found > 40)
  }
}
