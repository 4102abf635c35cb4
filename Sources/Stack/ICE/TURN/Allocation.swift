import Wire

/// The allocation itself: whether it exists, its address, and when it is refreshed (RFC 8656
/// sections 7 and 8).
struct Allocation {
  private enum State {
    case idle, allocating, allocated, over
  }

  /// An allocation that lasts longer is refreshed after this time nonetheless.
  private static let lifetimeMaximum: UInt32 = 3600
  /// How long one lasts when the server does not say it.
  private static let lifetimeUsual: UInt32 = 600

  /// The allocated address, while there is one.
  private(set) var relayed: SocketAddress?
  /// When it is prolonged.
  private(set) var refreshAt: Instant?
  /// Whether an IPv6 address is asked for; a server that has none gives an IPv4 one.
  private(set) var wantsIPv6: Bool
  private var state = State.idle

  init(wantsIPv6: Bool) { self.wantsIPv6 = wantsIPv6 }

  /// Whether the allocation is there, whether that is open, and whether it is over for good.
  var isThere: Bool { state == .allocated }
  var isOpen: Bool { state == .allocating || state == .idle }
  var isOver: Bool { state == .over }

  /// Starts to ask for it; false when that was done before.
  mutating func begin() -> Bool {
    guard state == .idle else { return false }
    state = .allocating
    return true
  }

  /// Stops requesting IPv6; false when it was not requested.
  mutating func fallBackToIPv4() -> Bool {
    defer { wantsIPv6 = false }
    return wantsIPv6
  }

  /// Handles the address that the server gave; false when it is none.
  mutating func apply(_ address: SocketAddress?, lifetime: UInt32?, at now: Instant) -> Bool {
    guard let address, address.port != 0, !address.ip.isUnspecified else { return false }
    state = .allocated
    relayed = address
    prolong(lifetime, at: now)
    return true
  }

  /// Sets the lifetime, in seconds from now.
  mutating func prolong(_ lifetime: UInt32?, at now: Instant) {
    let seconds = Int64(min(lifetime ?? Self.lifetimeUsual, Self.lifetimeMaximum))
    refreshAt = now + .seconds(max(seconds - 60, seconds / 2, 1))
  }

  /// Whether it is to be prolonged now; that is not due again until it was.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due = refreshAt, due <= now else { return false }
    refreshAt = nil
    return true
  }

  /// Asks for it to be prolonged before its time.
  mutating func hasten() { refreshAt = nil }

  /// Ends it.
  mutating func end() {
    state = .over
    relayed = nil
    refreshAt = nil
  }
}
