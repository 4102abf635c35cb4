import Dispatch
import Replay
import Tape

/// How a replay is compared with its take.
public enum ReplayComparison: Sendable {
  /// The comparison that the pin next to the take specifies (`call.pin.json`, written by
  /// `retake pin`); exact if there is none.
  case asPinned
  /// Every packet, state, frame, timer and random draw.
  case exact
  /// The session's outcome, within the pin's tolerances or the default ones.
  case meaning
}

/// An error for a take whose replay differs from the recording or its pin.
public struct ReplayFailure: Error, Sendable, CustomStringConvertible {
  /// The take's path.
  public var path: String
  /// The layer that behaves differently: `ice`, `dtls`, `rtp`, `media`, `timer`, ...; `altered` for
  /// a modified file, `meaning` for a failed check, `partial` if RETAKE_STRICT=1 requires more than
  /// this machine's libraries can replay, `unreadable` for a file that is not a take.
  public var kind: String
  /// The differing step, counted from 1; nil if more than one is concerned.
  public var step: Int?
  /// The differences on several lines, with recorded and replayed values.
  public var details: String
  /// The command that reproduces the failure.
  public var command: String

  /// The complete failure, for a test report.
  public var description: String { "\(path): \(details)\nTo see it again: \(command)" }
}

/// Replays a take and throws if the stack behaves differently.
///
/// Works in Swift Testing and in XCTest: the thrown error fails the test, and its text names the
/// layer, the step and the field.
///
///     @Test func theCallOfJune() async throws { try await expectReplay("Captures/june.take") }
///
/// - Parameters:
///   - path: the take; a relative path starts at the package's folder, where tests run.
///   - comparison: how to compare.
/// - Throws: `ReplayFailure`, whose `kind` says why the replay did not pass.
public func expectReplay(_ path: String, _ comparison: ReplayComparison = .asPinned) async throws {
  let mode: Pin.Mode? =
    switch comparison {
    case .asPinned: nil
    case .exact: .exact
    case .meaning: .meaning
    }
  // A replay is a long computation, which must not block the cooperative pool.
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
