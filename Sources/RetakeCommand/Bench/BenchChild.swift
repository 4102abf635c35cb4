import Foundation

/// A program that is measured from outside.
final class Child {
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  init(_ program: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: program).resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = errors
    do {
      try process.run()
    } catch {
      throw CommandFailure(.inputOutput, "\(program): it cannot be started")
    }
  }

  /// Runs a program to its end; gives how long it took.
  static func seconds(_ program: String, _ arguments: [String]) throws -> Double {
    let watch = Stopwatch()
    let child = try Child(program, arguments)
    let words = child.errors.fileHandleForReading.readDataToEndOfFile()
    _ = child.output.fileHandleForReading.readDataToEndOfFile()
    child.process.waitUntilExit()
    guard child.process.terminationStatus == 0 else {
      throw CommandFailure(
        .inputOutput, "\(program) failed: \(String(decoding: words.suffix(500), as: UTF8.self))")
    }
    return watch.elapsed.wall
  }

  /// Waits until it says something.
  func waitForErrors(_ text: String) throws {
    var seen = ""
    while !seen.contains(text) {
      let more = errors.fileHandleForReading.availableData
      guard !more.isEmpty else {
        throw CommandFailure(.inputOutput, "a process ended early: \(seen)")
      }
      seen += String(decoding: more, as: UTF8.self)
    }
  }

  /// Interrupts it, and gives what it printed.
  func interrupt() throws -> String {
    kill(process.processIdentifier, SIGINT)
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The most memory that any process had that was waited for, in MB.
  static var largestMemory: Double {
    var usage = rusage()
    getrusage(Int32(truncatingIfNeeded: RUSAGE_CHILDREN.rawValue), &usage)
    return Double(usage.ru_maxrss) / 1024
  }
}
