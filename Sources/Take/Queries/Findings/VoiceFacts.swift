import Tape
import Wire

/// The concealed blocks of received audio that hide a loss, and the long runs of digital silence in
/// any audio.
struct VoiceFacts: Sendable {
  enum Outcome: Sendable {
    case decoded, recovered, concealed
    /// The block was not decoded, for example because it was only forwarded.
    case untouched

    init(_ outcome: String) {
      self =
        switch outcome {
        case "concealed": .concealed
        case "recovered": .recovered
        case "not decoded", "passed on": .untouched
        default: .decoded
        }
    }
  }

  struct Block: Sendable {
    var row: Int64
    var at: Int64
    var rtpTime: Int64
    var source: Int64
    var outcome: Outcome
    /// The level as in RFC 6464, where 127 is silence; nil if unknown.
    var level: Int64?
    /// Whether all samples are zero.
    var isQuiet: Bool
  }

  /// Consecutive blocks of digital silence.
  struct Silence: Sendable {
    var place: Int
    var from: Int64
    var to: Int64
    var blocks: Int64
  }

  /// A concealed block that hides a loss.
  struct Hidden: Sendable {
    var place: Int
    var at: Int64
    /// The RTP timestamp of the last unconcealed block before this block; if there is none, that of
    /// the next unconcealed block.
    var rtpTime: Int64
  }

  fileprivate struct Arrival: Sendable {
    var rtpTime: UInt32
    var sequence: UInt16
    var row: Int64
  }

  /// The arrivals of an audio stream's packets.
  fileprivate struct Source: Sendable {
    var arrivals: [Arrival] = []
    var isSorted = true
    var last: Arrival?
    /// A packet's usual length in RTP timestamp units: the smallest step between two consecutive
    /// packets so far; nil until there are two such packets.
    var usual: Int64?
  }

  private struct Name: Hashable {
    var peer: Int64
    var source: Int64
  }

  /// A track's state while its blocks are being read.
  private struct Playing: Sendable {
    /// The last block that was not concealed, and the concealed blocks after it.
    var former: Block?
    var concealed: [(row: Int64, at: Int64)] = []
    var silence: Silence?
    var isOff: Bool?
    var switches = 0
  }

  private struct Switch: Sendable {
    var row: Int64
    var peer: Int64
    var track: Int64
    var isInbound: Bool
    var isMuted: Bool
  }

  /// The silences of ten seconds or more during which the track was not muted.
  private(set) var silences: [Silence] = []
  /// The number of blocks with sound, by track.
  private(set) var loud: [Int64] = []
  /// The concealed blocks that hide a loss; empty unless `keepsHidden` is set.
  private(set) var hidden: [Hidden] = []
  var keepsHidden = false

  private var playing: [Playing] = []
  private var switches: [Switch] = []
  private var wanted: Set<Name> = []
  /// The arrivals of packets by stream index; nil for streams whose audio was not played.
  private var sources: [Source?] = []
  private var places: [Name: Int] = [:]

  static let leastSilence: Int64 = 10_000_000_000

  /// Reads which streams are audio and when tracks were muted; call it before adding packets and
  /// blocks.
  mutating func prepare(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let formats = try connection.prepare(
      """
      SELECT DISTINCT peer, ssrc & 0xffffffff FROM format
      WHERE kind = 'audio' AND direction = 'in' LIMIT 10000
      """)
    while try formats.step() {
      wanted.insert(Name(peer: formats.integer(0), source: formats.integer(1)))
    }
    let rows = try connection.prepare(
      """
      SELECT row, peer, arguments ->> '$.transceiver', arguments ->> '$.isInbound',
        NOT (arguments ->> '$.isEnabled')
      FROM call_request WHERE name = 'setEnabled'
      UNION ALL
      SELECT row, peer, detail ->> '$.transceiver', detail ->> '$.direction' = 'in',
        type IN ('mute', 'disabled')
      FROM event WHERE type IN ('mute', 'disabled', 'unmute', 'enabled')
      ORDER BY 1 LIMIT \(CallFacts.most)
      """)
    while try rows.step() {
      switches.append(
        Switch(
          row: rows.integer(0), peer: rows.integer(1), track: rows.integer(2),
          isInbound: rows.integer(3) != 0, isMuted: rows.integer(4) != 0))
    }
  }

  /// Examines a stream that `prepare` may not have found.
  mutating func expect(peer: Int64, source: Int64) {
    wanted.insert(Name(peer: peer, source: source))
  }

