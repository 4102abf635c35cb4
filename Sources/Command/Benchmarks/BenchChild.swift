import Dispatch
import FoundationEssentials
import Glibc
import Live
import RetakeCommand
import Synchronization
import Tape

/// A program that is measured from outside.
final class Child {
  private let process: ChildProcess
  private let output: ChildPipe
  private let said = Said()

  init(_ program: String, _ arguments: [String]) throws {
    let errors: ChildPipe
    do throws(SystemError) {
      (output, errors) = (try ChildPipe(), try ChildPipe())
      process = try ChildProcess(
        URL(fileURLWithPath: program).resolvingSymlinksInPath().path, arguments,
        output: .pipe(output.writing), errors: .pipe(errors.writing))
    } catch {
      throw CommandFailure(.inputOutput, "\(program): it cannot be started")
    }
    output.closeWriting()
    errors.closeWriting()
    startWorker(named: "errors") { [said] in
      while said.add(errors.reading.read(atMost: 1 << 16)) {}
    }
  }

  /// Runs a program to its end; returns how long it took.
  static func seconds(_ program: String, _ arguments: [String]) throws -> Double {
    let watch = Stopwatch()
    let child = try Child(program, arguments)
    _ = child.output.readAll(atMost: .max)
    guard child.process.waitUntilExit().status == 0 else {
      throw CommandFailure(
        .inputOutput, "\(program) failed: \(child.said.wait(for: nil).text.suffix(500))")
    }
    return watch.elapsed.wall
  }

  /// Waits until it says something.
  func waitForErrors(_ text: String) throws {
    let (seen, isThere) = said.wait(for: text)
    guard isThere else {
      throw CommandFailure(.inputOutput, "a process ended early: \(seen)")
    }
  }

  /// Interrupts it, and gives what it printed.
  func interrupt() throws -> String {
    kill(process.identifier, SIGINT)
    let text = output.readAll(atMost: .max)
    process.waitUntilExit()
    return text
  }

  /// The most memory that any process had that was waited for, in MB.
  static var largestMemory: Double {
    var usage = rusage()
    getrusage(Int32(truncatingIfNeeded: RUSAGE_CHILDREN.rawValue), &usage)
    return Double(usage.ru_maxrss) / 1024
  }
}

/// What a child says on standard error, read as it comes: a child waits when a pipe is full.
private final class Said: Sendable {
  private struct State {
    var text = ""
    var isOver = false
  }

  private let state = Mutex(State())
  private let changes = DispatchSemaphore(value: 0)

  /// Adds what came; false when nothing did, which is the end.
  func add(_ more: [UInt8]) -> Bool {
    state.withLock { state in
      state.text += String(decoding: more, as: UTF8.self)
      state.isOver = more.isEmpty
    }
    changes.signal()
    return !more.isEmpty
  }

  /// Waits for a text, or for the end with nil; returns all that was said, and whether it was
  /// there.
  func wait(for text: String?) -> (text: String, isThere: Bool) {
    while true {
      let seen = state.withLock { $0 }
      let isThere = text.map { seen.text.contains($0) } ?? seen.isOver
      if isThere || seen.isOver { return (seen.text, isThere) }
      changes.wait()
    }
  }
}
