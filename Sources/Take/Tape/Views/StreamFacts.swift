import RTP

/// Computes the bit rate, loss, jitter and gaps of each RTP stream in one pass over the packets.
///
/// It follows the rules of the views `loss`, `jitter` and `gap`.
struct StreamFacts {
  /// The packets and bytes of one payload type in a second, and the sum of their jitter.
  struct Weight {
    var packets: Int64 = 0
    var bytes: Int64 = 0
    var jitterMilliseconds = 0.0
    var jitterPackets: Int64 = 0
  }

  /// The position of a packet in its stream; the stream begins a new part when its sequence numbers
  /// restart.
  struct Place {
    var part: Int32
    /// The index of the packet in `PacketFacts.packets`.
    var packet: Int32
    var place: Int64
  }

  /// A time without packets on a stream, which may be a gap.
  struct Pause {
    var row: Int64
    var from: Int64
    var to: Int64
    var stepSize: Int64
  }

  /// The totals of a stream's packets with one payload type.
  struct Share {
    var payloadType: Int64
    var packets: Int64 = 0
    var bytes: Int64 = 0
    var first = Int64.max
    var last = Int64.min
    var isRetransmission: Bool
    /// The RTP clock rate in ticks per second; 0 if it is unknown or the stream was sent.
    var clockRate: Int64
    /// The second of the last packet, and the totals of that second so far; nil before the first
    /// packet.
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
  }

  /// Identifies the packets of a stream with one payload type in one second.
  struct Moment: Hashable {
    var stream: Int
    var share: Int
    var second: Int64
  }

  let packets: PacketFacts
  var ends: [ViewFacts.End] { packets.ends }
  private(set) var streams: [Stream] = []
  private(set) var weights: [Moment: Weight] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    packets = try facts.packets()
    let rates = try Self.clockRates(packets, facts)
    streams.reserveCapacity(packets.streams.count)
    for (place, stream) in packets.streams.enumerated() {
      let places = packets.places(ofStream: place)
      var reader = StreamReader(
        stream, isReceived: ends[stream.end].direction == "in", rates: rates[stream.end] ?? [:],
        count: places.count)
      for packet in places { reader.add(packets.packets[Int(packet)], packet) }
      reader.finish()
      streams.append(reader.stream)
      for (moment, weight) in reader.weights {
        weights[Moment(stream: place, share: moment.share, second: moment.second)] = weight
      }
    }
  }

  /// Returns the clock rates of the payload types of media in tracks, for each end.
  private static func clockRates(
    _ packets: PacketFacts, _ facts: ViewFacts
  ) throws(SQLiteError) -> [Int: [UInt8: Int64]] {
    var rates: [Int: [UInt8: Int64]] = [:]
    let rows = try facts.prepare(
      """
      SELECT peer, direction, payload_type, clock_rate FROM payload WHERE codec <> 'rtx'
      ORDER BY row
      """)
    while try rows.step() {
      let end = ViewFacts.End(peer: rows.integer(0), direction: rows.text(1) ?? "")
      guard let place = packets.paths.place(of: end), let type = UInt8(exactly: rows.integer(2))
      else { continue }
      let rate = rows.integer(3)
      // An observer may correct a track that it inferred; the last known clock rate counts.
      rates[place, default: [:]][type] = rate > 0 ? rate : rates[place]?[type] ?? 0
    }
    return rates
  }
}

// MARK: - StreamReader

/// Reads the packets of one stream in the order of their rows.
private struct StreamReader {
  /// Identifies the packets with one payload type in one second.
  struct Moment: Hashable {
    var share: Int
    var second: Int64
  }

  private(set) var stream: StreamFacts.Stream
  private(set) var weights: [Moment: StreamFacts.Weight] = [:]
  private let isReceived: Bool
  private let rates: [UInt8: Int64]
  // The time of the stream's first packet, and the values and position of the previous packet.
  private var beganAt: Int64 = 0
  private var at: Int64 = 0
  private var sequence: Int64 = 0
  private var rtpTime: Int64 = 0
  private var part: Int32 = 0
  private var place: Int64 = 0
  private var nearRestarts = NearRestarts()
  /// The difference between the sequence numbers of the previous packet and of the packet before
  /// it, if the numbers may have restarted at the previous packet; otherwise nil.
  private var doubtfulStep: Int?
  // The values of the previous packet whose clock rate is known.
  private var clockedAt: Int64?
  private var clockedTime: Int64 = 0

  init(
    _ source: PacketFacts.Stream, isReceived: Bool, rates: [UInt8: Int64], count: Int
  ) {
    stream = StreamFacts.Stream(end: source.end, ssrc: Int64(source.ssrc))
    stream.places.reserveCapacity(count)
    self.isReceived = isReceived
    self.rates = rates
  }

