import CSockets
import Tape

/// Tells that addresses or interfaces of this host have changed (rtnetlink).
final class LinkWatch {
  let descriptor: Int32

  init() throws(SystemError) {
    descriptor = try checked("watch the interfaces", csockets_link_watch())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Records what was told.
  func clear() { _ = csockets_link_clear(descriptor) }
}
