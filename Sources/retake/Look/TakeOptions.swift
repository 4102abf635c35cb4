import ArgumentParser
import Foundation
import Tape

/// The take that a command looks into, and how it prints.
struct TakeOptions: ParsableArguments {
  @Argument(help: "The take.", completion: .file(extensions: ["take"]))
  var take: String

  @Flag(help: "Print JSON for programs.")
  var json = false
}

/// Runs something over a take, or fails with one sentence and the right status.
func reading<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(error)
  }
}

extension CommandFailure {
  /// The failure of a command that could not read a take.
  init(_ error: TapeError) {
    switch error.kind {
    case .missing: self.init(.noSuchFile, error.description)
    case .failed: self.init(.inputOutput, error.description)
    case .invalid: self.init(.invalidTake, error.description)
    }
  }
}
