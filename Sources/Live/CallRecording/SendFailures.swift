package import MediaFiles
import Synchronization
package import Wire

/// What went wrong with files while they were sent: told when it happens, and kept for the end.
///
/// A file that goes bad ends neither the call nor the recording. The peer goes on with what is
/// left, and sees the last video frame until the end.
package final class SendFailures: Sendable {
  private let say: @Sendable (String) -> Void
  private let errors = Mutex<[MediaFileError]>([])

  /// - Parameter say: gets each sentence when it happens.
  package init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

  /// What went wrong so far.
  package var all: [MediaFileError] { errors.withLock { $0 } }

  /// Says in one sentence that a file that carries a kind of media is sent no further.
  package func report(_ error: MediaFileError, _ kind: MediaKind) {
    errors.withLock { $0.append(error) }
    let media = kind == .audio ? "audio" : "video"
    say("--send \(error.description); the recording goes on without the \(media) of the file")
  }

  /// Says something that changes nothing in one sentence.
  package func warn(_ sentence: String) { say("warning: \(sentence)") }
}
