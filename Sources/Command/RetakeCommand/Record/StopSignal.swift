import CallRecording
import FoundationEssentials
import Glibc
package import Live
import MediaFiles
import Synchronization
import Tape

/// Waits for Ctrl-C or SIGTERM; a second signal ends the process at once.
final class StopSignal: Sendable {
  private struct State {
    var isRequested = false
    var waiting: [AsyncStream<Never>.Continuation] = []
  }

  private let state = Mutex(State())

  /// - Parameter numbers: the signals that request a stop, handled from now on.
  init(_ numbers: [Int32] = [SIGINT, SIGTERM]) {
    SignalWatch.on(numbers) { number in
      signal(number, SIG_DFL)
      self.request()
    }
  }

  /// Whether a stop has been requested.
  var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Returns once a stop is requested, the time has passed, or the closure has returned.
  ///
  /// - Parameters:
  ///   - seconds: the time limit; nil if there is none.
  ///   - ended: returns once there is nothing left to wait for; nil if that never happens.
  func wait(
    seconds: Double?, orUntil ended: (@Sendable () async -> Void)? = nil
  ) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait() }
      if let seconds {
        group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
      }
      if let ended { group.addTask { await ended() } }
      _ = await group.next()
      group.cancelAll()
    }
  }

  /// Runs work, such as establishing a call, and cancels it if a stop is requested.
  ///
  /// - Returns: the result; nil if a stop was requested first.
  func interrupting<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await work() }
      group.addTask {
        await self.wait()
        return nil
      }
      let value = try await group.next() ?? nil
      group.cancelAll()
      return value
    }
  }

  private func request() {
    let waiting = state.withLock { state in
      state.isRequested = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.finish() }
  }

  /// Returns once a stop is requested, or when the task is cancelled.
  private func wait() async {
    // Each waiter has its own stream, since cancelling a task that iterates a stream ends the
    // stream for all waiters.
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    let isRequested = state.withLock { state in
      if !state.isRequested { state.waiting.append(continuation) }
      return state.isRequested
    }
    guard !isRequested else { return }
    for await _ in stream {}
  }
}

/// Opens a session, optionally on a shared loop, or throws a command failure.
func openSession(_ options: Session.Options, on loop: MediaLoop? = nil) throws -> Session {
  do throws(TapeError) {
    return try Session.recording(options, on: loop)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Finishes a session and its take, or throws a command failure.
package func finish(_ session: Session, _ path: String) async throws -> TakeSummary {
  do throws(TapeError) {
    return try await session.finished(path)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Removes the take of a recording that never began, such as a call whose offer was not answered.
func discard(_ path: String) {
  for ending in ["", "-wal", "-shm"] { FileBytes.remove(path + ending) }
}

/// Converts an error from writing a take to a command failure.
func finished<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

// MARK: - RecordingReport: Output

extension RecordingReport {
  /// Prints the report, which includes failed files, and exits with the first failure's status, if
  /// any.
  ///
  /// Failures were printed as they happened, so the text does not repeat them.
  mutating func conclude(with failures: SendFailures, json: Bool) throws {
    let failed = failures.all
    sendFailures = failed.map { Failure($0) }
    try show(json: json)
    if let first = failed.first { throw CommandFailure(first.status, "") }
  }

  func show(json: Bool) throws(CommandFailure) {
    guard json else {
      return try Output.line(
        lines.isEmpty ? nothing : lines.joined(separator: "\n"))
    }
    try Output.json(CanonicalJSON.text(self), in: .record)
  }

  /// The message for a recording without a take.
  private var nothing: String {
    isOfRing
      ? "nothing triggered a take, so none was written"
      : "there was no call; nothing was recorded"
  }
}

extension MediaFileError {
  /// The exit status for an unusable file.
  var status: ExitStatus {
    switch cause {
    case .content: .invalidTake
    case .missing: .noSuchFile
    case .system: .inputOutput
    }
  }
}

extension SendFailures {
  /// Returns failures that are printed on standard error, above any progress line.
  static func onTerminal() -> SendFailures {
    SendFailures {
      Progress.clearLine()
      printError("retake: \($0)")
    }
  }
}
