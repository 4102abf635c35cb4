import DequeModule
import RTP

/// Packets waiting for playout, ordered by media time.
struct AudioPacketBuffer {
  struct Entry {
    var frame: ReceivedFrame
    var packet: AudioPacket

    /// The media time at which the packet ends.
    var end: Int64 { frame.extendedTime &+ Int64(packet.duration) }
  }

  /// More than any delay needs: 5 s of 20 ms packets.
  static let capacity = 250

  private(set) var entries = Deque<Entry>()

  var first: Entry? { entries.first }
  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count >= AudioPacketBuffer.capacity }

  /// Whether the second packet follows the first without a gap.
  var firstIsFollowed: Bool {
    entries.count > 1 && entries[1].frame.extendedTime == entries[0].end
  }

  /// Inserts a packet; false if it is a duplicate.
  mutating func insert(_ entry: Entry) -> Bool {
    var place = entries.count
    while place > 0, entries[place - 1].frame.extendedTime > entry.frame.extendedTime {
      place -= 1
    }
    if place > 0, entries[place - 1].frame.extendedTime == entry.frame.extendedTime {
      return false
    }
    entries.insert(entry, at: place)
    return true
  }

  mutating func removeFirst() { entries.removeFirst() }

  mutating func removeAll() { entries.removeAll(keepingCapacity: true) }
}
