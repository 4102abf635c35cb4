/// The packets that a received stream of RTP misses, found by its sequence numbers.
struct LossLog {
  /// What became of a packet that was missing when a later one came.
  enum Fate: Int64 {
    case lost = 0
    /// A retransmission with the timestamp of its frame came.
    case repaired = 1
    /// It came itself, out of order or sent again.
    case late = 2
  }

  private struct Entry {
    var at: Int64
    var number: Int64
    var fate = Fate.lost
    /// The timestamps of the packets before and after.
    var before: Int64
    var after: Int64
  }

  private var entries: [Entry] = []
  /// Where a missing number stands in `entries`.
  private var missing: [Int64: Int] = [:]
  private var highest: Int64?
  private var lastTime: Int64 = 0

  /// A jump by more is another beginning (RFC 3550 appendix A.1).
  private static let jumpMaximum: Int64 = 3_000
  /// How many are told; a stream that loses more needs no list of them.
  private static let entryMaximum = 100_000
  /// How many of the latest ones a retransmission is looked for among.
  private static let searchMaximum = 512

  /// Handles the number and the timestamp of the next packet that came.
  mutating func came(sequence: Int64, rtpTime: Int64, at: Int64) {
    defer { lastTime = rtpTime }
    guard let highest else {
      self.highest = sequence
      return
    }
    let difference = Int64(Int16(truncatingIfNeeded: sequence &- highest))
    if difference <= 0 {
      if let place = missing.removeValue(forKey: highest &+ difference) {
        entries[place].fate = .late
      } else if difference < -Self.jumpMaximum {
        self.highest = sequence
        missing.removeAll()
      }
      return
    }
    if difference <= Self.jumpMaximum, entries.count < Self.entryMaximum {
      for number in (highest + 1)..<(highest + difference) {
        missing[number] = entries.count
        entries.append(Entry(at: at, number: number, before: lastTime, after: rtpTime))
      }
    }
    self.highest = highest &+ difference
  }

  /// Handles a retransmission of some stream (RFC 4588: it has the timestamp of what it repeats);
  /// true when a packet that is missing here may be what it repeats.
  mutating func repaired(rtpTime: Int64) -> Bool {
    for place in entries.indices.suffix(Self.searchMaximum).reversed() {
      let entry = entries[place]
      guard entry.fate == .lost, isBetween(rtpTime, entry.before, entry.after) else { continue }
      entries[place].fate = .repaired
      missing.removeValue(forKey: entry.number)
      return true
    }
    return false
  }

  private func isBetween(_ time: Int64, _ before: Int64, _ after: Int64) -> Bool {
    let length = UInt32(truncatingIfNeeded: after &- before)
    // Timestamps of neighbours are close to each other, also over the end of their range.
    return length < 1 << 31 && UInt32(truncatingIfNeeded: time &- before) <= length
  }

  /// When each was missed, its number and its fate.
  var columns: [(name: String, column: PageColumn)] {
    var at = PageColumn(.steps)
    var sequence = PageColumn(.steps)
    var fate = PageColumn(.values)
    for entry in entries {
      at.append(entry.at)
      sequence.append(entry.number & 0xffff)
      fate.append(entry.fate.rawValue)
    }
    return [("at", at), ("sequence", sequence), ("fate", fate)]
  }
}
