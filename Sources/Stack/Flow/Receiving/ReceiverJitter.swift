import RTP
import Wire

/// The jitter of a stream as its receiver computes it.
///
/// WebRTC receivers update it once per timestamp, since the packets of a frame leave together;
/// libwebrtc and aiortc do so, while RFC 3550 section 6.4.1 uses every packet. It is corrected by
/// what the receiver reports.
struct ReceiverJitter {
  /// A larger jump is a new timestamp base and no jitter.
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

  /// Continues from the jitter that the receiver reported, in timestamp units.
  mutating func correct(_ jitter: UInt32) { sixteenths = Int64(jitter) << 4 }
}
