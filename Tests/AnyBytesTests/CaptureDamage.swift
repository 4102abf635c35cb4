import Wire

/// Alters captures field by field.
///
/// The same seed always makes the same file.
struct CaptureDamage {
  var damage: Damage

  init(seed: UInt64) { damage = Damage(seed: seed) }

  private mutating func below(_ bound: Int) -> Int { damage.below(max(1, bound)) }
  private mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

  /// Values at the limits of 16-, 32- and 64-bit arithmetic.
  private static let ends: [UInt64] = [
    0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x7fff_ffff, 0x8000_0000,
    0xffff_fffe, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, .max - 1, .max,
  ]

  private mutating func end() -> UInt64 { Self.ends[below(Self.ends.count)] }

  /// Returns one of the samples as an altered pcap or pcapng file, possibly shortened.
  mutating func altered(_ samples: [CaptureSample]) -> [UInt8] {
    var sample = samples[below(samples.count)]
    // Shortens a long capture: to its start, which has the handshakes, or to any part.
    let count = 20 + below(140)
    if sample.records.count > count {
      let begin = oneIn(3) ? below(sample.records.count - count) : 0
      sample.records = Array(sample.records[begin..<begin + count])
    }
    for _ in 0...below(6) { alter(&sample, among: samples) }
    for _ in 0..<below(12) { alterFrame(&sample) }
    if oneIn(3) { enclose(&sample) }
    var bytes = oneIn(2) ? pcap(sample) : pcapng(sample)
    for _ in 0..<(oneIn(5) ? 1 + below(3) : 0) { wound(&bytes) }
    return bytes
  }

  // MARK: Records

  private mutating func alter(_ sample: inout CaptureSample, among samples: [CaptureSample]) {
    guard !sample.records.isEmpty else { return }
    let place = below(sample.records.count)
    switch below(14) {
    case 12:
      // Lengthens several packets in a row beyond what any network carries unfragmented.
      let length = 1000 + below(9000)
      for index in place..<min(place + 1 + below(8), sample.records.count) {
        sample.records[index].frame += [UInt8](repeating: 0x55, count: length)
        lengthen(&sample.records[index].frame, sample.networkOffset)
      }
    case 13:
      // All following packets arrive up to two seconds later, or up to 23 days later.
      let step = Int64(below(4) == 0 ? below(2_000_000_000) : below(2000)) * 1_000_000
      for index in place..<sample.records.count {
        let at = sample.records[index].nanoseconds +| step
        sample.records[index].seconds +|= at / 1_000_000_000
        sample.records[index].nanoseconds = at % 1_000_000_000
      }
    case 0: sample.records[place].seconds = Int64(bitPattern: end())
    case 1: sample.records[place].nanoseconds = Int64(bitPattern: end())
    case 2:
      // All following packets arrive much later, or earlier.
      let steps: [Int64] = [1, 60, 3600, 86_400, 40_000_000, 2_000_000_000]
      let step = steps[below(steps.count)] * (oneIn(3) ? -1 : 1)
      for index in place..<sample.records.count {
        sample.records[index].seconds +|= step
      }
    case 3: sample.records[place].statedLength = UInt32(truncatingIfNeeded: end())
    case 4: sample.records[place].originalLength = UInt32(truncatingIfNeeded: end())
    case 5: sample.records[place].dropped = end()
    case 6: sample.records.remove(at: place)
    case 7: sample.records.insert(sample.records[place], at: below(sample.records.count))
    case 8: sample.records.swapAt(place, below(sample.records.count))
    case 9:
      let other = samples[below(samples.count)]
      guard other.linkType == sample.linkType, !other.records.isEmpty else { return }
      let begin = below(other.records.count)
      let part = other.records[begin..<min(begin + 1 + below(20), other.records.count)]
      sample.records.insert(contentsOf: part, at: place)
    case 10: flood(&sample, place)
    default:
      let count = sample.records[place].frame.count
      sample.records[place].frame.removeLast(min(count, below(count + 1)))
    }
  }

  /// Repeats a packet with up to 200 different values of its source or destination port.
  private mutating func flood(_ sample: inout CaptureSample, _ place: Int) {
    let port = sample.networkOffset + 20 + 2 * below(2)
    var record = sample.records[place]
    guard record.frame.count > port + 2 else { return }
    var copies: [CaptureSample.Record] = []
    for number in 0..<below(200) {
      record.frame[port] = UInt8(truncatingIfNeeded: number >> 8)
      record.frame[port + 1] = UInt8(truncatingIfNeeded: number)
      copies.append(record)
    }
    sample.records.insert(contentsOf: copies, at: place)
  }