  mutating func add(_ packet: PacketFacts.Packet, _ number: Int32) {
    if stream.places.isEmpty {
      (beganAt, stream.frames) = (packet.at, 1)
      _ = nearRestarts.mayBegin(packet.sequence, packet.rtpTime)
    } else {
      advance(packet)
    }
    let share = share(of: packet.payloadType)
    let jitter = measureJitter(packet, stream.shares[share].clockRate)
    let second = packet.at / 1_000_000_000
    if stream.shares[share].second != second {
      storeWeight(share)
      stream.shares[share].second = second
      stream.shares[share].weight =
        weights[Moment(share: share, second: second)] ?? StreamFacts.Weight()
    }
    Self.count(packet, jitter, in: &stream.shares[share])
    stream.first = min(stream.first, packet.at)
    stream.last = max(stream.last, packet.at)
    (at, sequence, rtpTime) = (packet.at, Int64(packet.sequence), Int64(packet.rtpTime))
    stream.places.append(StreamFacts.Place(part: part, packet: number, place: place))
  }

  /// Stores the totals that are still open after the last packet.
  mutating func finish() { for share in stream.shares.indices { storeWeight(share) } }

  /// Stores a payload type's totals for its current second.
  ///
  /// This happens once per second, because a look-up for each packet would take most of the time.
  private mutating func storeWeight(_ share: Int) {
    guard let second = stream.shares[share].second else { return }
    weights[Moment(share: share, second: second)] = stream.shares[share].weight
  }

  private static func count(
    _ packet: PacketFacts.Packet, _ jitter: Double?, in share: inout StreamFacts.Share
  ) {
    share.packets += 1
    share.bytes &+= packet.size
    share.first = min(share.first, packet.at)
    share.last = max(share.last, packet.at)
    share.weight.packets += 1
    share.weight.bytes &+= packet.size
    guard let jitter else { return }
    share.weight.jitterMilliseconds += jitter
    share.weight.jitterPackets += 1
  }

  private mutating func share(of payloadType: UInt8) -> Int {
    let type = Int64(payloadType)
    if let known = stream.shares.firstIndex(where: { $0.payloadType == type }) { return known }
    let rate = rates[payloadType]
    stream.shares.append(
      StreamFacts.Share(
        payloadType: type, isRetransmission: rate == nil, clockRate: isReceived ? rate ?? 0 : 0))
    return stream.shares.count - 1
  }

  /// Computes the position of a packet, and records a pause before it.
  private mutating func advance(_ packet: PacketFacts.Packet) {
    findNearRestart(packet)
    let stepSize = Int64(Int16(truncatingIfNeeded: Int64(packet.sequence) - sequence))
    let ticks = Int64(Int32(truncatingIfNeeded: Int64(packet.rtpTime) - rtpTime))
    let pause = packet.at - at
    if Self.begins(
      stepSize, ticks, pause: pause, lasted: at - beganAt, packets: Double(stream.places.count))
    {
      part &+= 1
      place = 0
    } else {
      place &+= stepSize
    }
    if ticks != 0 { stream.frames += 1 }
    if pause >= 200_000_000 {
      stream.pauses.append(
        StreamFacts.Pause(row: packet.row, from: at, to: packet.at, stepSize: stepSize))
    }
  }

  /// Moves the previous packet to a new part if this packet shows that the numbers restarted there.
  private mutating func findNearRestart(_ packet: PacketFacts.Packet) {
    let mayBegin = nearRestarts.mayBegin(packet.sequence, packet.rtpTime)
    let step = Int(Int16(truncatingIfNeeded: Int64(packet.sequence) - sequence))
    if let former = doubtfulStep, let last = stream.places.indices.last,
      NearRestarts.isBorneOut(step: former, next: step)
    {
      part &+= 1
      place = 0
      (stream.places[last].part, stream.places[last].place) = (part, 0)
    }
    doubtfulStep = mayBegin ? step : nil
  }

  /// Returns whether a jump in the sequence numbers is a restart.
  ///
  /// A jump is not a restart if the sender may have sent that many unseen packets during the pause.
  private static func begins(
    _ stepSize: Int64, _ ticks: Int64, pause: Int64, lasted: Int64, packets: Double
  ) -> Bool {
    guard abs(stepSize) >= 3_000 || stepSize <= -100 && ticks > 0 else { return false }
    let spread = Double(stepSize) * Double(lasted)
    let usual = packets * Double(pause)
    return !(stepSize > 0 && spread >= usual / 2 && spread <= usual * 2)
  }

  private mutating func measureJitter(_ packet: PacketFacts.Packet, _ rate: Int64) -> Double? {
    guard rate > 0 else { return nil }
    defer { (clockedAt, clockedTime) = (packet.at, Int64(packet.rtpTime)) }
    guard let before = clockedAt else { return nil }
    let ticks = Int64(Int32(truncatingIfNeeded: Int64(packet.rtpTime) - clockedTime))
    return abs(Double(packet.at - before) / 1e6 - Double(ticks) * 1e3 / Double(rate))
  }
}
