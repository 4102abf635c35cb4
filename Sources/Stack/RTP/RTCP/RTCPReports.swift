import Wire

/// A receiver's report on one source (RFC 3550 section 6.4.1).
package struct ReportBlock: Hashable, Sendable {
  package var ssrc: UInt32
  /// The fraction of packets lost since the last report, in 1/256.
  package var fractionLost: UInt8
  /// The total number of packets lost, negative after duplicates; 24 bits on the wire.
  package var cumulativeLost: Int32
  /// The highest sequence number received, extended by its cycles.
  package var highestSequence: UInt32
  /// Interarrival jitter in RTP timestamp units.
  package var jitter: UInt32
  /// The middle 32 bits of the last sender report's NTP time; 0 if there was none.
  package var lastSenderReport: UInt32
  /// The time since that sender report, in 1/65536 s.
  package var delaySinceLastSenderReport: UInt32

  package init(
    ssrc: UInt32, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32,
    jitter: UInt32, lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.cumulativeLost = cumulativeLost
    self.highestSequence = highestSequence
    self.jitter = jitter
    self.lastSenderReport = lastSenderReport
    self.delaySinceLastSenderReport = delaySinceLastSenderReport
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    ssrc = try reader.uint32()
    fractionLost = try reader.uint8()
    cumulativeLost = Int32(bitPattern: try reader.uint24() << 8) >> 8
    highestSequence = try reader.uint32()
    jitter = try reader.uint32()
    lastSenderReport = try reader.uint32()
    delaySinceLastSenderReport = try reader.uint32()
  }

  func write(into writer: inout ByteWriter) {
    writer.uint32(ssrc)
    writer.uint8(fractionLost)
    writer.uint24(UInt32(bitPattern: min(max(cumulativeLost, -0x80_0000), 0x7f_ffff)))
    writer.uint32(highestSequence)
    writer.uint32(jitter)
    writer.uint32(lastSenderReport)
    writer.uint32(delaySinceLastSenderReport)
  }
}

/// A sender's report on its own stream (RFC 3550 section 6.4.1).
package struct SenderReport: Hashable, Sendable {
  package var ssrc: UInt32
  /// The wall clock time in 64-bit NTP format.
  package var ntpTime: UInt64
  /// The instant of `ntpTime` as an RTP timestamp.
  package var rtpTime: UInt32
  package var packetCount: UInt32
  /// Payload bytes sent, without headers and padding.
  package var octetCount: UInt32
  package var blocks: [ReportBlock]

  package init(
    ssrc: UInt32, ntpTime: UInt64, rtpTime: UInt32, packetCount: UInt32, octetCount: UInt32,
    blocks: [ReportBlock] = []
  ) {
    self.ssrc = ssrc
    self.ntpTime = ntpTime
    self.rtpTime = rtpTime
    self.packetCount = packetCount
    self.octetCount = octetCount
    self.blocks = blocks
  }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    ssrc = try reader.uint32()
    ntpTime = try reader.uint64()
    rtpTime = try reader.uint32()
    packetCount = try reader.uint32()
    octetCount = try reader.uint32()
    blocks = []
    for _ in 0..<count { blocks.append(try ReportBlock(parsing: &reader)) }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.senderReport, count: min(31, blocks.count))
    writer.uint32(ssrc)
    writer.uint64(ntpTime)
    writer.uint32(rtpTime)
    writer.uint32(packetCount)
    writer.uint32(octetCount)
    for block in blocks.prefix(31) { block.write(into: &writer) }
    writer.endRTCP(start)
  }
}

/// The report of an endpoint that sends no media (RFC 3550 section 6.4.2).
package struct ReceiverReport: Hashable, Sendable {
  package var ssrc: UInt32
  package var blocks: [ReportBlock]

  package init(ssrc: UInt32, blocks: [ReportBlock] = []) {
    self.ssrc = ssrc
    self.blocks = blocks
  }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    ssrc = try reader.uint32()
    blocks = []
    for _ in 0..<count { blocks.append(try ReportBlock(parsing: &reader)) }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.receiverReport, count: min(31, blocks.count))
    writer.uint32(ssrc)
    for block in blocks.prefix(31) { block.write(into: &writer) }
    writer.endRTCP(start)
  }
}

// MARK: - ExtendedReport

/// Extended reports; only the blocks for the receiver's round trip are parsed (RFC 3611).
package struct ExtendedReport: Hashable, Sendable {
  /// The answer to a receiver's reference time (RFC 3611 section 4.5).
  package struct DelayBlock: Hashable, Sendable {
    /// The receiver being answered.
    package var ssrc: UInt32
    /// The middle 32 bits of that receiver's NTP time.
    package var lastReport: UInt32
    /// The time since that report was received, in 1/65536 s.
    package var delaySinceLastReport: UInt32

    package init(ssrc: UInt32, lastReport: UInt32, delaySinceLastReport: UInt32) {
      self.ssrc = ssrc
      self.lastReport = lastReport
      self.delaySinceLastReport = delaySinceLastReport
    }
  }

  package var ssrc: UInt32
  /// NTP time at which a receiver sent the report (RFC 3611 section 4.4); nil if the report has no
  /// such block.
  package var receiverReferenceTime: UInt64?
  package var delays: [DelayBlock]

  package init(ssrc: UInt32, receiverReferenceTime: UInt64? = nil, delays: [DelayBlock] = []) {
    self.ssrc = ssrc
    self.receiverReferenceTime = receiverReferenceTime
    self.delays = delays
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    ssrc = try reader.uint32()
    delays = []
    while reader.remaining >= 4 {
      let type = try reader.uint8()
      try reader.skip(1)
      let length = 4 * Int(try reader.uint16())
      var block = ByteReader(try reader.span(length))
      switch type {
      case 4: receiverReferenceTime = try block.uint64()
      case 5:
        while block.remaining >= 12 {
          delays.append(
            DelayBlock(
              ssrc: try block.uint32(), lastReport: try block.uint32(),
              delaySinceLastReport: try block.uint32()))
        }
      default: break
      }
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.extendedReport, count: 0)
    writer.uint32(ssrc)
    if let receiverReferenceTime {
      writer.uint32(0x0400_0002)
      writer.uint64(receiverReferenceTime)
    }
    if !delays.isEmpty {
      writer.uint16(0x0500)
      writer.uint16(UInt16(truncatingIfNeeded: 3 * delays.count))
      for delay in delays {
        writer.uint32(delay.ssrc)
        writer.uint32(delay.lastReport)
        writer.uint32(delay.delaySinceLastReport)
      }
    }
    writer.endRTCP(start)
  }
}
