import Dispatch
import Replay
import Tape

/// How a take is compared with what the stack does today.
public enum ReplayComparison: Sendable {
  /// As the pin beside the take says (`call.pin.json`, made by `retake pin`), exactly without one.
  case asPinned
  /// Every packet, state, frame, timer and random draw.
  case exact
  /// What comes of the session, within the pin's tolerances or the usual ones.
  case meaning
}

/// A take that the stack does not replay as it was recorded or pinned.
public struct ReplayFailure: Error, Sendable, CustomStringConvertible {
  /// The take.
  public var path: String
  /// The layer that behaves differently: `ice`, `dtls`, `rtp`, `media`, `timer`, ...; `altered` for
  /// a changed file, `meaning` for a missed check, `partial` where RETAKE_STRICT=1 asks for more
  /// than the libraries of this machine can replay, `unreadable` for a file that is no take.
  public var kind: String
  /// The step that differs, counted from 1; nil when no single one does.
  public var step: Int?
  /// What differs, with the recorded and the present value, on several lines.
  public var details: String
  /// The command that shows the failure again.
  public var command: String

  /// Everything, for the report of a test.
  public var description: String { "\(path): \(details)\nTo see it again: \(command)" }
}

/// Replays a take and throws when the stack does not do again what it did.
///
/// Works in Swift Testing and in XCTest: an error that a test throws fails it, with the layer, the
/// step and the field in its text.
///
///     @Test func theCallOfJune() async throws {
///       try await expectReplay("Captures/june.take")
///     }
///
/// - Parameters:
///   - path: the take; a relative one is looked for from the package's folder, where tests run.
///   - comparison: how to compare.
/// - Throws: `ReplayFailure`.
public func expectReplay(_ path: String, _ comparison: ReplayComparison = .asPinned) async throws {
  let mode: Pin.Mode? =
    switch comparison {
    case .asPinned: nil
    case .exact: .exact
    case .meaning: .meaning
    }
  // A replay computes for as long as it takes, which no cooperative thread should.
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
