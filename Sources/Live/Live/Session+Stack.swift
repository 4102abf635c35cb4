import Media
import Peer

extension Session {
  /// Starts a session; recorded if the options have a path.
  /// - Parameter loop: a loop shared with other sessions; nil creates one.
  /// - Throws: `SessionError` if the take or the thread cannot be created.
  public convenience init(_ options: Options, loop: MediaLoop? = nil) throws(SessionError) {
    // Every peer gets its own codecs, which stay on the loop's thread.
    try self.init(options, loop: loop) { TimedPeer() }
  }
}
