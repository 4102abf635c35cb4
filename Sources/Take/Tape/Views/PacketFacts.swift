/// The RTP packets of a take in memory.
struct PacketFacts {
  struct Packet {
    var row: Int64
    var at: Int64
    var end: Int32
    var ssrc: UInt32
    var rtpTime: UInt32
    var sequence: UInt16
    var payloadType: UInt8
    var marker: UInt8
    var size: Int64
    /// 65,536 or more means none.
    var transportSequence: UInt32

    var direction: Int { Int(end) }
    /// Its stream, for tables.
    var stream: UInt64 { PacketFacts.stream(end, ssrc) }
  }

  /// A retransmission and the packet that it repeats.
  struct Repair {
    var packet: Int
    var originalSSRC: UInt32?
    var originalSequence: UInt16?
  }

  private(set) var ends: [ViewFacts.End] = []
  private(set) var packets: [Packet] = []
  /// Whether each of the 128 payload types of an end is of media.
  private var mediaTypes: [Bool]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    let paths = try facts.ends()
    ends = paths.ends
    mediaTypes = [Bool](repeating: false, count: ends.count * 128)
    let tracks = try facts.prepare(
      "SELECT DISTINCT peer, direction, payload_type FROM track WHERE codec <> 'rtx'")
    while try tracks.step() {
      let end = ViewFacts.End(peer: tracks.integer(0), direction: tracks.text(1) ?? "")
      guard let place = ends.firstIndex(of: end) else { continue }
      let type = UInt8(truncatingIfNeeded: tracks.integer(2))
      if type < 128 { mediaTypes[place * 128 + Int(type)] = true }
    }
    let rows = try facts.prepare(
      """
      SELECT row, at_ns, path, size, ssrc, marker_type, sequence, rtp_time, transport_sequence
      FROM packet_store WHERE marker_type IS NOT NULL ORDER BY row
      """)
    while try rows.step() {
      let kind = UInt8(truncatingIfNeeded: rows.integer(5))
      for end in paths[rows.integer(2)] {
        packets.append(
          Packet(
            row: rows.integer(0), at: rows.integer(1), end: Int32(end),
            ssrc: UInt32(truncatingIfNeeded: rows.integer(4)),
            rtpTime: UInt32(truncatingIfNeeded: rows.integer(7)),
            sequence: UInt16(truncatingIfNeeded: rows.integer(6)), payloadType: kind & 127,
            marker: kind >> 7, size: rows.integer(3),
            transportSequence: rows.isNull(8)
              ? 1 << 16 : UInt32(UInt16(truncatingIfNeeded: rows.integer(8)))))
      }
    }
  }

  /// A stream of an end, for tables.
  static func stream(_ end: Int32, _ ssrc: UInt32) -> UInt64 {
    UInt64(UInt32(truncatingIfNeeded: end)) << 32 | UInt64(ssrc)
  }

  func isMedia(_ packet: Packet) -> Bool {
    mediaTypes[packet.direction * 128 + Int(packet.payloadType)]
  }
}

/// The RTP packets of a take by their streams and RTP times.
struct PacketTimes {
  private let packets: PacketFacts
  /// The packets of each RTP time: the first, and from each the next.
  private var first: PlaceTable
  private var next: [Int32]

  init(_ packets: PacketFacts) {
    self.packets = packets
    next = [Int32](repeating: -1, count: packets.packets.count)
    first = PlaceTable(capacity: packets.packets.count / 2)
    // From the last to the first, so that the chain is in the order of the rows.
    for place in packets.packets.indices.reversed() {
      let packet = packets.packets[place]
      let later = first.update(packet.stream, UInt64(packet.rtpTime), to: place)
      next[place] = Int32(later ?? -1)
    }
  }

  /// Goes through the packets of a stream that have an RTP time.
  func forEach(
    ofStream stream: UInt64, rtpTime: UInt32, _ body: (PacketFacts.Packet) -> Void
  ) {
    var place = first[stream, UInt64(rtpTime)] ?? -1
    while place >= 0 {
      body(packets.packets[place])
      place = Int(next[place])
    }
  }
}
