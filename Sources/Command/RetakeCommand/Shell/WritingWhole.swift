import ArgumentParser
import CProcess
import FoundationEssentials
import Glibc
import Synchronization
import Tape
import Wire

/// Whether existing files are replaced; without this option, every verb refuses to overwrite them.
struct OverwriteOption: ParsableArguments {
  @Flag(help: "Replace existing files.")
  var force = false

  /// What to do with an existing file: keep it unless `--force` is given.
  var present: WholeFile.Present { force ? .replaced : .kept }

  /// Refuses to replace a file that the command reads or that is being recorded, even with --force.
  func check(_ path: String, reading sources: String...) throws(CommandFailure) {
    guard force, let target = Self.identity(of: path) else { return }
    for source in sources where Self.identity(of: source) == target {
      throw CommandFailure(.usage, "\(path) is what the command reads: choose another name")
    }
    guard case .beingRecorded(let process)? = try? TakeEnding.of(path) else { return }
    throw CommandFailure(
      .inputOutput, "\(path) is still being recorded, by process \(process): choose another name")
  }

  /// Removes a take that is to be replaced, along with its write-ahead log.
  func clear(_ path: String) throws(CommandFailure) {
    guard force, FileBytes.kind(of: path) == .file else { return }
    try check(path)
    for ending in ["-wal", "-shm", ""] { FileBytes.remove(path + ending) }
  }

  /// Returns a regular file's device and inode; nil for other files, which are written in place.
  private static func identity(of path: String) -> [UInt64]? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return nil
    }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }
}

/// Writes files that appear under their names only once they are complete.
enum WritingWhole {
  /// Opens a file for writing; the file gets its name once it is finished.
  static func file(_ path: String, _ present: WholeFile.Present, isTake: Bool = false)
    throws(CommandFailure) -> WholeFile
  {
    cleanUpOnSignals()
    do throws(WholeFile.Failure) {
      return try WholeFile(path, present, isTake: isTake)
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Renames a file that is complete; a failure ends the command.
  static func finish(_ file: WholeFile) throws(CommandFailure) {
    do throws(WholeFile.Failure) {
      try file.finish()
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Creates a take under a temporary name and renames it once the body returns.
  ///
  /// - Parameter body: receives the temporary path; its failures are reported with the final path.
  static func writeTake<Value>(
    _ path: String, _ present: WholeFile.Present, _ body: (String) throws -> Value
  ) throws -> Value {
    let file = try file(path, present, isTake: true)
    do {
      let value = try body(file.temporary)
      try finish(file)
      return value
    } catch let failure as CommandFailure {
      throw CommandFailure(
        failure.status, failure.message.replacing(file.temporary, with: path))
    }
  }

  /// Writes text to a file that appears once it is complete, by default readable only by its owner.
  static func text(
    _ text: String, to path: String, _ present: WholeFile.Present, mode: UInt32 = 0o600
  ) throws(CommandFailure) {
    cleanUpOnSignals()
    do throws(WholeFile.Failure) {
      try WholeFile.write(text.utf8, to: path, present, mode: mode)
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Removes incomplete files if a signal ends the process.
  static func cleanUpOnSignals() {
    guard isWatching.exchange(true, ordering: .relaxed) == false else { return }
    SignalWatch.on([SIGINT, SIGTERM, SIGHUP]) { number in
      isInterrupted.store(true, ordering: .sequentiallyConsistent)
      UnfinishedFiles.removeAll()
      end(by: number)
    }
  }

  /// Ends the process as the signal would by default.
  static func end(by number: Int32) {
    signal(number, SIG_DFL)
    Interruption.unblock([number])
    raise(number)
  }

  /// Waits for the process to end if a signal is ending it: work then fails only because its files
  /// are being removed.
  static func yieldToSignal() {
    while isInterrupted.load(ordering: .sequentiallyConsistent) { pause() }
  }

  private static let isWatching = Atomic(false)
  private static let isInterrupted = Atomic(false)
}

extension CommandFailure {
  /// Creates the failure for a file that cannot be written; if the file exists, suggests --force.
  init(_ failure: WholeFile.Failure) {
    let words =
      failure.code == EEXIST
      ? "\(failure.path) exists already: choose another name, or replace it with --force"
      : failure.description
    self.init(.inputOutput, CommandReading.oneLine(words))
  }
}

/// Treats Ctrl-C as a request to interrupt the current work instead of ending the process.
enum Interruption {
  private static let wasAsked = Atomic(false)
  private static let noticed = Atomic(false)

  /// Whether Ctrl-C was pressed since the last `forget`.
  static var isAsked: Bool { wasAsked.load(ordering: .relaxed) }

  /// Whether Ctrl-C is handled.
  static var isNoticed: Bool { noticed.load(ordering: .relaxed) }

  /// Handles Ctrl-C from now on.
  static func notice() {
    // Prepare the handler's state before installing it.
    noticed.store(true, ordering: .relaxed)
    forget()
    signal(SIGINT) { _ in Interruption.wasAsked.store(true, ordering: .relaxed) }
  }

  /// Unblocks signals on the calling thread.
  ///
  /// A process inherits the signals that were blocked on the thread that started it, so Ctrl-C
  /// might never arrive.
  static func unblock(_ numbers: [Int32]) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in numbers { sigaddset(&signals, number) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Clears a pending Ctrl-C.
  static func forget() { wasAsked.store(false, ordering: .relaxed) }
}

/// Delivers signals to closures on a separate thread.
///
/// Handlers are installed once `on` returns; a Dispatch source would install its handler a moment
/// later, and deliver signals only while Dispatch has free threads.
enum SignalWatch {
  private struct State {
    var watched: Set<Int32> = []
    var reactions: [(numbers: [Int32], react: @Sendable (Int32) -> Void)] = []
  }

  private static let state = Mutex(State())

  /// Adds a closure for signals, in addition to earlier ones.
  static func on(_ numbers: [Int32], do react: @escaping @Sendable (Int32) -> Void) {
    let isFirst = state.withLock { state in
      let isFirst = state.reactions.isEmpty
      state.reactions.append((numbers, react))
      for number in numbers where state.watched.insert(number).inserted {
        cprocess_signal_watch(number)
      }
      return isFirst
    }
    if isFirst { startWorker(named: "signals") { follow() } }
  }

  private static func follow() {
    while true {
      let number = cprocess_signal_next()
      guard number > 0 else { return }
      let reactions = state.withLock { $0.reactions }
      for reaction in reactions where reaction.numbers.contains(number) { reaction.react(number) }
    }
  }
}
