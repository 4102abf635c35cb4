import Wire

/// A request to retransmit packets: a generic NACK (RFC 4585 section 6.2.1).
package struct GenericNACK: Hashable, Sendable {
  package var senderSSRC: UInt32
  package var mediaSSRC: UInt32
  package var sequences: [UInt16]

  package init(senderSSRC: UInt32, mediaSSRC: UInt32, sequences: [UInt16]) {
    self.senderSSRC = senderSSRC
    self.mediaSSRC = mediaSSRC
    self.sequences = sequences
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    senderSSRC = try reader.uint32()
    mediaSSRC = try reader.uint32()
    sequences = []
    while reader.remaining >= 4 {
      let first = try reader.uint16()
      var mask = try reader.uint16()
      sequences.append(first)
      while mask != 0 {
        let bit = UInt16(mask.trailingZeroBitCount)
        sequences.append(first &+ bit &+ 1)
        mask &= mask - 1
      }
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.transportFeedback, format: .genericNACK)
    writer.uint32(senderSSRC)
    writer.uint32(mediaSSRC)
    var index = 0
    while index < sequences.count {
      let first = sequences[index]
      var mask: UInt16 = 0
      index += 1
      while index < sequences.count, (1...16).contains(sequences[index] &- first) {
        mask |= 1 << (sequences[index] &- first &- 1)
        index += 1
      }
      writer.uint16(first)
      writer.uint16(mask)
    }
    writer.endRTCP(start)
  }
}

/// A PLI: the receiver cannot decode a frame (RFC 4585 section 6.3.1).
package struct PictureLoss: Hashable, Sendable {
  package var senderSSRC: UInt32
  package var mediaSSRC: UInt32

  package init(senderSSRC: UInt32, mediaSSRC: UInt32) {
    self.senderSSRC = senderSSRC
    self.mediaSSRC = mediaSSRC
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    senderSSRC = try reader.uint32()
    mediaSSRC = try reader.uint32()
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.payloadFeedback, format: .pictureLoss)
    writer.uint32(senderSSRC)
    writer.uint32(mediaSSRC)
    writer.endRTCP(start)
  }
}

/// A FIR: a request for key frames (RFC 5104 section 4.3.1).
package struct FullIntraRequest: Hashable, Sendable {
  /// A source and the request's sequence number; an unchanged number is a repetition.
  package struct Entry: Hashable, Sendable {
    package var ssrc: UInt32
    package var number: UInt8

    package init(ssrc: UInt32, number: UInt8) {
      self.ssrc = ssrc
      self.number = number
    }
  }

  package var senderSSRC: UInt32
  package var entries: [Entry]

  package init(senderSSRC: UInt32, entries: [Entry]) {
    self.senderSSRC = senderSSRC
    self.entries = entries
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    senderSSRC = try reader.uint32()
    try reader.skip(4)  // The header's media SSRC is unused: the entries name the sources.
    entries = []
    while reader.remaining >= 8 {
      entries.append(Entry(ssrc: try reader.uint32(), number: try reader.uint8()))
      try reader.skip(3)
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.payloadFeedback, format: .fullIntra)
    writer.uint32(senderSSRC)
    writer.uint32(0)
    for entry in entries {
      writer.uint32(entry.ssrc)
      writer.uint32(UInt32(entry.number) << 24)
    }
    writer.endRTCP(start)
  }
}

