import ArgumentParser
import AudioSession
import CallRecording
import FoundationEssentials
import Live

extension CameraChoice: ExpressibleByArgument {}

/// What every way to record that sends a camera takes.
struct CameraOptions: ParsableArguments {
  @Option(
    help: """
      With --send camera: front, the first camera of the system, back, the second, or the file of \
      a device. Default: front.
      """,
    transform: Taking.value(CameraChoice.wanted))
  var camera: CameraChoice?

  @Option(
    name: .customLong("camera-size"),
    help: "With --send camera or screen: the size that is sent. Default: 640x480, or 1280x720.",
    transform: Taking.value(VideoSize.wanted))
  var cameraSize: VideoSize?
}

/// Whether what is received is played: `--play`.
struct PlayOption: ParsableArguments {
  @Flag(help: "Play what is received on the loudspeaker of the system (PulseAudio or PipeWire).")
  var play = false
}

extension DevicePlan {
  /// Reads the options, and refuses what this machine has not before anything is recorded.
  init(_ sends: Set<SendDevice>, _ options: CameraOptions, plays: Bool) throws {
    self.init(
      sends, plays: plays, camera: options.camera ?? .position(.front),
      size: options.cameraSize.map { ($0.width, $0.height) })
    guard options.camera == nil || sends.contains(.camera) else {
      throw CommandFailure(.usage, "--camera goes with --send camera: give both, or leave it out")
    }
    let sendsVideo = sends.contains(.camera) || sends.contains(.screen)
    guard options.cameraSize == nil || sendsVideo else {
      throw CommandFailure(
        .usage, "--camera-size goes with --send camera or screen: give both, or leave it out")
    }
    if sends.contains(.screen) {
      guard let found = ProcessInfo.processInfo.environment["DISPLAY"], !found.isEmpty else {
        throw CommandFailure(
          .inputOutput,
          "--send screen: DISPLAY names no screen: run it in a session of X, or set DISPLAY=:0")
      }
      display = found
    }
    if let obstacle = capturer?.obstacleNow {
      throw CommandFailure(.inputOutput, "--send \(obstacle)")
    }
    try findAudio()
  }

  /// Plays what is received, or not, and sends nothing.
  init(playing plays: Bool) throws {
    self.init(plays: plays)
    try findAudio()
  }

  private func findAudio() throws(CommandFailure) {
    guard needsAudio else { return }
    do throws(AudioDeviceError) {
      _ = try SystemAudioDevice.find()
    } catch {
      let option = sends.contains(.microphone) ? "--send microphone" : "--play"
      throw CommandFailure(.inputOutput, "\(option): \(error)")
    }
  }
}
