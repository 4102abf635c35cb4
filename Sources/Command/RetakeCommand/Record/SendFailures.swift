import FoundationEssentials
import Live
import MediaFiles
import Synchronization
import Wire

/// What went wrong with files while they were sent: told when it happens, and kept for the end.
///
/// A file that goes bad ends neither the call nor the recording. The peer continues with what is
/// left, and sees the last video frame until the end.
final class SendFailures: Sendable {
  private let errors = Mutex<[MediaFileError]>([])

  /// What was told so far.
  var all: [MediaFileError] { errors.withLock { $0 } }

  /// Says in one sentence that a file that carries a kind of media is sent no further.
  func tell(_ error: MediaFileError, _ kind: MediaKind) {
    errors.withLock { $0.append(error) }
    let media = kind == .audio ? "audio" : "video"
    say("--send \(error.description); the recording goes on without the \(media) of the file")
  }

  /// Says something that changes nothing in one sentence.
  func warn(_ sentence: String) { say("warning: \(sentence)") }

  private func say(_ sentence: String) {
    // A line of progress that may stand there makes room.
    Progress.clearLine()
    printError("retake: \(sentence)")
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
