package import AudioSession
package import Live
import Media
import Synchronization

/// A simulated machine: its microphone delivers a tone or silence, played audio is measured, and
/// operations are recorded and can be made to fail.
package final class Desk: AudioDeviceModule {
  private struct State {
    var operations: [AudioDeviceOperation] = []
    var failures: [String: Int32] = [:]
    var port: AudioDevicePort?
    /// The largest samples of the last played pieces, the newest last.
    var peaks: [Int] = []
  }

  private let device: PacedAudioDevice
  private let state = Mutex(State())

  /// The number of 10 ms pieces to keep.
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

  /// The operations so far.
  package var operations: [AudioDeviceOperation] { state.withLock { $0.operations } }
  /// Returns how many times an operation was requested.
  package func count(_ name: String) -> Int { operations.count { $0.name == name } }
  /// Makes operations with this name fail from now on.
  package func refuse(_ name: String) { state.withLock { $0.failures[name] = -50 } }
  package func report(_ event: AudioDeviceEvent) { state.withLock { $0.port }?.report(event) }

  /// The largest sample of the last 80 ms; 0 until that much has been played.
  package var peak: Int {
    state.withLock { $0.peaks.count < Desk.pieces ? 0 : $0.peaks.max() ?? 0 }
  }
}

/// Waits up to three minutes for a condition to hold, because a busy machine is slow.
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

/// An error that names the condition that did not hold within minutes.
package struct NotSo: Error {
  package var what: String
}