/// REMB: the receiver's estimate of the available bit rate (draft-alvestrand-rmcat-remb-03
/// section 2.2).
package struct MaximumBitrate: Hashable, Sendable {
  static let identifier: UInt32 = 0x5245_4d42  // "REMB"

  package var senderSSRC: UInt32
  /// The bit rate of all sources together, in bits per second; 18 significant bits on the wire.
  package var bitrate: UInt64
  package var ssrcs: [UInt32]

  package init(senderSSRC: UInt32, bitrate: UInt64, ssrcs: [UInt32]) {
    self.senderSSRC = senderSSRC
    self.bitrate = bitrate
    self.ssrcs = ssrcs
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    senderSSRC = try reader.uint32()
    try reader.skip(4)
    guard try reader.uint32() == MaximumBitrate.identifier else { throw .malformed }
    let count = Int(try reader.uint8())
    let coded = try reader.uint24()
    let exponent = UInt64(coded >> 18)
    let mantissa = UInt64(coded & 0x3ffff)
    bitrate = mantissa << exponent
    if bitrate >> exponent != mantissa { bitrate = .max }
    ssrcs = []
    for _ in 0..<count { ssrcs.append(try reader.uint32()) }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.payloadFeedback, format: .application)
    writer.uint32(senderSSRC)
    writer.uint32(0)
    writer.uint32(MaximumBitrate.identifier)
    let exponent = UInt32(max(0, 46 - bitrate.leadingZeroBitCount))
    writer.uint8(UInt8(min(255, ssrcs.count)))
    writer.uint24(exponent << 18 | UInt32(truncatingIfNeeded: bitrate >> UInt64(exponent)))
    for ssrc in ssrcs.prefix(255) { writer.uint32(ssrc) }
    writer.endRTCP(start)
  }
}

// MARK: - TransportFeedback

/// Arrival times of packets with transport-wide sequence numbers
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
package struct TransportFeedback: Hashable, Sendable {
  /// The arrival of one packet, relative to the message's base and reference time.
  package struct Arrival: Hashable, Sendable {
    /// The packet's number relative to the base.
    package var offset: UInt16
    /// The time since the reference time, in units of 250 µs.
    package var ticks: Int32

    package init(offset: UInt16, ticks: Int32) {
      self.offset = offset
      self.ticks = ticks
    }
  }

  /// The number of 250 µs ticks in one unit of the reference time, 64 ms.
  package static let ticksPerReference: Int64 = 256

  package var senderSSRC: UInt32
  package var mediaSSRC: UInt32
  /// Transport-wide sequence number of the first packet reported.
  package var base: UInt16
  /// The number of packets reported, received or not.
  package var count: UInt16
  /// Reference time in units of 64 ms: a signed 24-bit number that wraps around.
  package var reference: Int32
  /// The feedback packet count, which increases by one with each message and wraps around.
  package var number: UInt8
  /// The packets that arrived, in ascending order of offset.
  package var arrivals: [Arrival]

  package init(
    senderSSRC: UInt32, mediaSSRC: UInt32, base: UInt16, count: UInt16, reference: Int32,
    number: UInt8, arrivals: [Arrival]
  ) {
    self.senderSSRC = senderSSRC
    self.mediaSSRC = mediaSSRC
    self.base = base
    self.count = count
    self.reference = reference
    self.number = number
    self.arrivals = arrivals
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    senderSSRC = try reader.uint32()
    mediaSSRC = try reader.uint32()
    base = try reader.uint16()
    count = try reader.uint16()
    reference = Int32(bitPattern: try reader.uint24() << 8) >> 8
    number = try reader.uint8()
    arrivals = []
    // The deltas follow all chunks: a first pass finds where they begin, and a second pass reads
    // both.
    var deltas = ByteReader(reader.rest())
    var seen = 0
    while seen < Int(count) {
      let chunk = StatusChunk(rawValue: try deltas.uint16())
      guard chunk.count > 0 else { throw .malformed }
      seen += chunk.count
    }
    var index = 0
    var ticks: Int32 = 0
    while index < Int(count) {
      let chunk = StatusChunk(rawValue: try reader.uint16())
      let used = min(chunk.count, Int(count) - index)
      if chunk.isRunOfMissing {
        index += used
        continue
      }
      for position in 0..<used {
        switch chunk.status(at: position) {
        case .missing: break
        case .smallDelta: ticks &+= Int32(try deltas.uint8())
        case .largeDelta: ticks &+= Int32(Int16(bitPattern: try deltas.uint16()))
        default: throw .malformed
        }
        if chunk.status(at: position) != .missing {
          arrivals.append(Arrival(offset: UInt16(index + position), ticks: ticks))
        }
      }
      index += used
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.transportFeedback, format: .transportWide)
    writer.uint32(senderSSRC)
    writer.uint32(mediaSSRC)
    writer.uint16(base)
    writer.uint16(count)
    writer.uint24(UInt32(bitPattern: reference))
    writer.uint8(number)
    var statuses = [PacketStatus](repeating: .missing, count: Int(count))
    var deltas: [Int32] = []
    deltas.reserveCapacity(arrivals.count)
    var last: Int32 = 0
    for arrival in arrivals where arrival.offset < count {
      let delta = arrival.ticks &- last
      statuses[Int(arrival.offset)] = (0...255).contains(delta) ? .smallDelta : .largeDelta
      deltas.append(delta)
      last = arrival.ticks
    }
    StatusChunk.write(statuses, into: &writer)
    for delta in deltas {
      if (0...255).contains(delta) {
        writer.uint8(UInt8(delta))
      } else {
        writer.uint16(UInt16(bitPattern: Int16(clamping: delta)))
      }
    }
    writer.endRTCP(start)
  }
}

