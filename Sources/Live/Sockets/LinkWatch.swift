import CSupport

/// Tells that addresses or interfaces of this host have changed (rtnetlink).
final class LinkWatch {
  let descriptor: Int32

  init() throws(SystemError) {
    descriptor = try checked("watch the interfaces", csupport_link_watch())
  }

  deinit { _ = csupport_close(descriptor) }

  /// Takes note of what was told.
  func clear() { _ = csupport_link_clear(descriptor) }
}
