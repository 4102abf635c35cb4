import FoundationEssentials
import Live
import Tape

/// Where the calls of a recorder are recorded: all in one shared take, or each in one of its own.
struct CallTakes {
  private let options: CallRecordingOptions
  /// Empty where each call has a take of its own.
  private let sharedPath: String
  /// The session of all calls when one file was asked for, once it has begun.
  private var session: Session?
  /// The threads of the calls that have takes of their own.
  private(set) var loops: MediaLoopPool?
  /// Whether calls may begin.
  private(set) var isOpen = false

  init(_ options: CallRecordingOptions) throws(TapeError) {
    self.options = options
    sharedPath = options.isFolder ? "" : try options.takePath("serve")
  }

  /// The take of all calls; nil if each has its own, and before it has begun.
  var shared: (session: Session, path: String)? { session.map { ($0, sharedPath) } }

  /// The name of the file or folder for people.
  var name: String {
    FileBytes.name(of: options.isFolder ? options.folder : sharedPath)
  }

  /// Creates the take of all calls, or the threads of those with takes of their own, and lets calls
  /// begin.
  mutating func open() throws(TapeError) {
    if options.isFolder {
      do throws(SystemError) {
        loops = try MediaLoopPool(count: ProcessInfo.processInfo.activeProcessorCount)
      } catch {
        throw TapeError(path: "", place: "", reason: error.description, kind: .failed)
      }
    } else {
      session = try Session.recording(options.session(sharedPath))
    }
    isOpen = true
  }

  /// Lets no call begin any more.
  mutating func close() { isOpen = false }

  /// The take of a new call.
  func callTake() throws(TapeError) -> (session: Session, path: String) {
    try take(prefix: "call", on: loops?.next())
  }

  /// The take that rooms are recorded in.
  func roomTake() throws(TapeError) -> (session: Session, path: String) {
    try take(prefix: "rooms", on: nil)
  }

  private func take(prefix: String, on loop: @autoclosure () -> MediaLoop?)
    throws(TapeError)
    -> (session: Session, path: String)
  {
    if let shared { return shared }
    let path = try options.takePath(prefix)
    return (try Session.recording(options.session(path), on: loop()), path)
  }
}
