import Glibc

/// The limit on open file descriptors of the process.
public enum DescriptorLimit {
  /// Raises the limit as far as the system permits, and returns it.
  ///
  /// The usual one is 1,024, because of programs that use bit sets of descriptors (`select`);
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

  /// How many more descriptors the process may open, up to a maximum of interest.
  package static func spare(upTo maximum: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return maximum
    }
    var count = 0
    var descriptor: Int32 = 0
    while count < maximum, descriptor < min(limit.rlim_cur, rlim_t(Int32.max)) {
      if fcntl(descriptor, F_GETFD) < 0 { count += 1 }
      descriptor += 1
    }
    return count
  }
}
