import Dispatch
import Foundation
import Synchronization
import Testing

/// The built executable, which every test in this target runs as a user would.
enum Tool {
  /// The result of a finished run.
  struct Outcome: Sendable {
    var status: Int32
    /// Whether a signal ended the process.
    var wasKilled: Bool
    var output: String
    var errors: String

    /// The lines on standard error.
    var errorLines: [Substring] { errors.split(separator: "\n") }
  }

  /// The path of `retake`, which is built beside the test bundle.
  static let path: String = {
    let bundle = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    return bundle.deletingLastPathComponent().appending(path: "retake").path
  }()

  /// Runs `retake` with these arguments and waits for it to end.
  static func run(_ arguments: String..., environment: [String: String] = [:]) async throws
    -> Outcome
  {
    try await run(arguments, environment: environment)
  }

  /// Runs `retake` with these arguments and waits for it to end; only a few commands run at once.
  static func run(_ arguments: [String], environment: [String: String] = [:]) async throws
    -> Outcome
  {
    try await gate.pass { try await Run(path, arguments, environment: environment).outcome() }
  }

  /// Runs a shell command line in which `$RETAKE` is the executable.
  static func shell(_ line: String) async throws -> Outcome {
    try await gate.pass {
      try await Run("/bin/sh", ["-c", line], environment: ["RETAKE": path]).outcome()
    }
  }

  /// Limits how many commands run at once: with all tests in parallel, live calls would starve.
  private static let gate = Gate(width: 2)

  /// Returns whether a program is in one of the usual folders of executables.
  static func has(_ program: String) -> Bool {
    ["/usr/bin/", "/bin/", "/usr/local/bin/"].contains {
      FileManager.default.isExecutableFile(atPath: $0 + program)
    }
  }
}

/// Lets a few tasks pass at a time, in order of arrival.
private actor Gate {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(width: Int) { free = width }

  func pass<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
    defer {
      if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
    return try await body()
  }
}

/// A running command whose output goes into files, so that no pipe can fill up.
final class Run: Sendable {
  let folder: Folder
  let begin = ContinuousClock.now
  let processIdentifier: Int32
  private let process: Process
  private let ended: AsyncStream<Void>
  private let endedAt: Ended
  private let limit: DispatchTimeInterval
  private let isLate = Mutex(false)

  /// The time at which the process ended.
  private final class Ended: Sendable {
    let time = Mutex<ContinuousClock.Instant?>(nil)
  }

  /// The default time limit, far longer than any command needs on a busy machine.
  static let usualLimit = DispatchTimeInterval.seconds(240)

  /// Starts a command.
  ///
  /// - Parameter limit: how long it may run after `outcome()` is called.
  init(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:],
    limit: DispatchTimeInterval = Run.usualLimit
  ) throws {
    self.limit = limit
    folder = try Folder()
    for name in ["out", "err"] { try Data().write(to: folder.url(name)) }
    process = Process()
    process.executableURL = URL(filePath: executable)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: folder.url("out"))
    process.standardError = try FileHandle(forWritingTo: folder.url("err"))
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let endedAt = Ended()
    process.terminationHandler = { _ in
      endedAt.time.withLock { $0 = .now }
      continuation.finish()
    }
    self.endedAt = endedAt
    ended = stream
    try process.run()
    processIdentifier = process.processIdentifier
  }

  /// Ends the process if its test failed before waiting for it.
  deinit {
    if process.isRunning { send(SIGKILL) }
  }

  /// The process's standard error so far.
  var errors: String { (try? String(contentsOf: folder.url("err"), encoding: .utf8)) ?? "" }

  var isRunning: Bool { process.isRunning }

  /// When the process ended, which a waiting test may learn much later; nil while it runs.
  var end: ContinuousClock.Instant? { endedAt.time.withLock { $0 } }

  func send(_ signal: Int32) { kill(processIdentifier, signal) }

  /// Waits for the process to exit.
  ///
  /// A process that hangs must not block all other tests: it is killed, and its test fails. The
  /// limit starts here, because a test may have waited minutes for its turn before: all tests share
  /// a few threads, and each `await` queues behind the others.
  func outcome() async throws -> Tool.Outcome {
    DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak self] in
      guard let self, process.isRunning else { return }
      isLate.withLock { $0 = true }
      send(SIGKILL)
    }
    for await _ in ended {}
    if isLate.withLock({ $0 }) {
      Issue.record("never ended: \(process.arguments ?? []), which said: \(errors)")
    }
    return Tool.Outcome(
      status: process.terminationStatus, wasKilled: process.terminationReason == .uncaughtSignal,
      output: try String(contentsOf: folder.url("out"), encoding: .utf8), errors: errors)
  }

  func waitForErrors(with text: String) async throws {
    try await poll("\(text) in \(errors)") { self.errors.contains(text) }
  }
}

/// Waits until a condition holds, checking every few milliseconds; fails after minutes, longer than
/// anything takes on a busy machine.
func poll(
  _ what: @autoclosure () -> String, within limit: Duration = .seconds(180),
  _ isSo: () throws -> Bool
) async throws {
  let (ticks, continuation) = AsyncStream<Void>.makeStream()
  let timer = DispatchSource.makeTimerSource()
  timer.setEventHandler { continuation.yield() }
  timer.schedule(deadline: .now(), repeating: .milliseconds(5))
  timer.activate()
  defer { timer.cancel() }
  let end = ContinuousClock.now + limit
  for await _ in ticks {
    if try isSo() { return }
    if ContinuousClock.now > end { break }
  }
  Issue.record("never came: \(what())")
  throw CancellationError()
}

/// A folder that is removed after the test.
final class Folder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/retake-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func url(_ name: String) -> URL { URL(filePath: file(name)) }

  /// Writes a file in the folder and returns its complete path.
  func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    try Data(bytes).write(to: url(name))
    return file(name)
  }
}