/// Whether a packet arrived, and how its arrival time is coded.
struct PacketStatus: RawRepresentable, Hashable {
  var rawValue: UInt8
  init(rawValue: UInt8) { self.rawValue = rawValue }

  static let missing = PacketStatus(rawValue: 0)
  static let smallDelta = PacketStatus(rawValue: 1)
  static let largeDelta = PacketStatus(rawValue: 2)
}

/// A run or a vector of packet statuses in 16 bits (section 3.1.2 to 3.1.4 of the draft).
struct StatusChunk {
  var rawValue: UInt16

  private var isVector: Bool { rawValue & 0x8000 != 0 }
  private var hasTwoBitSymbols: Bool { rawValue & 0x4000 != 0 }

  var count: Int { isVector ? hasTwoBitSymbols ? 7 : 14 : Int(rawValue & 0x1fff) }

  var isRunOfMissing: Bool { rawValue & 0xe000 == 0 }

  func status(at position: Int) -> PacketStatus {
    let symbol =
      if !isVector {
        rawValue >> 13 & 3
      } else if hasTwoBitSymbols {
        rawValue >> UInt16(12 - 2 * position) & 3
      } else {
        rawValue >> UInt16(13 - position) & 1
      }
    return PacketStatus(rawValue: UInt8(symbol))
  }

  /// Writes the statuses in chunks: each a run or a vector, whichever covers more statuses.
  static func write(_ statuses: [PacketStatus], into writer: inout ByteWriter) {
    var index = 0
    while index < statuses.count {
      let first = statuses[index]
      var run = 1
      while run < 0x1fff, index + run < statuses.count, statuses[index + run] == first { run += 1 }
      let window = statuses[index..<min(index + 14, statuses.count)]
      let narrow = window.firstIndex(of: .largeDelta).map { $0 - index } ?? window.count
      if run >= max(narrow, 7) || index + run == statuses.count {
        writer.uint16(UInt16(first.rawValue) << 13 | UInt16(run))
        index += run
        continue
      }
      // A vector chunk covers a fixed number of packets, so only the last chunk may be short.
      let isNarrow = narrow == 14 || index + narrow == statuses.count
      let used = isNarrow ? narrow : min(7, statuses.count - index)
      var chunk: UInt16 = isNarrow ? 0x8000 : 0xc000
      for position in 0..<used {
        let place = isNarrow ? 13 - position : 12 - 2 * position
        chunk |= UInt16(statuses[index + position].rawValue) << UInt16(place)
      }
      writer.uint16(chunk)
      index += used
    }
  }
}
