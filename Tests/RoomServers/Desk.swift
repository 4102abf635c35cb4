package import AudioSession
package import Live
import Media
import Synchronization

/// A machine's microphone, which hums or is silent, and its loudspeaker: what was asked of it, what
/// it refuses, and how loud it plays.
package final class Desk: AudioDeviceModule {
  private struct State {
    var operations: [AudioDeviceOperation] = []
    var failures: [String: Int32] = [:]
    var port: AudioDevicePort?
    /// The largest samples of the last pieces that were played, the newest last.
    var peaks: [Int] = []
  }

  private let device: PacedAudioDevice
  private let state = Mutex(State())

  /// How many pieces of 10 ms are looked at.
  private static let pieces = 8

  package init(hertz: Int? = nil) {
    device = hertz.map { .tone(hertz: $0) } ?? .silence()
    device.onPlayed { [weak self] samples in
      let peak = samples.map { abs(Int($0)) }.max() ?? 0
      self?.state.withLock { state in
        state.peaks.append(peak)
        if state.peaks.count > Desk.pieces { state.peaks.removeFirst() }
      }
    }
  }

  package var name: String { device.name }
  package var captureFormat: AudioFormat? { device.captureFormat }
  package var renderFormat: AudioFormat? { device.renderFormat }

  package func connect(_ port: AudioDevicePort) {
    state.withLock { $0.port = port }
    device.connect(port)
  }

  package func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    let failure = state.withLock { state in
      state.operations.append(operation)
      return state.failures[operation.name]
    }
    return failure.map { .failed(code: $0) } ?? device.perform(operation)
  }

  /// What was asked so far.
  package var operations: [AudioDeviceOperation] { state.withLock { $0.operations } }
  /// How often something was asked, by its name.
  package func count(_ name: String) -> Int { operations.count { $0.name == name } }
  /// Refuses operations of this name from now on.
  package func refuse(_ name: String) { state.withLock { $0.failures[name] = -50 } }
  /// Says that something happened to the device.
  package func report(_ event: AudioDeviceEvent) { state.withLock { $0.port }?.report(event) }

  /// The largest sample of the last 80 ms; 0 before so much was played.
  package var peak: Int {
    state.withLock { $0.peaks.count < Desk.pieces ? 0 : $0.peaks.max() ?? 0 }
  }
}

/// Waits until something is so, for minutes on a busy machine.
package nonisolated(nonsending) func eventually(
  _ what: String, _ holds: () async throws -> Bool
) async throws {
  let clock = ContinuousClock()
  let end = clock.now + .seconds(180)
  while try await !holds() {
    guard clock.now < end else { throw NotSo(what: what) }
    try await clock.sleep(for: .milliseconds(5))
  }
}

/// What did not become so in minutes.
package struct NotSo: Error {
  package var what: String
}
