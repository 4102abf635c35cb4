import CallRecording
import FoundationEssentials
import Glibc
package import Live
import MediaFiles
import Synchronization
import Tape

/// Waits for Ctrl-C or a polite kill; a second one ends the process at once.
final class StopSignal: Sendable {
  private struct State {
    var isRequested = false
    var waiting: [AsyncStream<Never>.Continuation] = []
  }

  private let state = Mutex(State())

  /// - Parameter numbers: the signals that ask for a stop; they do from here on.
  init(_ numbers: [Int32] = [SIGINT, SIGTERM]) {
    SignalWatch.on(numbers) { number in
      signal(number, SIG_DFL)
      self.request()
    }
  }

  /// Whether a stop was asked for.
  var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Returns when a stop is asked for, a time has passed, or something else ended.
  ///
  /// - Parameters:
  ///   - seconds: the time limit; nil for none.
  ///   - ended: returns when there is nothing left to wait for; nil when there always is.
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

  /// Does the work that brings a call about; a stop cancels it.
  ///
  /// - Returns: what came of it; nil when a stop was asked for before it was done.
  /// - Throws: what the work throws.
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

  /// Returns when a stop is asked for or was already, or when the task is cancelled.
  private func wait() async {
    // A stream of its own: cancelling a task that reads a stream ends it for all who read it.
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    let isRequested = state.withLock { state in
      if !state.isRequested { state.waiting.append(continuation) }
      return state.isRequested
    }
    guard !isRequested else { return }
    for await _ in stream {}
  }
}

/// Begins a session, on a loop that it shares or on one of its own, or fails with one sentence.
func openSession(_ options: Session.Options, on loop: MediaLoop? = nil) throws -> Session {
  do throws(TapeError) {
    return try Session.recording(options, on: loop)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Ends a session and its take, or fails with one sentence.
package func finish(_ session: Session, _ path: String) async throws -> TakeSummary {
  do throws(TapeError) {
    return try await session.finished(path)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Removes the take of a call whose offer nobody answered.
func discard(_ path: String) {
  for ending in ["", "-wal", "-shm"] { FileBytes.remove(path + ending) }
}

/// Turns a failure to write a take into one of the command.
func finished<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

// MARK: - RecordingReport: Output

extension RecordingReport {
  /// Prints the report with what went wrong with files, and ends the command with the status that
  /// belongs to the first of them, if there was one.
  ///
  /// What went wrong was said when it happened, so that it is not said again to people.
  mutating func conclude(with failures: SendFailures, json: Bool) throws {
    let failed = failures.all
    sendFailures = failed.map { Failure($0) }
    try show(json: json)
    if let first = failed.first { throw CommandFailure(first.status, "") }
  }

  /// Prints the report.
  func show(json: Bool) throws(CommandFailure) {
    guard json else {
      return try Output.line(
        lines.isEmpty ? "nobody called; nothing was recorded" : lines.joined(separator: "\n"))
    }
    try Output.json(CanonicalJSON.text(self), in: .record)
  }
}

extension MediaFileError {
  /// The exit status of a command that could not use the file.
  var status: ExitStatus {
    switch cause {
    case .content: .invalidTake
    case .missing: .noSuchFile
    case .system: .inputOutput
    }
  }
}

extension SendFailures {
  /// Failures that are said on standard error; a line of progress that may stand there makes room.
  static func onTerminal() -> SendFailures {
    SendFailures {
      Progress.clearLine()
      printError("retake: \($0)")
    }
  }
}
