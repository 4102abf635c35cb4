import CSockets
import Tape

/// Reports changes of this host's addresses and interfaces (rtnetlink).
final class LinkWatch {
  let descriptor: Int32

  init() throws(SystemError) {
    descriptor = try checked("watch the interfaces", csockets_link_watch())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Reads and discards the notifications.
  func clear() { _ = csockets_link_clear(descriptor) }
}
