import Tape

/// What rules in Swift look at: a take summed up in one pass over each of its tables.
///
/// Packets are counted by stream and interval, so that memory grows with the length of the call and
/// not with its packets.
package struct CallFacts: Sendable {
  /// A peer of the take, and what it is connected with.
  package struct Peer: Sendable {
    package var number: Int64
    package var label: String
    /// Whether it was only seen; else Retake was this end.
    package var isObserved: Bool
    /// Which machine it belongs to.
    package var actor: Int64
    /// The peer of the take that is its other side; nil where the take does not have it.
    package var other: Int64?
    /// When it was connected first and last; nil for never.
    ///
    /// Of one that was only seen, from its first packet of media to its last.
    package var live: ClosedRange<Int64>?
  }

  /// A transition of one of the state machines.
  package struct State: Sendable {
    package var peer: Int64
    package var at: Int64
    package var machine: String
    package var from: String
    package var to: String
  }

  /// What a stream carries.
  package enum Role: Sendable, Hashable {
    case media
    /// Retransmissions (RFC 4588).
    case repair
    /// Forward error correction, and comfort noise apart.
    case redundancy
  }

  /// One interval of packets, `intervalNanoseconds` long.
  package struct Bucket: Sendable, Hashable {
    package var packets: Int32 = 0
    package var bytes: Int32 = 0
    /// Missing before packets of this interval, less those that came later after all.
    package var lost: Int32 = 0
    /// Packets that came after one with a higher number.
    package var reordered: Int32 = 0
    package var duplicates: Int32 = 0
    /// How many packets had one before them to compare their spacing with, and the sum of what it
    /// differs from the spacing of their timestamps, in microseconds (RFC 3550 section 6.4.1).
    package var spaced: Int32 = 0
    package var jitterMicroseconds: Int32 = 0
    /// The latest packet's delay over the least one of the stream so far, in microseconds.
    package var latenessMicroseconds: Int32 = 0
  }

  /// A time in which no packet of a stream passed.
  package struct Gap: Sendable, Hashable {
    package var from: Int64
    /// nil: none until the end of the take.
    package var to: Int64?
    /// How many numbers are missing between the packets around it, and how far its clock went on.
    package var missing: Int64
    package var ticks: Int64
  }

  /// Packets that are missing in a row.
  package struct Burst: Sendable, Hashable {
    package var from: Int64
    package var to: Int64
    package var missing: Int64
  }

  /// An RTP stream as it passed the recorder.
  package struct Stream: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var ssrc: Int64
    /// `audio`, `video`; empty where nothing tells.
    package var kind = ""
    package var role = Role.media
    /// Of a repair stream: the stream that it repairs, where that is known.
    package var original: Int64?
    package var track: Int64?
    package var mid = ""
    package var codec = ""
    /// Hz; 0 where nothing tells.
    package var clockRate: Int64 = 0
    /// Packets of each payload type, in the order in which they came up.
    package var payloadTypes: [(type: Int64, packets: Int64, first: Int64)] = []
    package var first: Int64
    package var last: Int64
    package var packets: Int64 = 0
    package var bytes: Int64 = 0
    package var expected: Int64 = 0
    package var lost: Int64 = 0
    package var reordered: Int64 = 0
    package var duplicates: Int64 = 0
    /// From the interval of `first` on.
    package var buckets: [Bucket] = []
    /// Of `CallFacts.leastGap` and more, the first of them.
    package var gaps: [Gap] = []
    /// Of `CallFacts.leastBurst` and more, the first of them; a packet that came late ends none.
    package var bursts: [Burst] = []
    /// When the numbers began anew.
    package var restarts: [Int64] = []
    var tail = StreamTail()
  }

  /// A demand of a receiver: NACK, PLI or FIR.
  package struct Demand: Sendable {
    package enum Kind: Sendable { case nack, pli, fir }
    package var peer: Int64
    package var at: Int64
    /// `outbound`: this peer asks for what it receives.
    package var direction: WireDirection
    package var kind: Kind
    package var ssrc: Int64
    /// How many packets a NACK names.
    package var packets: Int64
  }

  /// A report block: what a receiver says of a stream.
  package struct Report: Sendable {
    package var peer: Int64
    package var at: Int64
    /// `inbound`: the other side says it of what this peer sends.
    package var direction: WireDirection
    package var ssrc: Int64
    /// From 0 to 1, since the report before.
    package var fractionLost: Double
    package var lost: Int64
    package var highest: Int64
    /// In units of the stream's clock.
    package var jitter: Int64
  }

  /// A sender report.
  package struct SenderReport: Sendable {
    package var peer: Int64
    package var at: Int64
    /// `inbound`: the other side reports on what it sends.
    package var direction: WireDirection
    package var ssrc: Int64
    package var packets: Int64
    package var octets: Int64
    package var rtpTime: Int64
    package var unixMicroseconds: Int64
  }

  /// A video frame that was encoded or shown.
  package struct Picture: Sendable {
    package var at: Int64
    package var rtpTime: Int64
    package var size: Int32
    package var width: Int32
    package var height: Int32
    package var quantiser: Int16
    package var isKey: Bool
    /// Whether it was encoded, or shown; else it could not be decoded.
    package var isGood: Bool
  }

  /// Audio blocks of a second.
  package struct Voice: Sendable, Hashable {
    package var blocks: Int32 = 0
    package var concealed: Int32 = 0
    /// From redundancy in the band.
    package var recovered: Int32 = 0
  }

  /// A level, of 100 ms.
  package struct Level: Sendable {
    package var at: Int64
    /// The root mean square of the samples, from 0 to 32,768.
    package var rms: Float
    package var peak: Int32
    /// dBov as the packets tell it, negative; nil: they do not.
    package var senderDecibels: Int32?
    package var isVoice: Bool
  }

  /// The media of one transceiver in one direction.
  package struct Track: Sendable {
    package var peer: Int64
    package var track: Int64
    package var direction: WireDirection
    package var kind: String
    package var codec: String
    /// In the order of time.
    ///
    /// Of video alone.
    package var pictures: [Picture] = []
    /// By the second, from second 0 of the take on.
    ///
    /// Of audio alone.
    package var voices: [Voice] = []
    package var levels: [Level] = []
  }

  /// How long an interval of `Bucket` is: 100 ms, of takes over an hour a second.
  package private(set) var intervalNanoseconds: Int64 = 100_000_000
  /// When the take ends.
  package private(set) var end: Int64 = 0
  package var peers: [Peer] = []
  package var states: [State] = []
  package var streams: [Stream] = []
  package var demands: [Demand] = []
  package var reports: [Report] = []
  package var senderReports: [SenderReport] = []
  package var tracks: [Track] = []
  /// What could not be seen, each kind once.
  package var unseen: [String] = []
  /// What rules about the network look at besides.
  package var network = NetworkFacts()
  /// What rules about audio and video look at besides.
  package var perception = PerceptionFacts()

  package static let leastGap: Int64 = 500_000_000
  package static let leastBurst: Int64 = 3
  /// How many entries a list has at most.
  static let most = 100_000

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    end = try connection.integer("SELECT \(TakeInfo.end)") ?? 0
    if end > 3_600_000_000_000 { intervalNanoseconds = 1_000_000_000 }
    try readPeers(connection)
    try readStates(connection)
    try readPackets(connection)
    try nameStreams(connection)
    try readFeedback(connection)
    try readMedia(connection)
    joinPeers()
    try readUnseen(connection)
    try network.read(connection, self)
    try perception.read(connection, self)
  }

  /// A peer by its number.
  package func peer(_ number: Int64) -> Peer? { peers.first { $0.number == number } }

  /// A stream of a peer; nil for one of which no packet passed.
  package func stream(_ peer: Int64, _ direction: WireDirection, _ ssrc: Int64) -> Stream? {
    streams.first { $0.ssrc == ssrc && $0.peer == peer && $0.direction == direction }
  }

  /// The same stream at its other end, where the take has that.
  package func otherEnd(of stream: Stream) -> Stream? {
    guard let other = peer(stream.peer)?.other else { return nil }
    return self.stream(other, stream.direction == .inbound ? .outbound : .inbound, stream.ssrc)
  }

  /// The media of a transceiver.
  package func track(_ peer: Int64, _ track: Int64, _ direction: WireDirection) -> Track? {
    tracks.first { $0.track == track && $0.peer == peer && $0.direction == direction }
  }

  /// Runs of intervals of a stream for which something holds, with the share of `lost` and so on
  /// left to the caller: bounds in nanoseconds.
  ///
  /// Intervals up to `tolerance` apart are joined.
  package func runs(
    of stream: Stream, tolerance: Int = 0, where holds: (Bucket) -> Bool
  ) -> [ClosedRange<Int64>] {
    let origin = stream.first / intervalNanoseconds
    var runs: [ClosedRange<Int64>] = []
    var open: (from: Int, to: Int)?
    func bounds(_ run: (from: Int, to: Int)) -> ClosedRange<Int64> {
      let from = (origin + Int64(run.from)) * intervalNanoseconds
      return from...from + Int64(run.to - run.from + 1) * intervalNanoseconds
    }
    for place in stream.buckets.indices where holds(stream.buckets[place]) {
      if let run = open, place - run.to <= tolerance + 1 {
        open = (run.from, place)
      } else {
        if let open { runs.append(bounds(open)) }
        open = (place, place)
      }
    }
    if let open { runs.append(bounds(open)) }
    return runs
  }

  /// The intervals of a stream that touch a time, summed up.
  package func sum(of stream: Stream, from: Int64, to: Int64) -> Bucket {
    let origin = stream.first / intervalNanoseconds
    let first = max(0, from / intervalNanoseconds - origin)
    let last = min(Int64(stream.buckets.count) - 1, to / intervalNanoseconds - origin)
    var sum = Bucket()
    guard first <= last else { return sum }
    for place in Int(first)...Int(last) { sum.add(stream.buckets[place]) }
    return sum
  }
}

extension CallFacts.Bucket {
  mutating func add(_ other: Self) {
    packets &+= other.packets
    bytes &+= other.bytes
    lost &+= other.lost
    reordered &+= other.reordered
    duplicates &+= other.duplicates
    spaced &+= other.spaced
    jitterMicroseconds &+= other.jitterMicroseconds
    latenessMicroseconds = max(latenessMicroseconds, other.latenessMicroseconds)
  }
}
