import RTP
import Wire

/// The jitter of a stream as its receiver has it.
///
/// Receivers of WebRTC measure it once for each timestamp, as the packets of a frame leave
/// together: so do libwebrtc and aiortc, where RFC 3550 section 6.4.1 has every packet. What the
/// receiver itself reports is where this continues from.
struct ReceiverJitter {
  /// A new timestamp base is no jitter.
  private static let longestJump: Int64 = 5

  private var sixteenths: Int64 = 0
  private var last: (sequence: UInt16, timestamp: UInt32, arrival: Instant)?

  /// In units of the timestamp.
  var value: UInt32 { UInt32(clamping: sixteenths >> 4) }

  mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) {
    guard clockRate > 0 else { return }
    let former = last
    if let former, Int16(bitPattern: header.sequence &- former.sequence) <= 0 { return }
    last = (header.sequence, header.timestamp, arrival)
    guard let former, former.timestamp != header.timestamp else { return }
    let passed = (arrival - former.arrival).nanoseconds
    guard passed.magnitude < 1_000_000_000_000 else { return }
    let ticks = passed * Int64(clockRate) / 1_000_000_000
    let difference =
      ticks - Int64(Int32(bitPattern: header.timestamp &- former.timestamp))
    let size = Int64(clamping: difference.magnitude)
    guard size < ReceiverJitter.longestJump * Int64(clockRate) else { return }
    sixteenths += size - ((sixteenths + 8) >> 4)
  }

  /// Continues from the jitter that the receiver reports, in ticks.
  mutating func correct(_ jitter: UInt32) { sixteenths = Int64(jitter) << 4 }
}
