import Crypto
import Tape
import Wire

/// Facts for rules about what participants see and hear.
package struct PerceptionFacts: Sendable {
  /// An API call that changes what is sent or played, or an event about a muted track.
  package struct Change: Sendable {
    package var at: Int64
    package var peer: Int64
    package var name: String
    package var track: Int64?
    /// For `setEnabled` and events: whether the change concerns received media.
    package var isInbound: Bool
    /// For `setEnabled`, `replaceSource` and events: whether the track has media afterwards.
    package var isOn: Bool
    /// For `setParameters` and `limitBitrate`: the lowest limit in bits per second; nil for no
    /// limit.
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
    /// The luma of frames with a single dark shade, 0 to 24; nil for other frames.
    package var shade: Int?
  }

  /// A run of captured frames without a pause of a second or more.
  package struct Captured: Sendable {
    package var peer: Int64
    package var track: Int64
    package var isVideo: Bool
    package var from: Int64
    package var to: Int64
    package var count: Int64
    /// The longest time between two consecutive frames.
    package var longestGap: Int64
  }

  /// A run of concealed audio blocks.
  package struct Concealment: Sendable {
    package var peer: Int64
    package var track: Int64
    package var from: Int64
    package var to: Int64
  }

  /// A video frame whose packets took 150 ms or more to arrive.
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

  /// A stream's packets that arrived 10 ms or more after a packet with a higher sequence number.
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
  /// The times at which peers set or exchanged descriptions.
  package var negotiations: [(peer: Int64, at: Int64)] = []
  /// The limits for sent video in the remote description (`b=`), in bits per second, and when each
  /// limit began to apply.
  package var lines: [(peer: Int64, at: Int64, limit: Int64)] = []
  /// The limits for received video that the local description states (`b=`).
  package var receiveLines: [(peer: Int64, at: Int64, limit: Int64)] = []
  /// The CNAMEs by SSRC (RFC 3550 section 6.5.1).
  package var names: [Int64: String] = [:]
  package var samples: [StatSample] = []

  /// The displaced packets of each stream, by its index in `CallFacts.streams`.
  package var displaced: [Int: Displaced] = [:]
  /// The sequence numbers and arrival times of each stream's last 48 to 96 packets.
  private var latest: [[(sequence: Int64, at: Int64)]] = []
  /// The frame that is arriving on each stream.
  private var arriving: [SlowFrame] = []

  init() {}

  /// The minimum time from a slow frame's first packet to its last, in nanoseconds.
  private static let leastSpread: Int64 = 150_000_000

  /// Receives a packet of the common pass over all packets.
  ///
  /// - Parameter stream: the stream's index in `CallFacts.streams`.
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

  /// The minimum time by which a displaced packet is late, in nanoseconds; shorter delays do not
  /// affect playout.
  private static let leastDisplacement: Int64 = 10_000_000

  private mutating func order(_ sight: PacketSight, _ stream: Int) {
    if let last = latest[stream].last {
      let step = ((sight.sequence &- last.sequence &+ 32_768) & 65_535) &- 32_768
      if step <= 0 {
        guard step > -64, step < 0 else { return }
        // Finds the packet that should have followed: the first to arrive whose sequence number is
        // up to 64 higher.
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

  /// Reads facts that do not come from RTP packets, such as descriptions, captured frames,
  /// concealment and statistics.
  ///
  /// These facts do not depend on other facts of the call.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try readChanges(connection)
    try readDescriptions(connection)
    try readStills(connection)
    try readCaptures(connection)
    try readConcealments(connection)
    try readCodecs(connection)
    try readNames(connection)
    try readSamples(connection)
  }

  /// Adds facts that were read, possibly on another thread, to the facts about RTP packets.
  mutating func join(_ read: PerceptionFacts) {
    let (slow, displaced) = (slowFrames, displaced)
    self = read
    (slowFrames, self.displaced) = (slow, displaced)
  }

  // MARK: Look-up

  /// Returns whether the take shows that a track was disabled at some time between two instants.
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
      // Ignores that the track was disabled if it was enabled again at most a quarter of a second
      // after `from`.
      if !isOn, change.at &- 250_000_000 > from { return true }
      isOn = change.isOn
    }
    return !isOn
  }

  /// Returns whether a negotiation or an API call near an instant changed what a peer sends.
  package func isMeant(_ peer: Int64, at: Int64, within nanoseconds: Int64 = 1_500_000_000) -> Bool
  {
    negotiations.contains { $0.peer == peer && abs($0.at &- at) <= nanoseconds }
      || changes.contains {
        $0.peer == peer && !$0.isInbound && abs($0.at &- at) <= nanoseconds
          && $0.name != "setContentHint" && $0.name != "noteCapture"
      }
  }

  /// Returns whether a track has a content hint that marks it as screen content.
  package func isScreen(_ peer: Int64, _ track: Int64) -> Bool {
    changes.contains { $0.peer == peer && $0.track == track && $0.name == "setContentHint" }
  }
}
