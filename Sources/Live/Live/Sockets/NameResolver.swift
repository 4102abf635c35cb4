import Dispatch
import Glibc
import Wire

/// Resolves names with getaddrinfo on other threads, a few at a time.
///
/// The loop's thread gets answers through its mailbox. A peer that signals a thousand names gets no
/// answer for most of them instead of a thousand threads.
final class NameResolver {
  private static let pendingMaximum = 16
  private static let queue = DispatchQueue(label: "retake.names", attributes: .concurrent)
  /// Running look-ups, and refusals under way through the mailbox.
  private var pending = 0

  /// Resolves a name; the closure gets its addresses, possibly none.
  func resolve(_ name: String, complete: @escaping @Sendable ([IPAddress]) -> Void) {
    pending += 1
    guard pending <= NameResolver.pendingMaximum, !name.isEmpty, name.utf8.count <= 253 else {
      complete([])
      return
    }
    NameResolver.queue.async { complete(NameResolver.addresses(of: name)) }
  }

  /// Records that an answer has arrived through the mailbox.
  func finished() { pending = max(0, pending - 1) }

  /// Resolves a name in the system's order of preference.
  static func addresses(of name: String) -> [IPAddress] {
    if let literal = IPAddress(name) { return [literal] }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var found: [IPAddress] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ai_next
      if let address = IPAddress(entry.ai_addr) { found.append(address) }
    }
    return found.withoutRepetition
  }
}
