import Wire

/// Owns when something is sent to the server only to keep the mapping of a NAT before it.
struct MappingKeeper {
  /// When the next message is due, unless others go out until then.
  private(set) var deadline: Instant?
  private var sentAt = Instant.zero
  /// A connection needs no such messages.
  private let isReliable: Bool

  init(isReliable: Bool) { self.isReliable = isReliable }

  /// Begins, because an allocation is there.
  mutating func begin(at now: Instant) {
    if !isReliable { deadline = now + TURNTiming.keepAlive }
  }

  /// Notes any message to the server.
  mutating func recordSent(at now: Instant) { sentAt = now }

  /// Whether it is time to look; whatever is sent is noted before `settle`.
  func isDue(at now: Instant) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Whether nothing was sent for long.
  func isSilent(at now: Instant) -> Bool { sentAt + TURNTiming.keepAlive <= now }

  /// Sets the next time to look.
  mutating func settle() { deadline = sentAt + TURNTiming.keepAlive }

  /// Ends with the allocation.
  mutating func end() { deadline = nil }
}
