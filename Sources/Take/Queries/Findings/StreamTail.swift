import Tape
import Wire

/// Where a stream stands while its packets are read.
struct StreamTail: Sendable {
  /// The highest number so far without the wrap of its 16 bits, and its packet.
  var highest: Int64 = 0
  var highestRTPTime: Int64 = 0
  var sequence: Int64 = 0
  var rtpTime: Int64 = 0
  var at: Int64 = 0
  var payloadType: Int64 = 0
  var partFirst: Int64 = 0
  var partPackets: Int64 = 0
  /// Whether each of the 1,024 numbers below the highest came, as bits.
  var window = [UInt64](repeating: 0, count: 16)
  /// The least delay so far: time of arrival less media time, in nanoseconds.
  var leastDelay = Int64.max
  /// A packet whose numbers are elsewhere: the beginning of new ones, or astray.
  var pending: PacketSight?
  /// Whether its timestamps go on by lengths of packets, so that others are judged.
  var judgesSteps = false
  var steps: [StepLength] = []
  /// How far its media went on, in units of its clock.
  var mediaTicks: Int64 = 0

  /// Steps of one length between timestamps.
  struct StepLength: Sendable {
    var ticks: Int64
    var count: Int64 = 0
    var first: Int64
    var last: Int64
    /// How many of these steps were followed by a packet that came too early for its timestamp.
    var early: Int64 = 0
  }

  /// Counts a step between packets in a row.
  mutating func count(_ ticks: Int64, _ at: Int64, _ pause: Int64, _ rate: Int64) {
    guard ticks > 0 else { return }
    let place = steps.firstIndex { $0.ticks == ticks } ?? steps.count
    if place == steps.count {
      guard place < 500 else { return }
      steps.append(StepLength(ticks: ticks, first: at, last: at))
    }
    steps[place].count +|= 1
    steps[place].last = at
    if Double(pause) * 1e-9 * Double(rate) < 0.6 * Double(ticks) { steps[place].early += 1 }
  }

  mutating func mark(_ position: Int64, _ isThere: Bool) {
    let place = Int(position & 1023)
    if isThere {
      window[place >> 6] |= 1 << UInt64(place & 63)
    } else {
      window[place >> 6] &= ~(1 << UInt64(place & 63))
    }
  }

  func has(_ position: Int64) -> Bool {
    let place = Int(position & 1023)
    return window[place >> 6] & (1 << UInt64(place & 63)) != 0
  }
}
