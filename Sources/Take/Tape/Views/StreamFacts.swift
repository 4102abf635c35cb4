import RTP

/// Bit rate, loss, jitter and gaps of each RTP stream, in one pass over the packets.
///
/// The rules are those of the views `loss`, `jitter` and `gap`.
struct StreamFacts {
  /// The packets and bytes of one kind within a second.
  struct Weight {
    var packets: Int64 = 0
    var bytes: Int64 = 0
    var jitterMilliseconds = 0.0
    var jitterPackets: Int64 = 0
  }

  /// A packet's position in its stream, which starts a new part whenever the numbers restart.
  struct Place {
    var part: Int
    var place: Int64
    var row: Int64
    var at: Int64
    var sequence: Int64
  }

  /// A pause of a stream that may be a gap.
  struct Pause {
    var row: Int64
    var from: Int64
    var to: Int64
    var stepSize: Int64
  }

  /// What is known of one payload type of a stream.
  struct Share {
    var payloadType: Int64
    var packets: Int64 = 0
    var bytes: Int64 = 0
    var first = Int64.max
    var last = Int64.min
    var isRetransmission: Bool
    /// Ticks per second; 0 if unknown or not received.
    var clockRate: Int64
    /// The second of its last packet, and the weight of that so far.
    fileprivate var second: Int64?
    fileprivate var weight = Weight()
  }

  struct Stream {
    var end: Int
    var ssrc: Int64
    var shares: [Share] = []
    var places: [Place] = []
    var pauses: [Pause] = []
    var frames: Int64 = 0
    var first = Int64.max
    var last = Int64.min
    // The previous packet in row order.
    fileprivate var beganAt: Int64 = 0
    fileprivate var at: Int64 = 0
    fileprivate var sequence: Int64 = 0
    fileprivate var rtpTime: Int64 = 0
    fileprivate var part = 0
    fileprivate var place: Int64 = 0
    fileprivate var nearRestarts = NearRestarts()
    /// Where numbers may begin anew with the packet before: its step to that.
    fileprivate var doubtfulStep: Int?
    // The previous packet whose clock rate is known.
    fileprivate var clockedAt: Int64?
    fileprivate var clockedTime: Int64 = 0
  }

  /// The key of a weight: a second of one payload type of a stream.
  struct Moment: Hashable {
    var stream: Int
    var share: Int
    var second: Int64
  }

  /// Packets outside of streams: by end, protocol, sender and second.
  struct Other: Hashable {
    var end: Int
    var protocolName: String
    var ssrc: Int64?
    var second: Int64
  }

