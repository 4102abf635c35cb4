import Dispatch
import FoundationEssentials
import Live
import Synchronization
import Tape

/// Queries of pages, each answered by a process of its own.
///
/// SQLite asks nobody while one of its functions runs, and those can be made to run for hours; a
/// process can be ended at any moment, and gives back all of its memory.
struct QueryProcess: Sendable {
  /// The executable `retake`, which answers; nil where there is none.
  var tool: String?
  /// How long a query may take, in seconds, with the time that it waits for others.
  var seconds = 15.0
  /// What has to be left of that when its turn comes.
  private static let leastSeconds = 3.0

  /// What came of a query.
  enum Answer: Sendable {
    /// Text in the form that was asked for.
    case rows(String)
    /// Why there are none, in one sentence.
    case failed(String)
  }

  /// The longest query in bytes; a longer one does not fit into the environment of a process.
  static let queryBytes = 100_000

  /// Answers a query; waits for that.
  ///
  /// - Parameter begin: when it was asked.
  func answer(
    _ sql: String, take path: String, as form: AnswerQuery.Form = .json,
    since begin: ContinuousClock.Instant
  ) -> Answer {
    let left = seconds - begin.duration(to: .now) / .seconds(1)
    guard left >= Self.leastSeconds else {
      return .failed("other queries take all the time; try again when they have ended")
    }
    guard sql.utf8.count <= Self.queryBytes, !sql.utf8.contains(0) else {
      return .failed("the query is longer than \(Self.queryBytes) bytes, or has a zero in it")
    }
    guard let tool else {
      return .failed("this server answers no queries: it was not told where the program retake is")
    }
    // Others see the arguments of a process, and not its environment.
    let environment = ProcessInfo.processInfo.environment.merging(
      [AnswerQuery.variable: sql, AnswerQuery.formVariable: form.rawValue],
      uniquingKeysWith: { $1 })
    let output: ChildPipe
    let process: ChildProcess
    do throws(SystemError) {
      output = try ChildPipe()
      process = try ChildProcess(
        tool, ["answer-query", path], environment: environment, output: .pipe(output.writing),
        errors: .nothing)
    } catch {
      return .failed("the query cannot be answered: no process could be started for it")
    }
    output.closeWriting()
    let isLate = Mutex(false)
    let limit = DispatchWorkItem { [process] in
      isLate.withLock { $0 = true }
      process.end()
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + left, execute: limit)
    let text = output.readAll(atMost: 2 * AnswerQuery.answerBytes)
    process.end()
    let ending = process.waitUntilExit()
    limit.cancel()
    if isLate.withLock({ $0 }) {
      return .failed("the query took longer than \(Int(seconds)) s")
    }
    guard let status = ending.status, !text.isEmpty else {
      return .failed("the query needs more memory than it may have")
    }
    return status == 0 ? .rows(text) : .failed(text)
  }
}