  // MARK: Layers

  /// Wraps an Ethernet capture's frames in one to three layers, and alters the layers' bytes.
  private mutating func enclose(_ sample: inout CaptureSample) {
    guard sample.linkType == 1 else { return }
    for _ in 0...below(3) {
      let layer = below(Enclosure.layers.count)
      for index in sample.records.indices where sample.records[index].frame.count > 14 {
        sample.records[index].frame = Enclosure.layers[layer](sample.records[index].frame)
      }
    }
    if oneIn(3) {
      let (linkType, last) = Enclosure.links[below(Enclosure.links.count)]
      sample.linkType = linkType
      for index in sample.records.indices {
        sample.records[index].frame = last(sample.records[index].frame)
      }
    }
    for _ in 0..<below(20) where !sample.records.isEmpty {
      let place = below(sample.records.count)
      guard !sample.records[place].frame.isEmpty else { continue }
      let offset = below(min(sample.records[place].frame.count, 90))
      set(&sample.records[place].frame, offset, 1 + below(2))
    }
  }

  // MARK: Packet fields

  /// Sets a field in a header or in a datagram's payload to an extreme value.
  private mutating func alterFrame(_ sample: inout CaptureSample) {
    guard !sample.records.isEmpty else { return }
    let place = below(sample.records.count)
    var frame = sample.records[place].frame
    let network = sample.networkOffset
    let isTCP = frame.count > network + 9 && frame[network + 9] == 6
    let payload = network + 20 + (isTCP ? 20 : 8)
    switch below(10) {
    case 0:
      // IPv4: version and header length, total length, identification, flags and offset, protocol.
      let fields = [(0, 1), (2, 2), (4, 2), (6, 2), (9, 1)]
      let (offset, width) = fields[below(fields.count)]
      set(&frame, network + offset, width)
    case 1:
      let fields =
        isTCP ? [(0, 2), (2, 2), (4, 4), (8, 4), (12, 1), (13, 1)] : [(0, 2), (2, 2), (4, 2)]
      let (offset, width) = fields[below(fields.count)]
      set(&frame, network + 20 + offset, width)
    case 2, 3, 4:
      // RTP, RTCP, STUN, DTLS and TURN headers: sequence numbers, times, lengths, sources.
      let fields = [(0, 1), (1, 1), (2, 2), (4, 4), (8, 4), (11, 2), (12, 2), (14, 2), (16, 4)]
      let (offset, width) = fields[below(fields.count)]
      set(&frame, payload + offset, width)
    case 5, 6:
      // Attributes, report blocks and records start at multiples of four.
      let words = (frame.count - payload) / 4
      guard words > 0 else { return }
      set(&frame, payload + 4 * below(words) + 2 * below(2), [2, 4, 8][below(3)])
    case 7:
      guard frame.count > payload else { return }
      var rest = Array(frame[payload...])
      rest = damage.damaged([rest])
      frame = Array(frame[..<payload]) + rest
    case 8:
      // Makes a datagram longer than most networks carry.
      guard frame.count > payload else { return }
      frame += [UInt8](repeating: UInt8(truncatingIfNeeded: below(256)), count: below(9000))
      lengthen(&frame, network)
    default:
      guard frame.count > payload else { return }
      frame[payload + below(frame.count - payload)] ^= 1 << UInt8(below(8))
    }
    sample.records[place].frame = frame
  }

