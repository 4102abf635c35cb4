import Foundation
import Synchronization
import Tape

/// What a command makes as a whole: files that are there when they are complete.
enum WritingWhole {
  /// Opens a file that gets its name when it is finished.
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

  /// Gives a file its name.
  static func finish(_ file: WholeFile) throws(CommandFailure) {
    do throws(WholeFile.Failure) {
      try file.finish()
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Makes a take under another name, and gives it its own when the body is through.
  ///
  /// - Parameter body: gets the name to write under; in its failures stands the right one.
  static func take<Value>(_ path: String, _ body: (String) throws -> Value) throws -> Value {
    let file = try file(path, .kept, isTake: true)
    do {
      let value = try body(file.temporary)
      try finish(file)
      return value
    } catch let failure as CommandFailure {
      throw CommandFailure(
        failure.status, failure.message.replacing(file.temporary, with: path))
    }
  }

  /// Writes a text into a file, in place of one that may be there.
  static func text(_ text: String, to path: String, mode: UInt32 = 0o600) throws(CommandFailure) {
    cleanUpOnSignals()
    do throws(WholeFile.Failure) {
      try WholeFile.write(text.utf8, to: path, .replaced, mode: mode)
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Lets a signal that ends the process take away first what is not complete.
  static func cleanUpOnSignals() {
    guard isWatching.exchange(true, ordering: .relaxed) == false else { return }
    SignalWatch.on([SIGINT, SIGTERM, SIGHUP]) { number in
      isInterrupted.store(true, ordering: .sequentiallyConsistent)
      UnfinishedFiles.removeAll()
      end(by: number)
    }
  }

  /// Ends the process as the signal would have done without us.
  static func end(by number: Int32) {
    signal(number, SIG_DFL)
    Interruption.unblock([number])
    raise(number)
  }

  /// Lets a signal have its way that is just ending the process: what fails now fails because its
  /// files were taken away.
  static func yieldToSignal() {
    while isInterrupted.load(ordering: .sequentiallyConsistent) { pause() }
  }

  private static let isWatching = Atomic(false)
  private static let isInterrupted = Atomic(false)
}

extension CommandFailure {
  /// The failure of a command that could not write a file.
  init(_ failure: WholeFile.Failure) {
    self.init(.inputOutput, CommandReading.oneLine(failure.description))
  }
}
