import Tape
import Wire

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
    /// Whether another stack reported it about itself.
    package var isReported = false
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

  /// A time in which a capture lacks what may have passed.
  struct Unseen: Sendable {
    var peer: Int64?
    var from: Int64
    var to: Int64
    var text: String

    func weakens(_ detection: Detection) -> Bool {
      peer ?? detection.peer == detection.peer && from <= detection.toNanoseconds
        && to >= detection.fromNanoseconds
    }
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
    /// In how many places of the numbers they are missing.
    package var holes: Int32 = 0
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
    /// Of the packet before it.
    package var payloadType: Int64
  }

  /// A time in which no packet of RTP passed one way.
  package struct Quiet: Sendable, Hashable {
    /// The smallest number: none passed before.
    package var from: Int64
    /// The largest number: none passed after.
    package var to: Int64
  }

  /// Everything that a peer received, or sent.
  package struct Way: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    /// Packets of RTP in each interval of the take, from its beginning on.
    package var packets: [Int32] = []
    /// Of two seconds and more, those before the first packet and after the last one included.
    package var quiet: [Quiet] = []
    /// When datagrams passed that are no RTP, in order; those of RTCP among them.
    package var others: [Int64] = []
    /// The first and the last packet of RTP or RTCP.
    package var first: Int64?
    package var last: Int64 = 0
    var lastMedia = Int64.min
  }

  /// A time in which media of a kind was to be sent or received by what was agreed on.
  package struct Agreement: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    /// `audio`, `video`; empty where any of them was.
    package var kind: String
    package var from: Int64
    package var to: Int64
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
    /// `audio`, `video`; empty where unknown.
    package var kind = ""
    package var role = Role.media
    /// Of a repair stream: the stream that it repairs, where that is known.
    package var original: Int64?
    package var track: Int64?
    package var mid = ""
    package var codec = ""
    /// Hz; 0 where unknown.
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
    /// When the numbers began anew, and the numbers before and after.
    package var restarts: [(at: Int64, before: Int64, after: Int64)] = []
    /// How many steps between timestamps of packets in a row there were, how many of them are no
    /// lengths of packets, and when; of audio alone.
    package var steps: Int64 = 0
    package var unevenSteps: Int64 = 0
    package var unevenTime: ClosedRange<Int64>?
    /// Of a stream of which there are statistics and no packets.
    package var counted: CountedStream?
    var tail = StreamTail()
  }

  /// A demand of a receiver: NACK, PLI or FIR.
  package struct Demand: Sendable {
    /// Which feedback message it is (RFC 4585, RFC 5104).
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
    /// The middle of the NTP time of the last sender report that it got, 0 for none, and how long
    /// ago that was, in units of 1/65,536 s.
    package var lastSent: Int64 = 0
    package var sinceLastSent: Int64 = 0
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
    package var row: Int64
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
    /// Concealed ones that hide no loss: its sender paused, or the playout slowed down.
    package var spared: Int32 = 0
    /// When the first and the last one that was not spared was played.
    package var firstConcealed: Int64 = 0
    package var lastConcealed: Int64 = 0
  }

  /// A level, of 100 ms.
  package struct Level: Sendable {
    package var at: Int64
    /// The root mean square of the samples, from 0 to 32,768.
    package var rms: Float
    package var peak: Int32
    /// dBov from the audio level extension, negative; nil where packets have none.
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
    /// The SSRCs of its frames.
    package var sources: [Int64] = []
    /// In the order of time, of video alone.
    package var pictures: [Picture] = []
    /// When its key frames were encoded or shown, in order.
    package var keys: [Int64] = []
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
  package var ways: [Way] = []
  package var agreements: [Agreement] = []
  package var demands: [Demand] = []
  package var reports: [Report] = []
  package var senderReports: [SenderReport] = []
  /// When reports came to each peer, with blocks or without, in order.
  package var reportTimes: [Int64: [Int64]] = [:]
  package var tracks: [Track] = []
  /// What could not be seen, each kind once.
  package var unseen: [String] = []
  /// Times in which packets passed that the capture does not have.
  var gapsOfSight: [Unseen] = []
  /// Long times between video frames that were shown.
  var pictureGaps: [PictureGap] = []
  /// What was played of audio, block by block.
  var voices = VoiceFacts()
  /// What rules about the network look at besides.
  package var network = NetworkFacts()
  /// Counters of streams that another stack reported, in the order of time.
  var countedSamples: [CountedSample] = []
  /// What rules about audio and video look at besides.
  package var perception = PerceptionFacts()

  package static let leastGap: Int64 = 120_000_000
  package static let leastQuiet: Int64 = 2_000_000_000
  package static let leastBurst: Int64 = 3
  /// How many entries a list has at most.
  static let most = 100_000

  /// Whose pair of addresses it is, and peers that have the same ones the other way round.
  var addresses: [String: Int64] = [:]
  var mirrored: [(Int64, Int64)] = []
  /// Which rows of packets and frames are looked at, as SQL.
  let part: String

  /// - Parameter selection: the part of the take whose packets and frames are looked at.
  init(_ connection: borrowing SQLiteConnection, _ selection: TakeSelection = TakeSelection())
    throws(SQLiteError)
  {
    part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    end = try connection.integer("SELECT \(TakeInfo.end)") ?? 0
    if end > 3_600_000_000_000 { intervalNanoseconds = 1_000_000_000 }
    try readPeers(connection)
    try readStates(connection)
    try voices.prepare(connection)
    try readPackets(connection)
    try readReported(connection)
    try nameStreams(connection)
    try readFeedback(connection)
    try readMedia(connection)
    joinPeers()
    try joinBySignaling(connection)
    try readAgreements(connection)
    pictureGaps = try PictureGap.all(self, connection)
    try readUnseen(connection)
    try network.read(connection, self)
    for pair in network.describedPairs { join(pair.0, pair.1) }
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

  /// What a peer received, or sent, in all.
  package func way(_ peer: Int64, _ direction: WireDirection) -> Way? {
    ways.first { $0.peer == peer && $0.direction == direction }
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
      let from = (origin +| Int64(run.from)) *| intervalNanoseconds
      return from...from +| Int64(run.to -| run.from +| 1) *| intervalNanoseconds
    }
    for place in stream.buckets.indices where holds(stream.buckets[place]) {
      if let run = open, place -| run.to <= tolerance +| 1 {
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
    let first = max(0, from / intervalNanoseconds -| origin)
    let last = min(Int64(stream.buckets.count) -| 1, to / intervalNanoseconds -| origin)
    var sum = Bucket()
    guard first <= last else { return sum }
    for place in Int(first)...Int(last) { sum.add(stream.buckets[place]) }
    return sum
  }
}
