import Wire

/// Which pair of one component of a transport is in use.
///
/// Media shows it. As long as none goes, it is the nominated pair of the highest priority: a client
/// that nominates aggressively nominates all that answer (RFC 5245 section 8.1.1.2), again with
/// each check for consent.
struct PairChoice {
  /// How long media or a nomination of a pair counts for it.
  private static let mediaMemory = Interval.seconds(2)
  private static let nominationMemory = Interval.seconds(5)
  /// How many packets of an end have to follow each other on another pair: single ones are late.
  private static let runMinimum = 3
  /// How many nominated paths are remembered.
  private static let nominatedMaximum = 64

  private(set) var selected: Int?
  /// Where each end's media goes, since when it goes nowhere else.
  private var media: [(path: Int, run: Int, last: Instant)?] = [nil, nil]
  /// The paths that were nominated, and when last.
  private var nominated: [(path: Int, last: Instant)] = []

  /// A check that nominates a path was answered; whether the path is selected by that.
  ///
  /// - Parameter priority: that of a path (RFC 8445 section 6.1.2.3).
  mutating func nominate(_ path: Int, at now: Instant, priority: (Int) -> UInt64) -> Bool {
    let known = nominated.firstIndex { $0.path == path }
    if let known {
      nominated[known].last = now
    } else {
      if nominated.count >= Self.nominatedMaximum { nominated.removeFirst() }
      nominated.append((path, now))
    }
    guard let selected, selected != path else { return select(path) }
    if media.contains(where: { $0?.path == selected && now - ($0?.last ?? now) < Self.mediaMemory })
    {
      return false
    }
    let last = nominated.last { $0.path == selected }?.last
    guard let last, now - last < Self.nominationMemory else { return select(path) }
    let (new, old) = (priority(path), priority(selected))
    return new > old || new == old && known == nil ? select(path) : false
  }

  /// An end sends media over a path; whether the path is selected by that.
  @inline(__always)
  mutating func send(over path: Int, from end: Int, at now: Instant) -> Bool {
    if let before = media[end], before.path == path {
      media[end] = (path, min(before.run + 1, Self.runMinimum), now)
    } else {
      media[end] = (path, 1, now)
    }
    return selected == path ? false : follow(path, from: end, at: now)
  }

  private mutating func follow(_ path: Int, from end: Int, at now: Instant) -> Bool {
    guard selected != nil else { return select(path) }
    guard let run = media[end]?.run, run >= Self.runMinimum else { return false }
    // Ends whose media goes different ways have not agreed yet.
    if let other = media[1 - end], other.path != path, now - other.last < Self.mediaMemory {
      return false
    }
    return select(path)
  }

  private mutating func select(_ path: Int) -> Bool {
    defer { selected = path }
    return selected != path
  }

  /// Ends it, as its transport goes on elsewhere; gives the path that was selected.
  mutating func clear() -> Int? {
    defer { self = PairChoice() }
    return selected
  }
}
