import AudioSession
import Live
import Media
import RetakeRTC
import Synchronization

/// A simulated machine: its microphone delivers a tone or silence, and requested operations and the
/// loudness of the last played audio are recorded.
final class HummingDevice: AudioDeviceModule {
  private let device: PacedAudioDevice
  private let log = Mutex<[AudioDeviceOperation]>([])
  private let level = Mutex<Int>(0)

  init(hertz: Int?) {
    device = hertz.map { .tone(hertz: $0) } ?? .silence()
    device.onPlayed { [weak self] samples in
      let loudest = samples.map { abs(Int($0)) }.max() ?? 0
      self?.level.withLock { $0 = loudest }
    }
  }

  var name: String { device.name }
  var captureFormat: AudioFormat? { device.captureFormat }
  var renderFormat: AudioFormat? { device.renderFormat }
  func connect(_ port: AudioDevicePort) { device.connect(port) }

  func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    log.withLock { $0.append(operation) }
    return device.perform(operation)
  }

  var operations: [AudioDeviceOperation] { log.withLock { $0 } }
  func count(_ name: String) -> Int { operations.count { $0.name == name } }

  /// Returns whether playback becomes loud, or silent, and stays so for a while.
  func becomes(isLoud: Bool) async -> Bool {
    var holds = 0
    for _ in 0..<1_000 {
      let loudest = level.withLock { $0 }
      holds = (loudest > 2_000) == isLoud ? holds + 1 : 0
      if holds == 5 { return true }
      await pause()
    }
    return false
  }

  private func pause() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) {
        continuation.resume()
      }
    }
  }
}

/// Two simulated machines in one process, whose devices all new factories use.
final class TwoMachines: Sendable {
  let caller = HummingDevice(hertz: 440)
  let callee = HummingDevice(hertz: nil)
  private let made = Mutex(0)

  init() {
    RTCAudioSession.sharedInstance().use(nil)
    AVCaptureDevice.useAccess()
    AVCaptureDevice.useDevices([])
    RTCAudioDeviceModule.useDevice { [self] in
      made.withLock { made in
        made += 1
        return made == 1 ? caller : callee
      }
    }
  }

  func end() {
    RTCAudioDeviceModule.useDevice(nil)
    RTCAudioSession.sharedInstance().use(nil)
    AVCaptureDevice.useDevices(nil)
    AVCaptureDevice.useAccess()
  }
}