  /// Receives an inbound packet; `stream` is its index.
  mutating func add(_ sight: PacketSight, _ stream: Int) {
    if stream >= sources.count {
      for _ in sources.count...stream { sources.append(nil) }
      let name = Name(peer: sight.peer, source: sight.ssrc)
      if wanted.contains(name) {
        sources[stream] = Source()
        places[name] = stream
      }
    }
    guard sources[stream] != nil else { return }
    let arrival = Arrival(
      rtpTime: UInt32(truncatingIfNeeded: sight.rtpTime),
      sequence: UInt16(truncatingIfNeeded: sight.sequence), row: sight.row)
    sources[stream]?.add(arrival)
  }

  /// Receives a track's next block.
  mutating func add(_ block: Block, _ place: Int, _ track: inout CallFacts.Track) {
    while playing.count <= place {
      playing.append(Playing())
      loud.append(0)
    }
    listen(block, place, track)
    guard track.direction == .inbound else { return }
    if block.outcome == .concealed {
      playing[place].concealed.append((block.row, block.at))
      return
    }
    judge(place, next: block, &track)
    playing[place].former = block
  }

  /// Completes a track after its last block: judges pending concealment and ends a silence.
  mutating func finish(_ place: Int, _ track: inout CallFacts.Track) {
    guard place < playing.count else { return }
    judge(place, next: nil, &track)
    endSilence(place)
    playing[place] = Playing()
  }

  // MARK: Concealment

  /// Distinguishes concealed blocks that hide a loss from the others.
  ///
  /// Other blocks are concealed because the sender paused (DTX) or stopped, or because playout
  /// slowed down (insertedSamplesForDeceleration).
  private mutating func judge(_ place: Int, next: Block?, _ track: inout CallFacts.Track) {
    let (former, concealed) = (playing[place].former, playing[place].concealed)
    guard !concealed.isEmpty else { return }
    playing[place].concealed.removeAll(keepingCapacity: true)
    let recovered: Int64 = next?.outcome == .recovered ? 1 : 0
    var missing: Int64?
    var lost: Int64?
    var came: Int64?
    if let next {
      let name = Name(peer: track.peer, source: next.source)
      let arrival = self.arrival(of: next, name)
      came = arrival?.row
      if let former {
        if let usual = places[name].flatMap({ sources[$0]?.usual }) {
          missing = ((next.rtpTime &- former.rtpTime) & 0xffff_ffff) / usual -| 1 -| recovered
        }
        let past = self.arrival(of: former, Name(peer: track.peer, source: former.source))
        if let arrival, let past {
          let step = Int64(Int16(bitPattern: arrival.sequence &- past.sequence))
          // If the sender restarted its numbering, the numbers do not show how many packets are
          // missing.
          let isAnew = step <= 0 || step >= 3000 && step / 2 > missing ?? step
          lost = isAnew ? 0 : step -| 1 -| recovered
        }
      }
    }
    for (index, block) in concealed.enumerated() {
      let number = Int64(index +| 1)
      var isSpared = next == nil
      if let missing, let lost, missing > lost, number > lost { isSpared = true }
      if let came, let missing, came < block.row, number > missing { isSpared = true }
      track.conceal(block.at, isSpared: isSpared)
      if keepsHidden, !isSpared, hidden.count < CallFacts.most {
        hidden.append(
          Hidden(place: place, at: block.at, rtpTime: former?.rtpTime ?? next?.rtpTime ?? 0))
      }
    }
  }

  /// Returns the arrival of the packet that contains a block; nil if the take lacks the packet.
  private mutating func arrival(of block: Block, _ name: Name) -> Arrival? {
    guard let place = places[name] else { return nil }
    return sources[place]?.arrival(at: UInt32(truncatingIfNeeded: block.rtpTime))
  }

  // MARK: Silence

  private mutating func listen(_ block: Block, _ place: Int, _ track: CallFacts.Track) {
    guard block.outcome != .concealed, block.level != nil || block.outcome != .untouched else {
      return
    }
    while playing[place].switches < switches.count,
      switches[playing[place].switches].row < block.row
    {
      let change = switches[playing[place].switches]
      playing[place].switches +|= 1
      guard change.peer == track.peer, change.track == track.track,
        change.isInbound == (track.direction == .inbound)
      else { continue }
      endSilence(place)
      playing[place].isOff = change.isMuted
    }
    guard block.level.map({ $0 >= 127 }) ?? block.isQuiet else {
      loud[place] +|= 1
      return endSilence(place)
    }
    guard playing[place].isOff != true else { return }
    if playing[place].silence == nil {
      playing[place].silence = Silence(place: place, from: block.at, to: block.at, blocks: 0)
    }
    playing[place].silence?.to = block.at
    playing[place].silence?.blocks +|= 1
  }

