import AudioSession
import Foundation
import Lab
import Media
import MediaFiles
import Peer
import Queries
import Replay
import Tape
import Testing
import Wire

/// Two minutes of a call in virtual time whose device fails every five seconds, and whose user
/// mutes and changes the volume between the failures.
struct AudioCallTests {
  /// The device's faults, in order.
  private enum Fault: CaseIterable {
    case starvation, interruption, hardMute, headset, refusedMode, unannouncedRate
    case interruptionWithoutResumption, serverLost
  }

  /// The user's actions, half a period after each fault.
  private static let touches: [@Sendable (UInt32) -> PeerCall] = [
    { .setEnabled(transceiver: $0, isInbound: false, isEnabled: false) },
    { .setEnabled(transceiver: $0, isInbound: false, isEnabled: true) },
    { .setVolume(transceiver: $0, volume: 4.5) },
    { .setEnabled(transceiver: $0, isInbound: true, isEnabled: false) },
    { .setEnabled(transceiver: $0, isInbound: true, isEnabled: true) },
    { .setVolume(transceiver: $0, volume: 0) },
    { .setVolume(transceiver: $0, volume: 10) },
    { .setVolume(transceiver: $0, volume: 1) },
  ]

  /// 60 ms, the duration that the session requests.
  private static let frames = 2_880
  /// The number of 60 ms periods between two faults, nearly five seconds in all.
  private static let spacing = 83
  /// The time between two occurrences of the same fault, in milliseconds.
  private static let cycle = spacing * 60 * Fault.allCases.count

  /// A microphone that reads a file, at its device's current rate.
  private struct FileMicrophone {
    private let samples: [Int16]
    private var position = 0

    init(path: String) throws {
      var source = try WAVFileSource(path: path, loops: false)
      var samples: [Int16] = []
      while case .audio(let block)? = try source.next()?.media { samples += block.samples }
      self.samples = samples
    }

    /// Returns the file's next 60 ms; at lower rates, every third or sixth sample.
    mutating func chunk(rate: Int) -> PCMChunk {
      let step = 48_000 / rate
      let taken = stride(from: 0, to: frames, by: step).map {
        samples[(position + $0) % samples.count]
      }
      position = (position + frames) % samples.count
      return PCMChunk(samples: taken, sampleRate: rate)
    }
  }