  private(set) var ends: [ViewFacts.End] = []
  private(set) var streams: [Stream] = []
  private(set) var weights: [Moment: Weight] = [:]
  private(set) var others: [Other: Weight] = [:]
  private var numbers = PlaceTable()
  /// The clock rates of each end's payload types that belong to tracks.
  private var tracks: [Int: [Int64: Int64]] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    let paths = try facts.ends()
    ends = paths.ends
    try readTracks(facts)
    let packets = try facts.prepare(
      """
      SELECT row, at_ns, path, size, ssrc, marker_type, sequence, rtp_time,
        CASE WHEN marker_type IS NULL AND ssrc IS NULL AND size > 0 THEN (
          SELECT hex(substr(wire.bytes, packet_store.position % 8152 + 1, 1)) FROM wire
          WHERE wire.piece = packet_store.position / 8152) END
      FROM packet_store ORDER BY row
      """)
    while try packets.step() {
      let places = paths[packets.integer(2)]
      guard !places.isEmpty else { continue }
      let (row, at, size) = (packets.integer(0), packets.integer(1), packets.integer(3))
      let ssrc = packets.isNull(4) ? nil : Optional(packets.integer(4) & 0xffff_ffff)
      guard !packets.isNull(5) else {
        let name =
          ssrc != nil ? "rtcp" : size == 0 ? "other" : Self.protocolName(packets.text(8) ?? "")
        for end in places {
          let key = Other(
            end: end, protocolName: name, ssrc: ssrc, second: at / 1_000_000_000)
          others[key, default: Weight()].packets += 1
          others[key, default: Weight()].bytes &+= size
        }
        continue
      }
      let packet = Packet(
        row: row, at: at, size: size, payloadType: packets.integer(5) & 127,
        sequence: packets.integer(6) & 0xffff, rtpTime: packets.integer(7) & 0xffff_ffff)
      for end in places { add(packet, ssrc: ssrc ?? 0, end: end) }
    }
    for stream in streams.indices {
      for share in streams[stream].shares.indices { storeWeight(ofStream: stream, share) }
    }
  }

  fileprivate struct Packet {
    var row: Int64
    var at: Int64
    var size: Int64
    var payloadType: Int64
    var sequence: Int64
    var rtpTime: Int64
  }

  /// The protocol by the first byte (RFC 7983).
  private static func protocolName(_ first: String) -> String {
    switch UInt8(first, radix: 16) ?? 255 {
    case ..<0x04: "stun"
    case 0x14..<0x40: "dtls"
    case 0x40..<0x50: "turn"
    default: "other"
    }
  }

  private mutating func readTracks(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      "SELECT peer, direction, payload_type, clock_rate FROM track ORDER BY row")
    while try rows.step() {
      let end = ViewFacts.End(peer: rows.integer(0), direction: rows.text(1) ?? "")
      guard let place = ends.firstIndex(of: end) else { continue }
      let (type, rate) = (rows.integer(2), rows.integer(3))
      // Inferred streams may be revised: the last known clock rate counts.
      tracks[place, default: [:]][type] = rate > 0 ? rate : tracks[place]?[type] ?? 0
    }
  }

  private mutating func add(_ packet: Packet, ssrc: Int64, end: Int) {
    let key = UInt64(truncatingIfNeeded: end) << 32 | UInt64(truncatingIfNeeded: ssrc)
    let number: Int
    if let known = numbers[key, 0] {
      number = known
      advance(number, packet)
    } else {
      number = streams.count
      numbers.update(key, 0, to: number)
      var stream = Stream(end: end, ssrc: ssrc)
      (stream.beganAt, stream.frames) = (packet.at, 1)
      _ = stream.nearRestarts.mayBegin(packet)
      streams.append(stream)
    }
    let share = share(of: packet.payloadType, in: number)
    let jitter = measureJitter(packet, number, share)
    let second = packet.at / 1_000_000_000
    if streams[number].shares[share].second != second {
      storeWeight(ofStream: number, share)
      let moment = Moment(stream: number, share: share, second: second)
      streams[number].shares[share].second = second
      streams[number].shares[share].weight = weights[moment] ?? Weight()
    }
    Self.update(&streams[number].shares[share].weight, packet, jitter)
    Self.update(&streams[number], share, packet)
  }

  /// Stores the weight of the present second of a share beside those of all others: a look-up for
  /// each packet would take most of the time.
  private mutating func storeWeight(ofStream stream: Int, _ share: Int) {
    let one = streams[stream].shares[share]
    guard let second = one.second else { return }
    weights[Moment(stream: stream, share: share, second: second)] = one.weight
  }

  // Static, because mutating through `self` would copy all its lists.
  private static func update(_ weight: inout Weight, _ packet: Packet, _ jitter: Double?) {
    weight.packets += 1
    weight.bytes &+= packet.size
    guard let jitter else { return }
    weight.jitterMilliseconds += jitter
    weight.jitterPackets += 1
  }

  private static func update(_ stream: inout Stream, _ share: Int, _ packet: Packet) {
    stream.shares[share].packets += 1
    stream.shares[share].bytes &+= packet.size
    stream.shares[share].first = min(stream.shares[share].first, packet.at)
    stream.shares[share].last = max(stream.shares[share].last, packet.at)
    stream.first = min(stream.first, packet.at)
    stream.last = max(stream.last, packet.at)
    (stream.at, stream.sequence, stream.rtpTime) = (packet.at, packet.sequence, packet.rtpTime)
    stream.places.append(
      Place(
        part: stream.part, place: stream.place, row: packet.row, at: packet.at,
        sequence: packet.sequence))
  }

  private mutating func share(of payloadType: Int64, in number: Int) -> Int {
    if let known = streams[number].shares.firstIndex(where: { $0.payloadType == payloadType }) {
      return known
    }
    let end = streams[number].end
    let rate = tracks[end]?[payloadType]
    streams[number].shares.append(
      Share(
        payloadType: payloadType, isRetransmission: rate == nil,
        clockRate: ends[end].direction == "in" ? rate ?? 0 : 0))
    return streams[number].shares.count - 1
  }

  /// Adds a packet to its stream: determines its position and whether the stream paused.
  private mutating func advance(_ number: Int, _ packet: Packet) {
    Self.findNearRestart(&streams[number], packet)
    // The numbers alone: with a copy of the lists, each that grows would be copied.
    let (at, sequence, rtpTime) = (
      streams[number].at, streams[number].sequence, streams[number].rtpTime
    )
    let stepSize = ((packet.sequence - sequence + 32_768) & 0xffff) - 32_768
    let ticks = ((packet.rtpTime - rtpTime + 0x8000_0000) & 0xffff_ffff) - 0x8000_0000
    let pause = packet.at - at
    if Self.begins(
      stepSize, ticks, pause: pause, lasted: at - streams[number].beganAt,
      packets: Double(streams[number].places.count))
    {
      streams[number].part += 1
      streams[number].place = 0
    } else {
      streams[number].place &+= stepSize
    }
    if ticks != 0 { streams[number].frames += 1 }
    if pause >= 200_000_000 {
      streams[number].pauses.append(
        Pause(row: packet.row, from: at, to: packet.at, stepSize: stepSize))
    }
  }

  /// Begins a part with the packet before where this one bears out that numbers began anew with it.
  private static func findNearRestart(_ stream: inout Stream, _ packet: Packet) {
    let mayBegin = stream.nearRestarts.mayBegin(packet)
    let step = Int(((packet.sequence - stream.sequence + 32_768) & 0xffff) - 32_768)
    if let former = stream.doubtfulStep, let last = stream.places.indices.last,
      NearRestarts.isBorneOut(step: former, next: step)
    {
      stream.part += 1
      stream.place = 0
      (stream.places[last].part, stream.places[last].place) = (stream.part, 0)
    }
    stream.doubtfulStep = mayBegin ? step : nil
  }

  /// Whether a jump of the sequence number means that the sender restarted its numbers, rather than
  /// that it went on unseen during the pause.
  private static func begins(
    _ stepSize: Int64, _ ticks: Int64, pause: Int64, lasted: Int64, packets: Double
  ) -> Bool {
    guard abs(stepSize) >= 3_000 || stepSize <= -100 && ticks > 0 else { return false }
    let spread = Double(stepSize) * Double(lasted)
    let usual = packets * Double(pause)
    return !(stepSize > 0 && spread >= usual / 2 && spread <= usual * 2)
  }

  private mutating func measureJitter(_ packet: Packet, _ number: Int, _ share: Int) -> Double? {
    let rate = streams[number].shares[share].clockRate
    guard rate > 0 else { return nil }
    defer {
      streams[number].clockedAt = packet.at
      streams[number].clockedTime = packet.rtpTime
    }
    guard let before = streams[number].clockedAt else { return nil }
    let ticks =
      ((packet.rtpTime - streams[number].clockedTime + 0x8000_0000) & 0xffff_ffff) - 0x8000_0000
    return abs(Double(packet.at - before) / 1e6 - Double(ticks) * 1e3 / Double(rate))
  }
}

extension NearRestarts {
  fileprivate mutating func mayBegin(_ packet: StreamFacts.Packet) -> Bool {
    mayBegin(
      UInt16(truncatingIfNeeded: packet.sequence), UInt32(truncatingIfNeeded: packet.rtpTime))
  }
}
