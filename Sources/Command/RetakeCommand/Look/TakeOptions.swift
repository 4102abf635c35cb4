import ArgumentParser
import FoundationEssentials
package import Tape

/// The take that a command looks into, and how it prints.
struct TakeOptions: ParsableArguments {
  @Argument(help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Flag(help: "Print JSON for programs.")
  var json = false
}

/// The takes that a command looks into, one or many, and how it prints.
struct TakesOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The take; or several, or folders of takes, of which each is told.", valueName: "take"),
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var takes: [String]

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// The one take that is meant, where it is one.
  var take: String { takes.first ?? "" }

  var areMany: Bool { takes.count > 1 || FileBytes.kind(of: take) == .folder }
}

/// Says of takes that have no end that they are still being recorded, or what they may lack.
///
/// What cannot be read is told by who reads it.
func noteEndings(of takes: String...) {
  for take in takes {
    switch try? TakeEnding.of(take) {
    case .complete?, .cutShort?, nil: continue
    case let ending?: printError("retake: \(take): \(ending.words ?? "")")
    }
  }
}

/// Runs something over a take, or fails with one sentence and the right status.
package func reading<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(error)
  }
}

extension CommandFailure {
  /// The failure of a command that could not read a take.
  package init(_ error: TapeError) {
    let status: ExitStatus =
      switch error.kind {
      case .missing: .noSuchFile
      case .failed: .inputOutput
      case .invalid: .invalidTake
      }
    // Names of files may hold anything.
    self.init(status, CommandReading.oneLine(error.description))
  }
}
