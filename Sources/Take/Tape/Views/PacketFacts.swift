/// The RTP packets of a take in memory, indexed by stream, sequence number and RTP time.
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
  }

  /// The properties that the packets of a frame share.
  struct Time: Hashable {
    var end: Int32
    var ssrc: UInt32
    var rtpTime: UInt32
  }

  /// A retransmission and the packet that it repeats.
  struct Repair {
    var packet: Int
    var originalSSRC: UInt32?
    var originalSequence: UInt16?
  }

  private(set) var ends: [ViewFacts.End] = []
  private(set) var packets: [Packet] = []
  /// The payload types of media, by end.
  private(set) var mediaTypes: [Int32: Set<UInt8>] = [:]
  /// Linked lists of packets with equal RTP time: the first packet, and the next after each.
  private(set) var firstOfTime: [Time: Int32] = [:]
  private(set) var nextOfTime: [Int32] = []

  init(_ facts: ViewFacts) throws(SQLiteError) {
    let (ends, byPath) = try facts.ends()
    self.ends = ends
    let tracks = try facts.prepare(
      "SELECT DISTINCT peer, direction, payload_type FROM track WHERE codec <> 'rtx'")
    while try tracks.step() {
      let end = ViewFacts.End(peer: tracks.integer(0), direction: tracks.text(1) ?? "")
      guard let place = ends.firstIndex(of: end) else { continue }
      mediaTypes[Int32(place), default: []].insert(UInt8(truncatingIfNeeded: tracks.integer(2)))
    }
    let rows = try facts.prepare(
      """
      SELECT row, at_ns, path, size, ssrc, marker_type, sequence, rtp_time, transport_sequence
      FROM packet_store WHERE marker_type IS NOT NULL ORDER BY row
      """)
    while try rows.step() {
      let kind = UInt8(truncatingIfNeeded: rows.integer(5))
      for end in byPath[rows.integer(2)] ?? [] {
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
    linkTimes()
  }

  private mutating func linkTimes() {
    nextOfTime = [Int32](repeating: -1, count: packets.count)
    firstOfTime.reserveCapacity(packets.count / 2)
    // Backwards, so that each list is in row order.
    for place in packets.indices.reversed() {
      let packet = packets[place]
      let time = Time(end: packet.end, ssrc: packet.ssrc, rtpTime: packet.rtpTime)
      nextOfTime[place] = firstOfTime.updateValue(Int32(place), forKey: time) ?? -1
    }
  }

  func isMedia(_ packet: Packet) -> Bool {
    mediaTypes[packet.end]?.contains(packet.payloadType) ?? false
  }

  /// The indexes of the packets of a frame.
  func places(of time: Time) -> [Int] {
    var found: [Int] = []
    var place = firstOfTime[time] ?? -1
    while place >= 0 {
      found.append(Int(place))
      place = nextOfTime[Int(place)]
    }
    return found
  }
}
