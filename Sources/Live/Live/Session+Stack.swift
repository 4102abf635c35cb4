import Media
import Peer

extension Session {
  /// Begins a session; with a path in the options, it is recorded.
  ///
  /// - Parameter loop: a loop to share with other sessions; without one the session has its own.
  /// - Throws: `SessionError` when the take or the thread cannot be made.
  public convenience init(_ options: Options, loop: MediaLoop? = nil) throws(SessionError) {
    // Every peer gets codecs of its own, which stay on the loop's thread.
    try self.init(options, loop: loop) { TimedPeer() }
  }
}
