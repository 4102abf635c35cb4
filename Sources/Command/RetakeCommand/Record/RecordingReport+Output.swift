import CallRecording
import FoundationEssentials
import MediaFiles
import Tape

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
