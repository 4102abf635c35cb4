import Foundation
import Live
import Media
import Testing

@testable import CallRecording
@testable import RetakeCommand

/// Options that select what is sent, and the microphone's level display.
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
