import RTP
import Wire

/// Packets sent with transport-wide sequence numbers and not yet reported by the peer.
struct SentLog: Sendable {
  /// A packet that the peer received.
  struct Acknowledged {
    var sentAt: Instant
    /// The arrival on the peer's clock, in units of 250 µs.
    var arrivalTicks: Int64
    var bytes: Int
  }

  /// The new information in a feedback message.
  struct News {
    var arrived: [Acknowledged] = []
    var lostCount = 0
  }

  private struct Entry {
    var sequence: Int64 = -1
    var sentAt = Instant.zero
    var bytes: Int32 = 0
    var isAcknowledged = false
  }

  private static let capacity = 4096
  private var entries: [Entry] = []
  private var newest: Int64 = -1
  /// The newest packet covered by any feedback.
  private var newestReported: Int64 = -1
  private var reference: Int64?

  mutating func append(_ sequence: Int64, bytes: Int, at now: Instant) {
    if entries.isEmpty { entries = [Entry](repeating: Entry(), count: SentLog.capacity) }
    entries[place(sequence)] = Entry(
      sequence: sequence, sentAt: now, bytes: Int32(clamping: bytes))
    newest = max(newest, sequence)
  }

  /// Returns what a feedback adds; packets already reported are left out.
  mutating func news(in feedback: TransportFeedback) -> News {
    var news = News()
    guard newest >= 0 else { return news }
    let base = newest - Int64(UInt16(truncatingIfNeeded: newest) &- feedback.base)
    let origin = unwrapReference(feedback.reference) * TransportFeedback.ticksPerReference
    var arrivedNow: Int64 = 0
    for arrival in feedback.arrivals {
      let sequence = base + Int64(arrival.offset)
      guard sequence >= 0, sequence <= newest else { continue }
      let entry = entries[place(sequence)]
      if sequence > newestReported { arrivedNow += 1 }
      guard entry.sequence == sequence, !entry.isAcknowledged else { continue }
      entries[place(sequence)].isAcknowledged = true
      news.arrived.append(
        Acknowledged(
          sentAt: entry.sentAt, arrivalTicks: origin + Int64(arrival.ticks),
          bytes: Int(entry.bytes)))
    }
    let last = min(newest, base + Int64(feedback.count) - 1)
    if last > newestReported {
      // Packets not covered by any feedback are not known to be lost.
      let first = max(newestReported + 1, base)
      news.lostCount = Int(max(0, last - first + 1 - arrivedNow))
      newestReported = last
    }
    return news
  }

  /// Extends the reference time, whose 24 bits wrap around after 12 days.
  private mutating func unwrapReference(_ wire: Int32) -> Int64 {
    guard let reference else {
      self.reference = Int64(wire)
      return Int64(wire)
    }
    let difference = (Int32(truncatingIfNeeded: Int64(wire) - reference) << 8) >> 8
    self.reference = reference + Int64(difference)
    return reference + Int64(difference)
  }

  private func place(_ sequence: Int64) -> Int {
    Int(truncatingIfNeeded: sequence) & (SentLog.capacity - 1)
  }
}