  private mutating func set(_ frame: inout [UInt8], _ place: Int, _ width: Int) {
    guard place >= 0, place + width <= frame.count else { return }
    let value = end()
    for index in 0..<width {
      frame[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * (width - 1 - index)))
    }
  }

  /// Updates the length fields in the IP and UDP headers to the frame's length.
  private func lengthen(_ frame: inout [UInt8], _ network: Int) {
    let whole = frame.count - network
    guard whole > 28, whole < 65_536 else { return }
    frame.replaceSubrange(network + 2..<network + 4, with: Frame.big(whole, 2))
    frame.replaceSubrange(network + 24..<network + 26, with: Frame.big(whole - 20, 2))
  }

  // MARK: Files

  private mutating func wound(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let place = below(bytes.count)
    switch below(5) {
    case 0: bytes.removeLast(below(min(bytes.count, 400)))
    case 1: bytes[place] ^= 1 << UInt8(below(8))
    case 2:
      let word = place & ~3
      guard word + 4 <= bytes.count else { return }
      let value = end()
      for index in 0..<4 {
        bytes[word + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index))
      }
    case 3: bytes.removeSubrange(place..<min(bytes.count, place + 1 + below(40)))
    default: bytes.insert(contentsOf: bytes[place...].prefix(1 + below(60)), at: place)
    }
  }

  private func little(_ value: UInt64, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
  }

  private mutating func pcap(_ sample: CaptureSample) -> [UInt8] {
    let isNano = oneIn(2)
    var bytes = little(isNano ? 0xa1b2_3c4d : 0xa1b2_c3d4, 4) + little(2, 2) + little(4, 2)
    bytes += little(0, 8) + little(262_144, 4) + little(UInt64(sample.linkType), 4)
    for record in sample.records {
      bytes += little(UInt64(bitPattern: record.seconds), 4)
      bytes += little(UInt64(bitPattern: record.nanoseconds / (isNano ? 1 : 1000)), 4)
      bytes += little(UInt64(record.statedLength ?? UInt32(record.frame.count)), 4)
      bytes += little(UInt64(record.originalLength ?? UInt32(record.frame.count)), 4)
      bytes += record.frame
    }
    return bytes
  }

  private mutating func pcapng(_ sample: CaptureSample) -> [UInt8] {
    var bytes: [UInt8] = []
    func padded(_ bytes: [UInt8]) -> [UInt8] {
      bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
    func option(_ code: UInt64, _ value: [UInt8]) -> [UInt8] {
      little(code, 2) + little(UInt64(value.count), 2) + padded(value)
    }
    func block(_ type: UInt64, _ body: [UInt8]) {
      let body = padded(body)
      let length = little(UInt64(body.count + 12), 4)
      bytes += little(type, 4) + length + body + length
    }
    var head = little(0x1a2b_3c4d, 4) + little(1, 2) + little(0, 2) + little(.max, 8)
    for comment in sample.comments { head += option(1, Array(comment.utf8)) }
    block(0x0a0d_0d0a, head)
    // Resolutions from seconds to far below nanoseconds, decimal and binary, and time offsets.
    let resolutions: [UInt8] = [9, 9, 9, 6, 0, 3, 19, 20, 0x80, 0xa0, 0xbf, 0xc0, 0xff]
    let resolution = resolutions[below(resolutions.count)]
    var interface =
      little(UInt64(sample.linkType), 2) + little(0, 2) + little(oneIn(4) ? end() : 0, 4)
    interface += option(9, [resolution])
    if oneIn(4) { interface += option(14, little(end(), 8)) }
    if oneIn(8) { interface += option(13, [UInt8(truncatingIfNeeded: end())]) }
    block(1, interface)
    if !sample.keys.isEmpty {
      block(
        10,
        little(0x544c_534b, 4) + little(UInt64(sample.keys.utf8.count), 4) + Array(sample.keys.utf8)
      )
    }
    for record in sample.records {
      let scale: Int64 = resolution == 6 ? 1_000_000 : 1_000_000_000
      let ticks = UInt64(
        bitPattern: record.seconds &* scale &+ record.nanoseconds / (1_000_000_000 / scale))
      if oneIn(40) {
        let count = UInt64(record.originalLength ?? UInt32(record.frame.count))
        block(3, little(count, 4) + record.frame)
        continue
      }
      var body = little(0, 4) + little(ticks >> 32, 4) + little(ticks, 4)
      body += little(UInt64(record.statedLength ?? UInt32(record.frame.count)), 4)
      body += little(UInt64(record.originalLength ?? UInt32(record.frame.count)), 4)
      body += padded(record.frame)
      if let dropped = record.dropped { body += option(4, little(dropped, 8)) }
      block(6, body)
      if oneIn(30) {
        block(
          5,
          little(0, 4) + little(ticks >> 32, 4) + little(ticks, 4)
            + option(5, little(end(), 8)) + option(7, little(end(), 8)))
      }
    }
    return bytes
  }
}
