import AudioSession
import Foundation
import Live
import Media
import Peer
import Replay
import Room
import Synchronization
import Tape
import Testing

@testable import RoomClient

/// Tests rooms with an audio session, whose microphone is sent and whose loudspeaker plays received
/// audio.
@Suite(.timeLimit(.minutes(10))) struct RoomAudioTests {
  /// A device in real time whose microphone delivers a tone and whose loudspeaker is recorded.
  private final class Desk: Sendable {
    let device = ManualAudioDevice()
    private let heard = Mutex<Int>(0)
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

    init(hertz: Int64?) {
      let tone = hertz.map { ToneGenerator(hertz: Int($0), pauseSeconds: 0) }
      let device = device
      let made = Task.detached { [weak self] in
        let clock = ContinuousClock()
        let began = clock.now
        var number: Int64 = 0
        while !Task.isCancelled {
          try? await clock.sleep(until: began + .milliseconds(10 * number))
          guard let self else { return }
          if let block = tone?.block(at: number * 480, frameCount: 480, channels: 1) {
            let chunk = PCMChunk(samples: block.samples, sampleRate: 48_000, channels: 1)
            _ = try? device.port?.capture(chunk)
          }
          let peak = device.port?.pull(frames: 480).map { abs(Int($0)) }.max() ?? 0
          self.heard.withLock { $0 = peak }
          number += 1
        }
      }
      task.withLock { $0 = made }
    }

    /// The largest sample played in the last 10 ms.
    var peak: Int { heard.withLock { $0 } }
    func end() { task.withLock { $0?.cancel() } }
  }

  private static var voiceOnly: LocalMediaOptions {
    var options = LocalMediaOptions()
    options.hasVideo = false
    options.audioType = .music
    return options
  }

  @Test func theMicrophoneIsSentAndTheLoudspeakerPlaysReceivedAudio() async throws {
    let meeting = try await Meeting()
    let (near, far) = (Desk(hertz: 440), Desk(hertz: nil))
    let (first, second) = (Ear(), Ear())
    let microphone = try meeting.clients.makeAudioSession(device: near.device, label: "near")
    let loudspeaker = try meeting.clients.makeAudioSession(device: far.device, label: "far")
    var configuration = AudioSessionConfiguration()
    (configuration.mode, configuration.options) = (.videoChat, [.mixWithOthers, .duckOthers])
    let wanted = configuration
    try microphone.configure { (audio) throws(AudioSessionError) in
      try audio.call(.configure(wanted))
    }
    let anna = Room(
      meeting.rooms, session: meeting.clients, label: "anna", audio: microphone, delegate: first)
    let ben = Room(
      meeting.rooms, session: meeting.clients, label: "ben", audio: loudspeaker, delegate: second)
    let media = try LocalMedia(options: Self.voiceOnly)
    try await anna.publish(media)
    try await anna.connect(roomId: "room-1")
    try await first.hear("localPublished")
    #expect(near.device.operations.contains(.setPreferredIOBuffer(milliseconds: 60)))
    #expect(near.device.operations.contains(.setProcessing(.music)))
    #expect(near.device.operations.contains(.requestPermission))
    #expect(near.device.operations.contains(.startUnit))
    // The sending connection keeps the application's configuration.
    let modes = near.device.operations.filter { ["setCategory", "setMode"].contains($0.name) }
    let configured: [AudioDeviceOperation] = [
      .setCategory(.playAndRecord, options: wanted.options), .setMode(.videoChat),
    ]
    #expect(modes.count > 2 && Array(modes.suffix(2)) == configured)
    try await ben.connect(roomId: "room-1")
    try await until("the tone") { far.peak > 2_000 }
    // A listener does not request a microphone.
    #expect(!far.device.operations.contains(.requestPermission))
    #expect(near.peak == 0)
    ben.setMuted(true)
    try await until("silence") { far.peak == 0 }
    ben.setMuted(false)
    try await until("the tone again") { far.peak > 2_000 }
    try await anna.unpublish(media)
    try await until("the end of the microphone") {
      near.device.operations.contains(.stopUnit) || near.device.operations.last == .setActive(false)
    }
    await anna.disconnect()
    await ben.disconnect()
    near.end()
    far.end()
    try await meeting.end()
    let report = try Replayer(
      path: meeting.path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  @Test func aMicrophoneThatIsRefusedIsAnErrorOfPublishing() async throws {
    let meeting = try await Meeting()
    var behaviour = ManualAudioDevice.Behaviour()
    behaviour.permission = .denied
    let device = ManualAudioDevice(behaviour: behaviour)
    let audio = try meeting.clients.makeAudioSession(device: device)
    let room = Room(meeting.rooms, session: meeting.clients, audio: audio)
    let media = try LocalMedia(options: Self.voiceOnly)
    await #expect {
      try await room.publish(media)
    } throws: {
      ($0 as? RoomError)?.code == .publishFailed
    }
    try await meeting.end()
  }

  /// Returns the sent power of a signal that the microphone hears for ten seconds.
  private func power(
    of signal: (Int) -> Int16, _ change: (inout LocalMediaOptions) -> Void
  ) throws -> Double {
    let session = try Session()
    let device = ManualAudioDevice(captureFormat: AudioFormat(sampleRate: 16_000))
    let audio = try session.makeAudioSession(device: device)
    var options = Self.voiceOnly
    change(&options)
    let media = try #require(try LocalMedia(options: options).audio)
    let samples = Mutex<[Int16]>([])
    let sink = audio.onCaptured { block in samples.withLock { $0 += block.samples } }
    try media.openMicrophone(of: audio)
    for number in 0..<1_000 {
      let heard = (number * 160..<(number + 1) * 160).map(signal)
      try device.port?.capture(PCMChunk(samples: heard, sampleRate: 16_000))
    }
    withExtendedLifetime(sink) {}
    media.closeMicrophone()
    let last = samples.withLock { $0.suffix(96_000) }
    return last.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, last.count))
  }

  @Test func audioTypeAndAutoGainHoldForWhatIsPublished() throws {
    // Random noise with a given peak.
    func noise(_ place: Int, _ peak: Int) -> Int {
      let drawn = UInt32(truncatingIfNeeded: place) &* 2_654_435_761
      let mixed = (drawn ^ drawn >> 15) &* 2_246_822_519
      return (Int(mixed >> 16) - 32_768) * peak / 32_768
    }
    // Syllables of 150 ms with pauses, like a quiet voice; and a fan.
    func voice(_ place: Int) -> Int16 {
      let time = place / 16 % 200
      return Int16(noise(place, 1_200) * (time < 150 ? min(time, 150 - time) : 0) / 75)
    }
    func fan(_ place: Int) -> Int16 { Int16(noise(place, 600)) }
    let plain = try power(of: voice) { $0.audioType = .music }
    let regulated = try power(of: voice) { ($0.audioType, $0.autoGain) = (.music, true) }
    #expect(plain > 0 && regulated > 4 * plain, "\(regulated), \(plain)")
    let kept = try power(of: fan) { $0.audioType = .music }
    let heldDown = try power(of: fan) { $0.audioType = .voice }
    #expect(kept > 0 && heldDown < kept / 2, "\(heldDown), \(kept)")
  }
}
