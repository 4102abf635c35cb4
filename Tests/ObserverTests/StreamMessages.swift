import Observer
import RTP
import Wire

/// RTP of many codecs, encrypted or not, for tests.
struct SyntheticStream {
  var ssrc: UInt32 = 0x0a0b_0c0d
  var type: UInt8 = 96
  var sequence: UInt16 = 65_500
  var timestamp: UInt32 = 0xffff_0000
  private var state: UInt64

  init(seed: UInt64 = 1, ssrc: UInt32 = 0x0a0b_0c0d, type: UInt8 = 96) {
    state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    (self.ssrc, self.type) = (ssrc, type)
  }

  /// Returns bytes that look encrypted.
  mutating func random(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return UInt8(truncatingIfNeeded: state >> 32)
    }
  }

  /// Returns a packet with the next sequence number and the current timestamp.
  mutating func packet(_ payload: [UInt8], marker: Bool = false) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(0x80)
    writer.uint8(type | (marker ? 0x80 : 0))
    writer.uint16(sequence)
    writer.uint32(timestamp)
    writer.uint32(ssrc)
    writer.append(payload)
    sequence &+= 1
    return writer.bytes
  }

  /// Returns a packet with 20 ms of unencrypted Opus, and advances the timestamp by 960.
  mutating func opus() -> [UInt8] {
    defer { timestamp &+= 960 }
    return packet([0x78] + random(60 + Int(sequence % 40)))
  }

  /// Returns a packet that looks encrypted, and advances the timestamp by `ticks`.
  mutating func sealed(_ ticks: UInt32, _ length: Int = 90) -> [UInt8] {
    defer { timestamp &+= ticks }
    return packet(random(length))
  }

  /// Returns a video frame other than a key frame, in packets that start as the codec's do.
  mutating func frame(_ codec: String, packets count: Int = 3) -> [[UInt8]] {
    defer { timestamp &+= 3000 }
    return (0..<count).map { index in
      let (isFirst, isLast) = (index == 0, index == count - 1)
      let head: [UInt8] =
        switch codec {
        case "vp8": [isFirst ? 0x90 : 0x80, 0x80, UInt8(sequence & 0x7f), 0x31]
        case "vp9": [0xa0 | (isFirst ? 8 : 0) | (isLast ? 4 : 0), 0x91, 0x23, 0, 7, 0x86]
        case "h264": [0x7c, (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | 1]
        case "h265": [0x62, 0x01, (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | 1]
        default: [(isFirst ? 0 : 0x80) | (isLast ? 0 : 0x40) | 0x10, 0x30, 0x11]
        }
      return packet(head + random(800), marker: isLast)
    }
  }
}

/// An observer of one path, fed by a test.
struct PathWatch: ~Copyable {
  var call = SyntheticCall()
  var observer: Observer
  let there = FiveTuple(.udp, from: Messages.a, to: Messages.b)

  init(_ settings: ObserverSettings = ObserverSettings()) { observer = Observer(settings) }

  mutating func show(_ bytes: [UInt8], isBack: Bool = false, after milliseconds: Int64 = 20) {
    call.send(bytes, isBack ? there.reversed : there, to: &observer, after: milliseconds)
  }

  mutating func end() -> Seen {
    call.watch.end(&observer)
    return call.seen
  }
}