  /// Writes 1.2 seconds of audio as loud as a voice.
  private static func writeFile(_ path: String) throws {
    let count = 20 * frames
    let block = AudioBlock(samples: (0..<count).map { Int16($0 * 53 % 9_001 - 4_500) }, channels: 1)
    let bytes =
      WAVWriter.header(WAVFormat(channels: 1, sampleRate: 48_000), dataByteCount: 2 * count)
      + WAVWriter.samples(block)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  private func play(
    _ line: VirtualAudioCall, _ transceiver: UInt32, _ microphone: inout FileMicrophone
  ) {
    let session = line.session
    session.call(.openConnection(1, sends: true, receives: true))
    var rate = 48_000
    var starves = 0
    for period in 0..<2_000 {
      let turn = period / Self.spacing
      // Received audio is no longer needed, and decoding it would only slow the test down.
      if period == 9 * Self.spacing { line.call.call(1, .replaceSource(transceiver: 1, nil)) }
      switch period % Self.spacing {
      case Self.spacing - 1:
        begin(Fault.allCases[turn % Fault.allCases.count], session, &rate, &starves)
      case 7 where turn > 0:
        end(Fault.allCases[(turn - 1) % Fault.allCases.count], session, &rate)
      case 40 where turn > 0:
        line.call.call(0, Self.touches[(turn - 1) % Self.touches.count](transceiver))
      default: break
      }
      let chunk = microphone.chunk(rate: rate)
      if starves > 0 { starves -= 1 } else { line.deliver(chunk) }
      session.pull(6)
      line.run(for: .milliseconds(60))
    }
    session.call(.closeConnection(1))
    session.call(.readCounters)
  }

  private func begin(
    _ fault: Fault, _ session: VirtualAudioSession, _ rate: inout Int, _ starves: inout Int
  ) {
    switch fault {
    case .starvation: starves = 3
    case .interruption, .interruptionWithoutResumption: session.handle(.interruptionBegan)
    case .hardMute: session.call(.pauseRecording)
    case .headset:
      rate = 16_000
      session.handle(.routeChanged(.newDeviceAvailable, route("headset", rate)))
    case .refusedMode:
      session.failures = ["setMode": -50]
      session.call(.applyMode(.videoChat, options: .modeDefaults))
      session.failures = [:]
      session.call(.applyMode(.voiceChat(output: .speaker), options: .modeDefaults))
    case .unannouncedRate: rate = 8_000
    case .serverLost: session.handle(.mediaServerTerminated)
    }
  }

  /// Ends a fault half a second after it started.
  private func end(_ fault: Fault, _ session: VirtualAudioSession, _ rate: inout Int) {
    switch fault {
    case .interruption: session.handle(.interruptionEnded(shouldResume: true))
    case .interruptionWithoutResumption: session.handle(.interruptionEnded(shouldResume: false))
    case .hardMute: session.call(.resumeRecording)
    case .headset, .unannouncedRate:
      rate = 48_000
      session.handle(.routeChanged(.oldDeviceUnavailable, route("microphone", rate)))
    case .serverLost: session.handle(.mediaServerReset)
    case .starvation, .refusedMode: break
    }
  }

  private func route(_ name: String, _ rate: Int) -> AudioRoute {
    let format = AudioFormat(sampleRate: rate)
    return AudioRoute(
      input: name, output: name == "microphone" ? "receiver" : name, captureFormat: format,
      renderFormat: format)
  }

  /// Records the call: the caller sends the file, the callee a tone.
  private func record(_ path: String, file: String) throws {
    var configuration = PeerConfiguration()
    configuration.notices = PeerNotice.all
    let recording = try RecordedVirtualCall(
      path: path, seed: 97, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.keepsHistory = false
    call.addMedia(audio: .application, from: [0])
    call.addMedia(from: [1])
    #expect(call.negotiate() == nil)
    let line = VirtualAudioCall(
      recording.audioSession(label: "device"), call, peer: 0, transceiver: 1)
    var microphone = try FileMicrophone(path: file)
    play(line, 1, &microphone)
    _ = try recording.finish()
  }

  /// Returns one cycle's timeline entries, with times from the cycle's start, and with operations
  /// that lack their numbers.
  private func cycle(_ number: Int, of told: [String]) -> String {
    told.compactMap { line -> String? in
      guard let space = line.firstIndex(of: " "), let at = Int(line[..<space]) else { return nil }
      let time = at - 4_900 - number * Self.cycle
      guard (0..<Self.cycle).contains(time) else { return nil }
      let text = line[space...].replacing(#/"id":\d+,/#, with: "")
        .replacing(#/call \d+ /#, with: "call ")
      return "\(time)\(text)"
    }.joined(separator: "\n")
  }

  @Test func twoMinutesOfFaultsReplayAndAreReported() throws {
    let folder = try MachineFolder()
    let path = folder.file("call.take")
    let file = folder.file("microphone.wav")
    try Self.writeFile(file)
    try record(path, file: file)
    let report = try Replayer(
      path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.peers == ["caller", "callee", "device"] && report.isComplete)

    // Entries about speakers, and the callee's entries, are not compared.
    let told = try Timeline(path: path, lanes: ["state", "event", "api"]).entries
      .filter { !$0.text.hasPrefix("speaker") && !$0.text.hasPrefix("replaceSource") }
      .map { "\($0.atNanoseconds / 1_000_000) \($0.text)" }
    let end = told.filter { $0.hasPrefix("120000 ") }
    for number in 0..<2 { #expect(cycle(number, of: told) == AudioCallTimeline.cycle) }
    // The third time, the call ends before the last user action.
    let third = cycle(2, of: told.dropLast(end.count))
    #expect(third.count > 9_000 && AudioCallTimeline.cycle.hasPrefix(third))
    #expect(Array(end.prefix(AudioCallTimeline.end.count)) == AudioCallTimeline.end)
    try expectMedia(path)
  }

  /// Returns the minimum and maximum energy heard by the caller in an interval of milliseconds.
  private func energy(
    _ take: borrowing SQLiteConnection, _ interval: ClosedRange<Int>
  ) throws -> (least: Int64, most: Int64) {
    let rows = """
      FROM level WHERE peer = 1 AND direction = 'in'
        AND at_ns / 1000000 BETWEEN \(interval.lowerBound) AND \(interval.upperBound)
      """
    return (
      try #require(try take.integer("SELECT min(energy) \(rows)")),
      try #require(try take.integer("SELECT max(energy) \(rows)"))
    )
  }

  /// Expects that the microphone's audio was sent, and that the volume applied to received audio.
  private func expectMedia(_ path: String) throws {
    let take = try TakeFile.openForQueries(path)
    let sent = "SELECT count(*) FROM frame WHERE peer = 1 AND direction = 'out' AND codec = 'opus'"
    #expect((5_500...6_000).contains(try #require(try take.integer(sent))))
    // The track was disabled three times, for five seconds each.
    let silent = try #require(try take.integer(sent + " AND audio_level = 127"))
    #expect(silent > 600)
    // The volume follows the timeline: 1, 4.5, disabled, 0.
    let plain = try energy(take, 9_000...11_000)
    #expect(plain.least > 1_000_000)
    #expect(try energy(take, 18_000...21_000).least > 15 * plain.least)
    #expect(try energy(take, 23_000...26_000).most == 0)
    #expect(try energy(take, 33_000...36_000).most == 0)
    let findings = try TakeFindings(path: path).detections
      .filter { $0.rule == "speech-while-muted" }
    #expect(findings.count == 3)
  }
}
