import Wire

/// A request for lost packets (RFC 4585 section 6.2.1).
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

/// A PLI: a frame cannot be decoded (RFC 4585 section 6.3.1).
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
  /// A source and the request's sequence number; the same number is a repetition.
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
    try reader.skip(4)  // The header's media SSRC is unused; the sources are in the entries.
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

/// REMB: the bit rate that a receiver estimates (draft-alvestrand-rmcat-remb-03 section 2.2).
package struct MaximumBitrate: Hashable, Sendable {
  static let identifier: UInt32 = 0x5245_4d42  // "REMB"

  package var senderSSRC: UInt32
  /// Bits per second for all sources together; the wire format keeps 18 significant bits.
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
