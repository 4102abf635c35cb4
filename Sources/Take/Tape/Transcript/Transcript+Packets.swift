import Peer
import Wire

// The rows of datagrams, with what can be told from an RTP header that SRTP leaves in the clear.
extension Transcript {
  mutating func append(
    _ datagram: borrowing Datagram, at time: Instant, isInbound: Bool, transportSequenceID: UInt8
  ) {
    let header = RTPFields(datagram.bytes.span.bytes, transportSequenceID: transportSequenceID)
    var row = PacketRow(at: time, path: path(of: datagram, isInbound: isInbound))
    row.ssrc = header.ssrc.map { WireNumber(number: $0) }
    if header.isRTP {
      row.markerAndType = MarkerAndPayloadType(byte: header.markerAndType)
      row.sequence = WireNumber(number: header.sequence)
      row.rtpTime = WireNumber(number: header.time)
    }
    row.transportSequence = header.transportSequence.map { WireNumber(number: $0) }
    row.bytes = datagram.bytes
    if isInbound { row.ecn = datagram.ecn?.rawValue }
    add(row)
  }
}

/// What the fixed header and the extensions of an RTP packet say, or the head of an RTCP compound.
struct RTPFields {
  var isRTP = false
  var markerAndType: UInt8 = 0
  var sequence: UInt16 = 0
  var time: UInt32 = 0
  var ssrc: UInt32?
  var transportSequence: UInt16?

  /// Reads a datagram of any kind; what is not RTP or RTCP (RFC 7983, RFC 5761) has no fields.
  init(_ bytes: RawSpan, transportSequenceID: UInt8) {
    var reader = ByteReader(bytes)
    do throws(ReadError) {
      var first = try reader.uint8()
      if (0x40...0x4f).contains(first) {
        // What a TURN server relays stands behind a channel's header (RFC 8656 section 12.4).
        try reader.skip(3)
        first = try reader.uint8()
      }
      guard (128..<192).contains(first) else { return }
      let second = try reader.uint8()
      if DatagramClass(first: first, second: second) == .rtcp {
        _ = try reader.uint16()
        ssrc = try reader.uint32()
        return
      }
      let sequence = try reader.uint16()
      let time = try reader.uint32()
      ssrc = try reader.uint32()
      self.sequence = sequence
      self.time = time
      markerAndType = second
      isRTP = true
      guard first & 0x10 != 0, transportSequenceID != 0 else { return }
      try reader.skip(4 * Int(first & 0x0f))
      try readExtensions(&reader, transportSequenceID)
    } catch {
      // Cut short: what was read so far is what there is.
      if !isRTP { ssrc = nil }
    }
  }

  /// Looks for one element among the header extensions (RFC 8285 sections 4.2 and 4.3).
  private mutating func readExtensions(_ reader: inout ByteReader, _ wanted: UInt8)
    throws(ReadError)
  {
    let profile = try reader.uint16()
    let end = reader.offset + 2 + 4 * Int(try reader.uint16())
    let isShort = profile == 0xbede
    guard isShort || profile & 0xfff0 == 0x1000 else { return }
    while reader.offset < end {
      let head = try reader.uint8()
      if head == 0 { continue }
      let id = isShort ? head >> 4 : head
      if isShort, id == 15 { return }
      let length = isShort ? Int(head & 0x0f) + 1 : Int(try reader.uint8())
      if id == wanted {
        if length >= 2 { transportSequence = try reader.uint16() }
        return
      }
      try reader.skip(length)
    }
  }
}
