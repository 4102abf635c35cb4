import Wire

/// The missing packets of a video stream and when to request them (RFC 4585 section 6.2.1).
struct MissingPackets {
  /// What to do about missing packets now.
  struct Demand {
    /// The sequence numbers to request, oldest first.
    var requested: [UInt16] = []
    /// The newest packet to give up, with all before it.
    var abandoned: Int64?
  }

  private struct Entry {
    var sequence: Int64
    var due: Instant
    let since: Instant
    var tries = 0
  }

  /// The most missing packets; with more, waiting is pointless.
  static let limit = 1000
  /// How often a packet is requested before it is given up.
  static let maximumTries = 10
  /// After this time and a few tries a key frame is the better way on.
  static let longestWait = Interval.seconds(2)
  static let fewestTries = 3
  /// How many newer packets, or how much time, tell loss from reordering.
  static let reorderedPackets: Int64 = 3
  static let reorderedTime = Interval.milliseconds(10)
  /// How long a gap may stay open if packets cannot be requested.
  static let patience = Interval.milliseconds(100)
  /// Requests this close together are sent as one.
  static let coalescing = Interval.milliseconds(3)

  /// Whether NACK was negotiated.
  var canRequest = false
  /// When the next action is due.
  private(set) var due: Instant?
  private var entries: [Entry] = []
  private var newest: Int64?

  /// The missing packets, oldest first.
  var sequences: [Int64] { entries.map(\.sequence) }

  var oldest: Int64? { entries.first?.sequence }

  /// Records the arrival of a packet; false if too many are missing to continue.
  mutating func receive(_ sequence: Int64, at now: Instant) -> Bool {
    guard let newest else {
      self.newest = sequence
      return true
    }
    guard sequence > newest else {
      remove(sequence)
      return true
    }
    self.newest = sequence
    guard sequence - newest <= Int64(MissingPackets.limit - entries.count) else { return false }
    let patience = canRequest ? MissingPackets.reorderedTime : MissingPackets.patience
    var lost = newest + 1
    while lost < sequence {
      entries.append(Entry(sequence: lost, due: now + patience, since: now))
      lost += 1
    }
    if sequence > newest + 1 { due = earliest(due, now + patience) }
    if canRequest, !entries.isEmpty { hasten(at: now, newest: sequence) }
    return true
  }

  /// Forgets missing packets up to this one.
  mutating func settle(through sequence: Int64) {
    guard let first = entries.first, first.sequence <= sequence else { return }
    let kept = entries.firstIndex { $0.sequence > sequence } ?? entries.count
    entries.removeFirst(kept)
    findDue()
  }

  mutating func removeAll() {
    entries.removeAll()
    due = nil
  }

  /// Returns what is due now; requested packets become due again after `spacing`.
  mutating func demand(at now: Instant, spacing: Interval) -> Demand {
    var demand = Demand()
    guard let due, due <= now else { return demand }
    let horizon = now + MissingPackets.coalescing
    var requested: [Int64] = []
    for index in entries.indices where entries[index].due <= horizon {
      if !canRequest || isHopeless(entries[index], at: now) {
        demand.abandoned = entries[index].sequence
      } else {
        entries[index].tries += 1
        entries[index].due = now + spacing
        requested.append(entries[index].sequence)
      }
    }
    if let abandoned = demand.abandoned {
      requested.removeAll { $0 <= abandoned }
      settle(through: abandoned)
    }
    demand.requested = requested.map { UInt16(truncatingIfNeeded: $0) }
    findDue()
    return demand
  }

  private func isHopeless(_ entry: Entry, at now: Instant) -> Bool {
    entry.tries >= MissingPackets.maximumTries
      || entry.tries >= MissingPackets.fewestTries
        && now - entry.since >= MissingPackets.longestWait
  }

  /// Requests packets immediately once enough newer ones have arrived.
  private mutating func hasten(at now: Instant, newest: Int64) {
    var index = entries.count - 1
    while index >= 0, entries[index].tries == 0, entries[index].due > now {
      if entries[index].sequence <= newest - MissingPackets.reorderedPackets {
        entries[index].due = now
        due = earliest(due, now)
      }
      index -= 1
    }
  }

  private mutating func remove(_ sequence: Int64) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].sequence < sequence { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].sequence == sequence else { return }
    let removed = entries.remove(at: low)
    if removed.due == due { findDue() }
  }

  private mutating func findDue() {
    due = nil
    for entry in entries { due = earliest(due, entry.due) }
  }
}
