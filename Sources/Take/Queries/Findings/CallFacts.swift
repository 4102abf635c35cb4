import Tape
import Wire

/// A take's facts for rules in Swift, collected in a few passes over its tables.
///
/// Packets are counted per stream and interval, so memory depends on the call's length, not on the
/// number of packets.
package struct CallFacts: Sendable {
  /// A peer in the take and its connection.
  package struct Peer: Sendable {
    package var number: Int64
    package var label: String
    /// Whether an observer saw this peer; false if the peer's own stack was recorded or reported.
    package var isObserved: Bool
    /// Whether the peer is another stack that reported about itself.
    package var isReported = false
    /// The number of the actor that the peer belongs to; the peer's own number if the take has no
    /// actors.
    package var actor: Int64
    /// The peer at the other end, if the take has it.
    package var other: Int64?
    /// For a leg of a relay, the observed peer that it talks with; nil for all other peers.
    package var end: Int64?
    /// The first and last time at which the peer was connected; nil if it never was.
    ///
    /// For a peer without states of its connection, such as an observed one, the times of its first
    /// and last RTP packet.
    package var live: ClosedRange<Int64>?
  }

  /// A state machine's transition.
  package struct State: Sendable {
    package var peer: Int64
    package var at: Int64
    package var machine: String
    package var from: String
    package var to: String
  }

  /// A period for which a capture may lack packets.
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

  /// What the packets of a stream carry.
  package enum Role: Sendable, Hashable {
    case media
    /// Retransmissions (RFC 4588).
    case repair
    /// Forward error correction of video as a separate stream (ULPFEC, FlexFEC).
    case redundancy
  }

  /// The packets in one interval of `intervalNanoseconds`.
  package struct Bucket: Sendable, Hashable {
    package var packets: Int32 = 0
    package var bytes: Int32 = 0
    /// The number of sequence numbers that this interval's packets skipped and that never arrived.
    package var lost: Int32 = 0
    /// The number of gaps in the sequence numbers that late packets did not fill.
    package var holes: Int32 = 0
    /// The number of packets that arrived after a packet with a higher number.
    package var reordered: Int32 = 0
    package var duplicates: Int32 = 0
    /// The number of packets whose spacing is comparable with their timestamps, and the sum of the
    /// differences in microseconds (RFC 3550 section 6.4.1).
    package var spaced: Int32 = 0
    package var jitterMicroseconds: Int32 = 0
    /// The largest delay of a packet relative to the stream's minimum so far, in microseconds.
    package var latenessMicroseconds: Int32 = 0
  }

  /// A period without packets in a stream.
  package struct Gap: Sendable, Hashable {
    package var from: Int64
    /// The time of the first packet after the gap; nil if none follows before the end of the take.
    package var to: Int64?
    /// The number of sequence numbers missing across the gap, and the advance of the stream's
    /// clock.
    package var missing: Int64
    package var ticks: Int64
    /// The payload type of the last packet before the gap.
    package var payloadType: Int64
  }

  /// A period without RTP packets in one direction.
  package struct Quiet: Sendable, Hashable {
    /// The time of the last packet before the period; `.min` if there is none.
    package var from: Int64
    /// The time of the first packet after the period; `.max` if there is none.
    package var to: Int64
  }

  /// All packets that a peer received, or all that it sent.
  package struct Way: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    /// RTP packets per interval from the start of the take.
    package var packets: [Int32] = []
    /// Pauses of two seconds or longer, including those before the first packet and after the last.
    package var quiet: [Quiet] = []
    /// The times of all datagrams without RTP, including datagrams with RTCP.
    package var others: [Int64] = []
    /// The times of the first and last RTP or RTCP packet; `first` is nil if there was none.
    package var first: Int64?
    package var last: Int64 = 0
    var lastMedia = Int64.min
  }

  /// A period for which sending or receiving a kind of media was negotiated.
  package struct Agreement: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    /// `audio` or `video`; empty for the period in which either was negotiated.
    package var kind: String
    package var from: Int64
    package var to: Int64
  }

  /// Consecutive packets that never arrived.
  package struct Burst: Sendable, Hashable {
    /// The arrival times of the packets before and after the burst.
    package var from: Int64
    package var to: Int64
    /// The extended sequence number of the first missing packet.
    package var first: Int64
    package var missing: Int64
  }

  /// An RTP stream at one end.
  package struct Stream: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var ssrc: Int64
    /// `audio` or `video`; empty if unknown.
    package var kind = ""
    package var role = Role.media
    /// For a repair stream, the SSRC that it repairs, if known.
    package var original: Int64?
    package var track: Int64?
    package var mid = ""
    package var codec = ""
    /// The clock rate in Hz; 0 if unknown.
    package var clockRate: Int64 = 0
    /// The packets of each payload type, in order of first appearance.
    package var payloadTypes: [(type: Int64, packets: Int64, first: Int64)] = []
    package var first: Int64
    package var last: Int64
    package var packets: Int64 = 0
    package var bytes: Int64 = 0
    package var expected: Int64 = 0
    package var lost: Int64 = 0
    package var reordered: Int64 = 0
    package var duplicates: Int64 = 0
    /// The packets of each interval, from the interval of `first` on.
    package var buckets: [Bucket] = []
    /// The first gaps of at least `CallFacts.leastGap`.
    package var gaps: [Gap] = []
    /// The first bursts of at least `CallFacts.leastBurst`; a packet that arrives late divides its
    /// burst.
    package var bursts: [Burst] = []
    /// The restarts of the sequence numbers: the time, and the numbers before and after.
    package var restarts: [(at: Int64, before: Int64, after: Int64)] = []
    /// For audio: the number of timestamp steps between consecutive packets, how many steps do not
    /// match a packet's duration, and when these steps occurred.
    package var steps: Int64 = 0
    package var unevenSteps: Int64 = 0
    package var unevenTime: ClosedRange<Int64>?
    /// What statistics say about a stream whose packets the take does not have; nil if it has them.
    package var counted: CountedStream?
    var tail = StreamTail()
  }

  /// A receiver's request: NACK, PLI or FIR.
  package struct Demand: Sendable {
    /// The feedback message (RFC 4585, RFC 5104).
    package enum Kind: Sendable { case nack, pli, fir }
    package var peer: Int64
    package var at: Int64
    /// `outbound` if this peer sends the request, about a stream that it receives.
    package var direction: WireDirection
    package var kind: Kind
    package var ssrc: Int64
    /// The number of packets that a NACK names.
    package var packets: Int64
  }

  /// A report block: a receiver's statistics about a stream.
  package struct Report: Sendable {
    package var peer: Int64
    package var at: Int64
    /// `inbound` if the remote peer reports on a stream that this peer sends.
    package var direction: WireDirection
    package var ssrc: Int64
    /// The share of packets lost since the previous report, from 0 to 1.
    package var fractionLost: Double
    package var lost: Int64
    package var highest: Int64
    /// The interarrival jitter in units of the stream's clock.
    package var jitter: Int64
    /// The middle 32 bits of the NTP time in the last sender report received (0 if none), and the
    /// delay since then in units of 1/65,536 s.
    package var lastSent: Int64 = 0
    package var sinceLastSent: Int64 = 0
  }

  /// An RTCP sender report's counters (RFC 3550 section 6.4.1).
  package struct SenderReport: Sendable {
    package var peer: Int64
    package var at: Int64
    /// `inbound` if the remote peer reports on a stream that it sends.
    package var direction: WireDirection
    package var ssrc: Int64
    package var packets: Int64
    package var octets: Int64
    package var rtpTime: Int64
    package var unixMicroseconds: Int64
  }

  /// An encoded or received video frame.
  package struct Picture: Sendable {
    package var row: Int64
    package var at: Int64
    package var rtpTime: Int64
    package var size: Int32
    package var width: Int32
    package var height: Int32
    package var quantiser: Int16
    package var isKey: Bool
    /// Whether the frame was sent or decoded, or received completely without a decoder; false if
    /// decoding failed.
    package var isGood: Bool
  }

  /// Counts of the audio blocks in one second.
  package struct Voice: Sendable, Hashable {
    package var blocks: Int32 = 0
    package var concealed: Int32 = 0
    /// Blocks recovered from in-band redundancy.
    package var recovered: Int32 = 0
    /// Blocks concealed without a loss: the sender paused, or playout slowed down.
    package var spared: Int32 = 0
    /// The times of the first and last concealed blocks that `spared` does not count.
    package var firstConcealed: Int64 = 0
    package var lastConcealed: Int64 = 0
  }

  /// The audio level over 100 ms.
  package struct Level: Sendable {
    package var at: Int64
    /// The samples' root mean square, from 0 to 32,768.
    package var rms: Float
    package var peak: Int32
    /// The level in the audio level extension, in dBov (negative); nil if packets lack it.
    package var senderDecibels: Int32?
    package var isVoice: Bool
  }

  /// A transceiver's media in one direction.
  package struct Track: Sendable {
    package var peer: Int64
    package var track: Int64
    package var direction: WireDirection
    package var kind: String
    package var codec: String
    /// The SSRCs of the track's frames.
    package var sources: [Int64] = []
    /// Video frames in time order; empty for audio.
    package var pictures: [Picture] = []
    /// The times of the key frames for which `isGood` is set, in order.
    package var keys: [Int64] = []
    /// For audio, the blocks of each second from the start of the take.
    package var voices: [Voice] = []
    package var levels: [Level] = []
  }

  /// The length of a `Bucket`: 100 ms, or one second in takes of over an hour.
  package private(set) var intervalNanoseconds: Int64 = 100_000_000
  /// The end of the take, in nanoseconds.
  package private(set) var end: Int64 = 0
  package var peers: [Peer] = []
  package var states: [State] = []
  package var streams: [Stream] = []
  package var ways: [Way] = []
  package var agreements: [Agreement] = []
  package var demands: [Demand] = []
  package var reports: [Report] = []
  package var senderReports: [SenderReport] = []
  /// The times at which each peer received reports, with or without blocks, in order.
  package var reportTimes: [Int64: [Int64]] = [:]
  package var tracks: [Track] = []
  /// Descriptions of the gaps in coverage, one for each kind.
  package var unseen: [String] = []
  /// Periods for which the capture may lack packets.
  var gapsOfSight: [Unseen] = []
  /// Long gaps between displayed video frames.
  var pictureGaps: [PictureGap] = []
  /// Audio playout, by block.
  var voices = VoiceFacts()
  /// Further facts for rules about the network.
  package var network = NetworkFacts()
  /// Another stack's counters of its streams, in time order.
  var countedSamples: [CountedSample] = []
  /// Further facts for rules about audio and video.
  package var perception = PerceptionFacts()

  package static let leastGap: Int64 = 120_000_000
  package static let leastQuiet: Int64 = 2_000_000_000
  package static let leastBurst: Int64 = 3
  /// The maximum length of a list of facts, which bounds the memory for a crafted take with any
  /// number of rows.
  static let most = 100_000

  /// The peer of each pair of addresses, and pairs of peers with mirrored addresses.
  var addresses: [String: Int64] = [:]
  var mirrored: [(Int64, Int64)] = []
  /// The SQL condition that selects packet and frame rows.
  let part: String

  /// - Parameters:
  ///   - selection: limits the packets and frames.
  ///   - perceive: returns the facts about audio and video that are found without packets.
  init(
    _ connection: borrowing SQLiteConnection, _ selection: TakeSelection = TakeSelection(),
    perceive: (borrowing SQLiteConnection) throws(SQLiteError) -> PerceptionFacts = {
      connection throws(SQLiteError) in try PerceptionFacts(connection)
    }
  ) throws(SQLiteError) {
    part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    end = try connection.integer("SELECT \(TakeInfo.end)") ?? 0
    if end > 3_600_000_000_000 { intervalNanoseconds = 1_000_000_000 }
    try readPeers(connection)
    try readStates(connection)
    try voices.prepare(connection)
    try readPackets(connection)
    try readReported(connection)
    for place in ways.indices { ways[place].finish() }
    try nameStreams(connection)
    // The legs of a relay only forward; the media belongs to the two ends.
    let legs = Set(peers.filter { $0.end != nil }.map(\.number))
    streams.removeAll { legs.contains($0.peer) }
    try readFeedback(connection)
    try readMedia(connection)
    joinPeers()
    try joinBySignaling(connection)
    try readAgreements(connection)
    pictureGaps = try PictureGap.all(self, connection)
    try readUnseen(connection)
    try network.read(connection, self)
    for pair in network.describedPairs { join(pair.0, pair.1) }
    perception.join(try perceive(connection))
    try holdPictures(connection)
  }

  /// Returns a phrase that says whether a pause lasted to the end of the take, or only until the
  /// connection ended.
  func ending(at time: Int64) -> String {
    time >= end -| 500_000_000 ? ", to the end" : ", until its connection ended"
  }

  package func peer(_ number: Int64) -> Peer? { peers.first { $0.number == number } }

  /// Returns the report blocks that the receiver of a sent stream returned about it.
  func reports(on stream: Stream) -> [Report] {
    reports.filter {
      $0.peer == stream.peer && $0.direction == .inbound && $0.ssrc == stream.ssrc
    }
  }

  /// Returns a peer's stream; nil if the take has neither its packets nor its statistics.
  package func stream(_ peer: Int64, _ direction: WireDirection, _ ssrc: Int64) -> Stream? {
    streams.first { $0.ssrc == ssrc && $0.peer == peer && $0.direction == direction }
  }

  /// Returns the same stream at its other end, if the take has that end.
  package func otherEnd(of stream: Stream) -> Stream? {
    guard let other = peer(stream.peer)?.other else { return nil }
    return self.stream(other, stream.direction == .inbound ? .outbound : .inbound, stream.ssrc)
  }

  /// Returns the packets that a peer received or sent; nil if there were none.
  package func way(_ peer: Int64, _ direction: WireDirection) -> Way? {
    ways.first { $0.peer == peer && $0.direction == direction }
  }

  /// Returns a transceiver's media in a direction; nil if the take has none.
  package func track(_ peer: Int64, _ track: Int64, _ direction: WireDirection) -> Track? {
    tracks.first { $0.track == track && $0.peer == peer && $0.direction == direction }
  }

  /// Returns whether a received track's sender had disabled the track at some time in a period;
  /// false if the take lacks the sender.
  func isOffAtSource(_ track: Track, from: Int64, to: Int64) -> Bool {
    guard track.direction == .inbound, let other = peer(track.peer)?.other else { return false }
    return tracks.contains { sent in
      // Without frames, a track's SSRCs are unknown.
      let isSame =
        sent.sources.isEmpty || track.sources.isEmpty
        || sent.sources.contains { track.sources.contains($0) }
      return sent.peer == other && sent.direction == .outbound && sent.kind == track.kind && isSame
        && perception.isOff(other, sent.track, .outbound, from: from, to: to)
    }
  }

  /// Returns runs of intervals that satisfy a condition, as bounds in nanoseconds.
  ///
  /// Runs up to `tolerance` intervals apart are joined.
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

  /// Returns the added counts of all intervals of a stream that overlap a period.
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
