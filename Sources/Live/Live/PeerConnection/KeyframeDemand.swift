import Flow
import Peer
import Wire

/// How many key frames a peer asked for, by the transceiver that sends.
struct KeyframeDemand {
  private var streams: [(transceiver: UInt32, ssrc: UInt32, count: Int)] = []

  /// Learns from what is sent which stream is whose.
  mutating func observe(_ frame: FrameRecord) {
    guard frame.kind == .video, !frame.isInbound else { return }
    guard let index = streams.firstIndex(where: { $0.transceiver == frame.transceiver }) else {
      streams.append((frame.transceiver, frame.ssrc, 0))
      return
    }
    streams[index].ssrc = frame.ssrc
  }

  /// Counts demands that came in (RFC 4585 section 6.3.1, RFC 5104 section 4.3.1).
  mutating func observe(_ block: RTCPRecord) {
    guard block.isInbound, block.type == "pli" || block.type == "fir",
      let index = streams.firstIndex(where: { $0.ssrc == block.ssrc })
    else { return }
    streams[index].count += 1
  }

  /// How many there were; nil before the first video frame was sent.
  func count(on transceiver: UInt32) -> Int? {
    streams.first { $0.transceiver == transceiver }?.count
  }
}
