import Wire

/// Extended reports; only the blocks for receivers' round trips are parsed (RFC 3611).
package struct ExtendedReport: Hashable, Sendable {
  /// The answer to a receiver's reference time (RFC 3611 section 4.5).
  package struct DelayBlock: Hashable, Sendable {
    /// The receiver being answered.
    package var ssrc: UInt32
    /// The middle 32 bits of its NTP time.
    package var lastReport: UInt32
    /// The time since then in 1/65536 s.
    package var delaySinceLastReport: UInt32

    package init(ssrc: UInt32, lastReport: UInt32, delaySinceLastReport: UInt32) {
      self.ssrc = ssrc
      self.lastReport = lastReport
      self.delaySinceLastReport = delaySinceLastReport
    }
  }

  package var ssrc: UInt32
  /// The NTP time at which a receiver sent the report (RFC 3611 section 4.4).
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
