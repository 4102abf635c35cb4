import Dispatch
import Replay
import Tape

/// How a replay is compared with its take.
public enum ReplayComparison: Sendable {
  /// According to the pin next to the take (`call.pin.json`, made by `retake pin`); exactly without
  /// one.
  case asPinned
  /// Every packet, state, frame, timer and random draw.
  case exact
  /// The outcome of the session, within the pin's tolerances or the default ones.
  case meaning
}

/// A take whose replay differs from the recording or its pin.
public struct ReplayFailure: Error, Sendable, CustomStringConvertible {
  /// The take.
  public var path: String
  /// The layer that behaves differently: `ice`, `dtls`, `rtp`, `media`, `timer`, ...; `altered` for
  /// a modified file, `meaning` for a failed check, `partial` when RETAKE_STRICT=1 requires more
  /// than this machine's libraries can replay, `unreadable` for a file that is not a take.
  public var kind: String
  /// The step that differs, counted from 1; nil when it is not a single one.
  public var step: Int?
  /// The differences, with the recorded and the replayed value, on several lines.
  public var details: String
  /// The command that reproduces the failure.
  public var command: String

  /// The whole failure, for a test report.
  public var description: String { "\(path): \(details)\nTo see it again: \(command)" }
}

/// Replays a take and throws when the stack behaves differently.
///
/// Works in Swift Testing and in XCTest: an error that a test throws fails it, with the layer, the
/// step and the field in its text.
///
/// @Test func theCallOfJune() async throws { try await expectReplay("Captures/june.take") }
/// - Parameters:
///   - path: the take; a relative path starts at the package's folder, where tests run.
///   - comparison: how to compare.
/// - Throws: `ReplayFailure`.
public func expectReplay(_ path: String, _ comparison: ReplayComparison = .asPinned) async throws {
  let mode: Pin.Mode? =
    switch comparison {
    case .asPinned: nil
    case .exact: .exact
    case .meaning: .meaning
    }
  // A replay is a long computation, which must not run on the cooperative pool.
  let result = await withCheckedContinuation { continuation in
    DispatchQueue.global().async {
      let result = TakeVerification.run(
        path: path, mode: mode, isStrict: TakeVerification.isStrictHere)
      continuation.resume(returning: result)
    }
  }
  guard !result.isPassed else { return }
  var step: Int?
  switch result.outcome {
  case .diverged(let divergence): step = divergence.step
  case .altered(let alteration): step = alteration.step
  case .passed, .missed, .partial, .unreadable: break
  }
  throw ReplayFailure(
    path: path, kind: result.kind, step: step, details: result.details, command: result.command)
}