  private mutating func endSilence(_ place: Int) {
    guard let silence = playing[place].silence else { return }
    playing[place].silence = nil
    let length = silence.to &- silence.from
    // With fewer than five blocks per second, the sender is pausing (DTX).
    guard length >= Self.leastSilence, Double(silence.blocks) * 1e9 >= 5 * Double(length),
      silences.count < CallFacts.most
    else { return }
    silences.append(silence)
  }
}

extension VoiceFacts.Source {
  fileprivate mutating func add(_ arrival: VoiceFacts.Arrival) {
    if let last {
      let ticks = Int64(arrival.rtpTime &- last.rtpTime)
      if arrival.sequence &- last.sequence == 1, (1...0x7fff_ffff).contains(ticks) {
        usual = min(usual ?? ticks, ticks)
      }
      isSorted = isSorted && arrival.rtpTime >= last.rtpTime
    }
    last = arrival
    // Even ten hours of audio have only two million packets.
    if arrivals.count < 5_000_000 { arrivals.append(arrival) }
  }

  fileprivate mutating func arrival(at time: UInt32) -> VoiceFacts.Arrival? {
    if !isSorted {
      arrivals.sort { ($0.rtpTime, $0.row) < ($1.rtpTime, $1.row) }
      isSorted = true
    }
    var (low, high) = (0, arrivals.count)
    while low < high {
      let middle = (low +| high) / 2
      if arrivals[middle].rtpTime < time { low = middle +| 1 } else { high = middle }
    }
    return low < arrivals.count && arrivals[low].rtpTime == time ? arrivals[low] : nil
  }
}

extension CallFacts.Track {
  /// Counts a concealed block in its second; a spared block hides no loss.
  fileprivate mutating func conceal(_ at: Int64, isSpared: Bool) {
    let second = self.second(of: at)
    guard second < voices.count else { return }
    if isSpared {
      voices[second].spared &+= 1
    } else {
      if voices[second].firstConcealed == 0 { voices[second].firstConcealed = at }
      voices[second].lastConcealed = at
    }
  }
}

// MARK: - PlayoutJudge

/// Finds the concealed blocks that hide a loss in a running session, as `VoiceFacts` does in takes.
package struct PlayoutJudge: Sendable {
  /// A concealed block that hides a loss.
  package struct Concealed: Sendable {
    package var track: UInt32
    package var at: Int64
    /// The RTP timestamp of the last unconcealed block before this block; if there is none, that of
    /// the next unconcealed block.
    package var rtpTime: UInt32
  }

  private var facts = VoiceFacts()
  private var tracks: [CallFacts.Track] = []
  /// The stream indexes by SSRC.
  private var streams: [UInt32: Int] = [:]
  private var row: Int64 = 0

  /// The maximum number of streams, which no real session reaches.
  private static let most = 4096

  package init() { facts.keepsHidden = true }

  /// Receives the next packet, in order of arrival.
  package mutating func arrive(ssrc: UInt32, sequence: UInt16, rtpTime: UInt32) {
    guard let stream = streams[ssrc] ?? (streams.count < Self.most ? streams.count : nil) else {
      return
    }
    if streams[ssrc] == nil {
      streams[ssrc] = stream
      facts.expect(peer: 0, source: Int64(ssrc))
    }
    row +|= 1
    facts.add(
      PacketSight(
        row: row, at: 0, peer: 0, direction: .inbound, ssrc: Int64(ssrc), payloadType: 0,
        isMarked: false, sequence: Int64(sequence), rtpTime: Int64(rtpTime), size: 0), stream)
  }

  /// Receives the next block that was played.
  package mutating func play(
    track: UInt32, ssrc: UInt32, rtpTime: UInt32, outcome: String, at: Int64
  ) {
    let known = tracks.firstIndex { $0.track == Int64(track) }
    let place = known ?? tracks.count
    if known == nil {
      tracks.append(
        CallFacts.Track(
          peer: 0, track: Int64(track), direction: .inbound, kind: "audio", codec: ""))
    }
    row +|= 1
    facts.add(
      VoiceFacts.Block(
        row: row, at: at, rtpTime: Int64(rtpTime), source: Int64(ssrc),
        outcome: VoiceFacts.Outcome(outcome), level: nil, isQuiet: false), place, &tracks[place])
  }

  /// Completes all tracks, and returns the concealed blocks that hide a loss.
  package mutating func finish() -> [Concealed] {
    for place in tracks.indices { facts.finish(place, &tracks[place]) }
    return facts.hidden.map {
      Concealed(
        track: UInt32(truncatingIfNeeded: tracks[$0.place].track), at: $0.at,
        rtpTime: UInt32(truncatingIfNeeded: $0.rtpTime))
    }
  }
}
