import AudioSession
import Lab
import Testing

/// Tests which device operations a change of mode causes, and in which order.
struct AudioModeTests {
  private typealias Operation = AudioDeviceOperation

  private static let usual: AudioSessionOptions = [
    .allowBluetooth, .allowBluetoothA2DP, .allowAirPlay,
  ]

  struct Row: Sendable {
    var mode: AudioMode
    var current = AudioSessionCategory.soloAmbient
    var operations: [AudioDeviceOperation]
  }

  static let table: [Row] = [
    Row(
      mode: .default(category: .ambient, output: .default),
      operations: [.setCategory(.ambient, options: usual), .setMode(.default)]),
    Row(
      mode: .default(category: .ambient, output: .default), current: .playAndRecord,
      operations: [
        .overridePort(.none), .setCategory(.ambient, options: usual), .setMode(.default),
      ]),
    Row(
      mode: .default(category: .playAndRecord, output: .speaker), current: .playAndRecord,
      operations: [
        .setCategory(.playAndRecord, options: usual.union(.defaultToSpeaker)), .setMode(.default),
      ]),
    Row(
      mode: .videoChat, current: .playAndRecord,
      operations: [.setCategory(.playAndRecord, options: usual), .setMode(.videoChat)]),
    Row(
      mode: .voiceChat(output: .speaker),
      operations: [
        .setCategory(.playAndRecord, options: usual.union(.defaultToSpeaker)),
        .setMode(.voiceChat), .overridePort(.speaker),
      ]),
    Row(
      mode: .voiceChat(output: .default), current: .playAndRecord,
      operations: [
        .overridePort(.none), .setCategory(.playAndRecord, options: usual), .setMode(.voiceChat),
        .overridePort(.none),
      ]),
  ]

  @Test(arguments: table)
  func aModePerformsItsOperations(_ row: Row) {
    #expect(row.mode.operations(current: row.current) == row.operations)
    // A session performs the same operations in one call.
    let session = VirtualAudioSession()
    session.locked(.setCategory(row.current, options: []))
    session.clear()
    #expect(session.call(.applyMode(row.mode, options: .modeDefaults)) == .done)
    #expect(session.operations == row.operations)
  }

  @Test func givenOptionsReplaceTheDefaultOnes() {
    let operations = AudioMode.voiceChat(output: .speaker)
      .operations(options: [.mixWithOthers], current: .ambient)
    #expect(
      operations.first
        == .setCategory(.playAndRecord, options: [.mixWithOthers, .defaultToSpeaker]))
  }

  @Test func modesAreAppliedUnderTheSessionLock() {
    let session = VirtualAudioSession()
    #expect(
      session.call(.applyMode(.voiceChat(output: .speaker), options: .modeDefaults)) == .done)
    #expect(
      session.log == [
        "audio-lock locked", "setCategory", "setMode", "overridePort", "audio-lock unlocked",
      ])
    #expect(session.snapshot.mode == "voiceChat" && session.snapshot.portOverride == .speaker)
    #expect(session.snapshot.category == "playAndRecord" && !session.snapshot.isLocked)
  }

  @Test(arguments: [("setCategory", 1), ("setMode", 2), ("overridePort", 3)])
  func aRefusedModeStopsWithAnErrorAndUnlocks(name: String, count: Int) {
    let session = VirtualAudioSession()
    session.failures = [name: -50]
    let reply = session.call(
      .applyMode(.voiceChat(output: .speaker), options: .modeDefaults))
    guard case .failed(.refused(let operation, code: -50)) = reply else {
      Issue.record("\(String(describing: reply))")
      return
    }
    #expect(operation.name == name && session.operations.count == count)
    #expect(!session.snapshot.isLocked)
    // The failure does not affect the next call.
    session.failures = [:]
    #expect(session.call(.applyMode(.videoChat, options: .modeDefaults)) == .done)
  }

  @Test func aSendingConnectionOverwritesTheCategory() {
    let session = VirtualAudioSession()
    session.call(.applyMode(.default(category: .ambient, output: .default), options: []))
    #expect(session.snapshot.category == "ambient")
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(session.snapshot.category == "ambient")
    session.call(.openConnection(2, sends: true, receives: true))
    #expect(session.snapshot.category == "playAndRecord" && session.snapshot.mode == "voiceChat")
    session.call(.applyMode(.videoChat, options: .modeDefaults))
    #expect(session.snapshot.mode == "videoChat")
  }

  @Test func aSendingConnectionSetsItsCategoryAgainWhenConnected() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: false, receives: true))
    session.call(.openConnection(2, sends: true, receives: true))
    session.call(.applyMode(.default(category: .ambient, output: .default), options: []))
    session.call(.connectionEstablished(1))
    session.call(.connectionEstablished(3))
    #expect(session.snapshot.category == "ambient")
    session.call(.connectionEstablished(2))
    #expect(session.snapshot.category == "playAndRecord" && session.snapshot.mode == "voiceChat")
  }

  @Test func settingsNeedTheRecursiveLock() {
    let session = VirtualAudioSession()
    let settings: [AudioSessionCall] = [
      .configure(AudioSessionConfiguration()), .setCategory(.playback, options: []),
      .setMode(.videoChat), .overridePort(.speaker), .setActive(true),
      .setPreferredSampleRate(16_000), .setPreferredIOBuffer(milliseconds: 20),
      .setPreferredChannels(input: 1, output: 2), .setIOType(.aggregated),
    ]
    for setting in settings {
      #expect(session.call(setting) == .failed(.lockRequired), "\(setting)")
    }
    #expect(session.operations.isEmpty)
    session.call(.lock)
    session.call(.lock)
    session.call(.unlock)
    for setting in settings { #expect(session.call(setting) == .done, "\(setting)") }
    session.call(.unlock)
    #expect(session.call(.setMode(.default)) == .failed(.lockRequired))
    #expect(session.states.filter { $0.hasPrefix("audio-lock") }.count == 2)
    #expect(session.call(.setProcessing(.music)) == .done)
  }

  @Test func theConfigurationOfAnApplicationReachesTheDevice() {
    let session = VirtualAudioSession()
    var configuration = AudioSessionConfiguration()
    #expect(configuration.ioBufferMilliseconds == 60)
    configuration.options = [.mixWithOthers, .duckOthers]
    configuration.mode = .videoChat
    configuration.sampleRate = 16_000
    configuration.outputChannels = 2
    configuration.ioType = .aggregated
    configuration.processing = .music
    session.locked(.configure(configuration))
    #expect(session.operations.contains(.setMode(.videoChat)))
    session.clear()
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(
      session.operations == [
        .setIOType(.aggregated), .setProcessing(.music), .setPreferredSampleRate(16_000),
        .setPreferredIOBuffer(milliseconds: 60), .setPreferredChannels(input: 1, output: 2),
        .setActive(true), .initializeUnit(capture: AudioFormat(), render: AudioFormat()),
        .startUnit,
      ])
  }

  /// To change the processing profile, the session only sends a request to the device.
  @Test(arguments: [AudioProcessingProfile.voice, .music, .custom(0x72_696f_63)])
  func processingIsRequestedFromTheDevice(_ profile: AudioProcessingProfile) {
    let session = VirtualAudioSession()
    #expect(session.call(.setProcessing(profile)) == .done)
    #expect(session.operations == [.setProcessing(profile)])
  }
}
