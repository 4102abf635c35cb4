import Flow
import Peer
import Wire

/// Counts the peer's key frame requests per sending transceiver.
struct KeyframeDemand {
  private var streams: [(transceiver: UInt32, ssrc: UInt32, count: Int)] = []

  /// Learns from sent frames which stream belongs to which transceiver.
  mutating func observe(_ frame: FrameRecord) {
    guard frame.kind == .video, !frame.isInbound else { return }
    guard let index = streams.firstIndex(where: { $0.transceiver == frame.transceiver }) else {
      streams.append((frame.transceiver, frame.ssrc, 0))
      return
    }
    streams[index].ssrc = frame.ssrc
  }

  /// Counts received PLI and FIR (RFC 4585 section 6.3.1, RFC 5104 section 4.3.1).
  mutating func observe(_ block: RTCPRecord) {
    guard block.isInbound, block.type == "pli" || block.type == "fir",
      let index = streams.firstIndex(where: { $0.ssrc == block.ssrc })
    else { return }
    streams[index].count += 1
  }

  /// The number of requests; nil before the first frame was sent.
  func count(on transceiver: UInt32) -> Int? {
    streams.first { $0.transceiver == transceiver }?.count
  }
}
