import Glibc

/// How many descriptors the process may have open.
public enum DescriptorLimit {
  /// Raises the limit as far as the system lets a process do that by itself, and gives it.
  ///
  /// The usual one is 1,024, because of programs that keep descriptors in bit sets (`select`);
  /// nothing here does.
  @discardableResult
  public static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 0 }
    let before = limit.rlim_cur
    limit.rlim_cur = limit.rlim_max
    if setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
    return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
  }
}
