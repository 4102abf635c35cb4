import AudioSession
import Foundation
import Live
import Media
import Peer
import Synchronization
import Testing
import Wire

@testable import CallRecording
@testable import RetakeCommand

/// Tests options that select what is sent, and the display of the microphone's level.
struct DeviceOptionTests {
  @Test func severalThingsStandInOneWord() throws {
    #expect(
      SendList(argument: "microphone,camera")?.choices == [.device(.microphone), .device(.camera)])
    #expect(
      SendList(argument: "screen,talk.wav")?.choices == [.device(.screen), .file("talk.wav")])
    #expect(
      PublishList(argument: "pattern,microphone")?.choices == [.pattern, .device(.microphone)])
    for word in ["microphone,", ",", "", "camera,loudspeaker", "talk.mp3"] {
      #expect(SendList(argument: word) == nil, "\(word)")
      #expect(PublishList(argument: word) == nil, "\(word)")
    }
  }

  @Test func aFileMayHaveACommaInItsName() throws {
    let path = FileManager.default.temporaryDirectory.path + "/one,camera-\(UUID().uuidString).wav"
    try Data().write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(SendList(argument: path)?.choices == [.file(path)])
    #expect(PublishList(argument: path)?.choices == [.file(path)])
  }

  @Test func camerasAreNamedByTheirPlaceOrFile() {
    #expect(CameraChoice(argument: "back") == .position(.back))
    #expect(CameraChoice(argument: "/dev/video2")?.path == "/dev/video2")
    #expect(CameraChoice(argument: "/dev/video2")?.position == .front)
    #expect(CameraChoice(argument: "middle") == nil)
  }

  /// Collects the warnings about a recording's devices.
  private final class Warnings: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  /// A device that may not be used and does not start.
  private struct BrokenDevice: AudioDeviceModule {
    var name: String { "broken" }
    var captureFormat: AudioFormat? { AudioFormat() }
    var renderFormat: AudioFormat? { AudioFormat() }
    func connect(_ port: AudioDevicePort) {}
    func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
      operation == .requestPermission ? .permission(.denied) : .failed(code: 5)
    }
  }

  /// Every call of a recording needs the device, but one warning is enough.
  @Test(arguments: [true, false]) func aMissingAudioDeviceIsReportedOnce(plays: Bool) async throws {
    let session = try Session(Session.Options())
    let warnings = Warnings()
    let devices = LocalDevices(
      DevicePlan([.microphone], plays: plays), telling: SendFailures { warnings.add($0) },
      findDevice: { throw AudioDeviceError.unavailable("there is no server") })
    for _ in 0..<2 {
      #expect(devices.audio(in: session) == nil)
      #expect(devices.open(AudioSource(), in: session).isEmpty)
    }
    #expect(warnings.all.count == 1)
    let start = "warning: the microphone is not sent"
    let wanted = start + (plays ? ", and received audio is not played: " : ": ")
    #expect(warnings.all.first?.hasPrefix(wanted) == true, "\(warnings.all)")
    try await session.finish()
  }

  @Test func aDeviceThatDoesNotStartIsNotAttached() async throws {
    let session = try Session(Session.Options())
    let warnings = Warnings()
    let devices = LocalDevices(
      DevicePlan([.microphone], plays: true), telling: SendFailures { warnings.add($0) },
      findDevice: { BrokenDevice() })
    let connection = session.makePeer(label: "a")
    let sent = try await connection.addTransceiver(.audio, source: .application)
    #expect(devices.attach(connection, sending: sent.id, in: session).isEmpty)
    #expect(warnings.all.count == 1, "\(warnings.all)")
    #expect(warnings.all.first?.hasPrefix("warning: --send microphone: ") == true)
    try await session.finish()
  }

  /// Adds blocks of 20 ms that alternate between two samples.
  private func add(_ sample: Int16, blocks: Int, to meter: MicrophoneMeter) -> Int {
    let samples = (0..<960).map { $0 % 2 == 0 ? sample : -sample }
    return (0..<blocks).count { _ in meter.add(AudioBlock(samples: samples, channels: 1)) }
  }

  @Test func howlingIsReportedOnceAndSpeechIsNot() {
    let meter = MicrophoneMeter(canHowl: true)
    #expect(meter.text.hasSuffix("silent"))
    // Speech at -26 dBov, and one loud second of it.
    #expect(add(1_640, blocks: 300, to: meter) == 0)
    #expect(meter.text == "microphone [######------] -26 dBov", "\(meter.text)")
    #expect(add(25_000, blocks: 50, to: meter) == 0)
    #expect(add(1_640, blocks: 50, to: meter) == 0)
    #expect(add(25_000, blocks: 300, to: meter) == 1)
    // Without a loudspeaker there is no howling.
    #expect(add(25_000, blocks: 300, to: MicrophoneMeter(canHowl: false)) == 0)
  }
}
