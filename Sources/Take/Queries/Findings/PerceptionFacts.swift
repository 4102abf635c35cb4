import Crypto
import Tape
import Wire

/// Facts for rules about perceived audio and video.
package struct PerceptionFacts: Sendable {
  /// An API call that changes what is sent or played.
  package struct Change: Sendable {
    package var at: Int64
    package var peer: Int64
    package var name: String
    package var track: Int64?
    /// For `setEnabled`: whether it is about received media.
    package var isInbound: Bool
    /// For `setEnabled` and `replaceSource`: whether there is media from now on.
    package var isOn: Bool
    /// For `setParameters` and `limitBitrate`: the lowest limit in bits per second.
    package var limit: Int64?
  }

  /// A period in which all of a track's frames were equal.
  package struct Still: Sendable {
    package var peer: Int64
    package var track: Int64
    package var direction: WireDirection
    package var from: Int64
    package var to: Int64
    package var pictures: Int64
    /// The luma of single-shade frames, 0 to 255; nil for others.
    package var shade: Int?
  }

  /// Captured frames between two pauses of a second or more.
  package struct Captured: Sendable {
    package var peer: Int64
    package var track: Int64
    package var isVideo: Bool
    package var from: Int64
    package var to: Int64
    package var count: Int64
    /// The longest time between two of them.
    package var longestGap: Int64
  }

  /// Consecutive concealed audio blocks.
  package struct Concealment: Sendable {
    package var peer: Int64
    package var track: Int64
    package var from: Int64
    package var to: Int64
  }

  /// A video frame whose packets took long to arrive.
  package struct SlowFrame: Sendable {
    /// The index in `CallFacts.streams`.
    package var stream: Int
    package var rtpTime: Int64
    package var from: Int64
    package var to: Int64
    package var bytes: Int64
    package var packets: Int64
  }

  /// A change of a track's codec.
  package struct CodecChange: Sendable {
    package var peer: Int64
    package var track: Int64
    package var direction: WireDirection
    package var kind: String
    package var at: Int64
    package var from: String
    package var to: String
  }

  /// A stream's packets that arrived noticeably later than following ones.
  package struct Displaced: Sendable {
    package var packets: Int64 = 0
    package var from: Int64
    package var to: Int64
    package var mostNanoseconds: Int64 = 0
  }

  package var changes: [Change] = []
  package var stills: [Still] = []
  package var captured: [Captured] = []
  package var concealments: [Concealment] = []
  package var slowFrames: [SlowFrame] = []
  package var codecChanges: [CodecChange] = []
  /// The times at which peers exchanged descriptions.
  package var negotiations: [(peer: Int64, at: Int64)] = []
  /// The remote peer's limit for sent video in bits per second, and the time from which it applies
  /// (`b=`).
  package var lines: [(peer: Int64, at: Int64, limit: Int64)] = []
  /// The bandwidth limits (`b=`) for received video in the peer's local descriptions.
  package var receiveLines: [(peer: Int64, at: Int64, limit: Int64)] = []
  /// Each source's CNAME (RFC 3550 section 6.5.1).
  package var names: [Int64: String] = [:]
  package var samples: [StatSample] = []

  /// The displaced packets of each stream, by its index in `CallFacts.streams`.
  package var displaced: [Int: Displaced] = [:]
  /// Each stream's most recent packets.
  private var latest: [[(sequence: Int64, at: Int64)]] = []
  /// The frame currently arriving on each stream.
  private var arriving: [SlowFrame] = []

  init() {}

  /// The minimum time that a slow frame's packets take to arrive, in nanoseconds.
  private static let leastSpread: Int64 = 150_000_000

  /// Receives an RTP packet in the common pass; `stream` is its index in `CallFacts.streams`.
  mutating func add(_ sight: PacketSight, _ stream: Int) {
    guard sight.direction == .inbound else { return }
    while arriving.count <= stream {
      latest.append([])
      arriving.append(
        SlowFrame(
          stream: arriving.count, rtpTime: -1, from: sight.at, to: sight.at, bytes: 0, packets: 0))
    }
    order(sight, stream)
    if arriving[stream].rtpTime == sight.rtpTime {
      arriving[stream].to = max(arriving[stream].to, sight.at)
      arriving[stream].bytes &+= sight.size
      arriving[stream].packets +|= 1
      return
    }
    let frame = arriving[stream]
    if frame.packets > 2, frame.to &- frame.from >= Self.leastSpread,
      slowFrames.count < CallFacts.most
    {
      slowFrames.append(frame)
    }
    arriving[stream] = SlowFrame(
      stream: stream, rtpTime: sight.rtpTime, from: sight.at, to: sight.at, bytes: sight.size,
      packets: 1)
  }

  /// Packets displaced by less than this do no harm.
  private static let leastDisplacement: Int64 = 10_000_000

  private mutating func order(_ sight: PacketSight, _ stream: Int) {
    if let last = latest[stream].last {
      let step = ((sight.sequence &- last.sequence &+ 32_768) & 65_535) &- 32_768
      if step <= 0 {
        guard step > -64, step < 0 else { return }
        // The first packet that should have followed it.
        guard
          let later = latest[stream].first(where: {
            ((($0.sequence &- sight.sequence) & 65_535) &- 1) < 64
          }), !latest[stream].contains(where: { $0.sequence == sight.sequence })
        else { return }
        let wait = sight.at &- later.at
        guard wait >= Self.leastDisplacement else { return }
        var found = displaced[stream] ?? Displaced(from: sight.at, to: sight.at)
        found.packets +|= 1
        found.to = sight.at
        found.mostNanoseconds = max(found.mostNanoseconds, wait)
        displaced[stream] = found
        return
      }
    }
    latest[stream].append((sight.sequence, sight.at))
    if latest[stream].count > 96 { latest[stream].removeFirst(48) }
  }

  /// Reads the other tables.
  mutating func read(_ connection: borrowing SQLiteConnection, _ facts: CallFacts)
    throws(SQLiteError)
  {
    (arriving, latest) = ([], [])
    try readChanges(connection)
    try readDescriptions(connection)
    try readStills(connection)
    try readCaptures(connection)
    try readConcealments(connection)
    try readCodecs(connection)
    try readNames(connection)
    try readSamples(connection)
  }

  // MARK: Look-up

  /// Returns whether a track was known to be disabled at some time between two instants.
  package func isOff(
    _ peer: Int64, _ track: Int64?, _ direction: WireDirection, from: Int64, to: Int64
  ) -> Bool {
    var isOn = true
    for change in changes
    where change.peer == peer && change.track == track && change.at <= to
      && change.isInbound == (direction == .inbound)
      && ["setEnabled", "replaceSource", "disabled", "mute", "enabled", "unmute"]
        .contains(change.name)
    {
      // Ignores a track that was enabled again within a quarter of a second.
      if !isOn, change.at &- 250_000_000 > from { return true }
      isOn = change.isOn
    }
    return !isOn
  }

  /// Returns whether the application or a negotiation changed what a peer sends around an instant.
  package func isMeant(_ peer: Int64, at: Int64, within nanoseconds: Int64 = 1_500_000_000) -> Bool
  {
    negotiations.contains { $0.peer == peer && abs($0.at &- at) <= nanoseconds }
      || changes.contains {
        $0.peer == peer && !$0.isInbound && abs($0.at &- at) <= nanoseconds
          && $0.name != "setContentHint" && $0.name != "noteCapture"
      }
  }

  /// Returns whether a transceiver sends a screen, according to its content hint.
  package func isScreen(_ peer: Int64, _ track: Int64) -> Bool {
    changes.contains { $0.peer == peer && $0.track == track && $0.name == "setContentHint" }
  }
}
