import Media
import Stats
package import Tape
import Wire

/// Who spoke in a take, when and how loud: the output of `retake speakers`.
///
/// The participants are the audio tracks that each peer sends and receives, and the contributing
/// sources that a mixer named. The peer itself detected speech and dominance while recording, so
/// the rows are only read here; a replay verifies them.
package struct SpeakerTimeline: Sendable, Codable {
  /// A voice on one track of a peer, sent or received.
  package struct Participant: Sendable, Codable {
    package var peer: Int64
    package var label: String
    /// The transceiver's number.
    package var track: Int64
    /// `in` for received audio, `out` for sent.
    package var direction: String
    /// The SSRC of a source that was mixed into the track (CSRC); nil for the track as a whole.
    package var contributor: Int64?
    /// The participant's name in the room; nil for contributors, and for tracks outside of rooms.
    package var person: String?
    /// The length of the audio whose level is known, and how much of it was silent.
    package var measuredNanoseconds: Int64 = 0
    package var silentNanoseconds: Int64 = 0
    /// The mean level while speaking, in tenths of dBov; nil without speech.
    package var meanTenthsOfDecibels: Int?
    /// The highest level in dBov, and as the percentage that a level meter shows.
    package var loudestDecibels = AudioLevel.silence.dbov
    package var loudestPercent = 0
    /// How long the participant spoke, and how long it was its peer's dominant speaker.
    package var speakingNanoseconds: Int64 = 0
    package var dominantNanoseconds: Int64 = 0

    /// The name in the `speaker` view, such as `ann/out/1`, with the CSRC of a contributor.
    package var name: String {
      "\(label)/\(direction)/\(track)" + (contributor.map { "/\($0)" } ?? "")
    }

    /// The room participant's name followed by `name` in parentheses; `name` alone if `person` is
    /// nil.
    package var title: String { person.map { "\($0) (\(name))" } ?? name }
  }

  /// A period in which a participant spoke, including short pauses.
  package struct Speech: Sendable, Codable, Hashable {
    /// The index in `participants`.
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    /// The mean level of the audio blocks that contain speech, in tenths of dBov.
    package var meanTenthsOfDecibels: Int
  }

  /// A period in which a participant was its peer's dominant speaker.
  package struct Dominance: Sendable, Codable, Hashable {
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
  }

  package private(set) var participants: [Participant] = []
  /// The periods of speech and of dominance, each ordered by start.
  package private(set) var speeches: [Speech] = []
  package private(set) var dominances: [Dominance] = []
  /// Speaking times by person, over all of the person's tracks and connections.
  package private(set) var talk = Talk()
  /// Why no levels are known although there was audio; nil if levels are known, or if there was no
  /// audio.
  private(set) var unheard: String?

  /// Reads the timeline of a take or of a part of it; periods are clipped to the part.
  package init(path: String, selection: TakeSelection = TakeSelection()) throws(TapeError) {
    try self.init(path: path, try TakeFile.openForQueries(path), selection)
  }

  /// Reads the timeline through an open connection.
  init(
    path: String, _ connection: borrowing SQLiteConnection,
    _ selection: TakeSelection = TakeSelection()
  ) throws(TapeError) {
    do throws(SQLiteError) {
      let labels = try PeerLabels(connection)
      try readLevels(connection, labels, selection)
      try readSpeeches(connection, labels, selection)
      try readDominances(connection, labels, selection)
      let people = try RoomPeople(connection)
      for index in participants.indices {
        let voice = participants[index]
        // If several participants are mixed into a track, the names do not show whose CSRC this is.
        guard voice.contributor == nil else { continue }
        participants[index].person = people.name(
          peer: voice.peer, track: voice.track, direction: voice.direction)
      }
      talk = try Talk(connection, selection)
      if participants.isEmpty { unheard = try UnheardMedia.reason(connection, kind: "audio") }
    } catch {
      throw TapeError(path: path, error)
    }
    addTimes()
  }

  // MARK: Reading

  /// Reads the levels, and how long each participant was silent.
  ///
  /// As in the peer, the level in the sender's packets takes precedence over the level of the
  /// decoded audio.
  private mutating func readLevels(
    _ connection: borrowing SQLiteConnection, _ labels: PeerLabels, _ selection: TakeSelection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction, NULL, sum(samples),
        sum(iif(coalesce(sender_level = 127, energy = 0), samples, 0)),
        min(sender_level), max(iif(sender_level IS NULL, energy / samples, NULL))
      FROM level WHERE samples > 0 AND at_ns BETWEEN ?1 AND ?2
      GROUP BY peer, track, direction ORDER BY min(row)
      """)
    rows.bind(selection.fromNanoseconds, at: 1)
    rows.bind(selection.toNanoseconds, at: 2)
    while try rows.step() {
      guard selection.peers?.contains(rows.integer(0)) ?? true else { continue }
      let index = place(of: rows, labels)
      let (heard, silent, senderLevel, energy) = rows.values(
        from: SpeakerTimeline.voiceColumns, Int64.self, Int64.self, UInt8?.self, Int64?.self)
      // A sample at 48 kHz lasts 62,500 / 3 ns.
      participants[index].measuredNanoseconds = heard *| 62_500 / 3
      participants[index].silentNanoseconds = silent *| 62_500 / 3
      var loudest = AudioLevel.silence
      if let senderLevel { loudest = AudioLevel(headerExtension: senderLevel) }
      if let energy {
        let level = AudioMeter.level(energy: UInt64(clamping: energy), frameCount: 1)
        loudest = max(loudest, AudioLevel(headerExtension: level))
      }
      participants[index].loudestDecibels = loudest.dbov
      participants[index].loudestPercent = loudest.percent
    }
  }

  private mutating func readSpeeches(
    _ connection: borrowing SQLiteConnection, _ labels: PeerLabels, _ selection: TakeSelection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction, contributor, from_ns, to_ns, CAST(round(10 * dbov) AS INTEGER)
      FROM speaker ORDER BY from_ns
      """)
    while try rows.step() {
      let (from, to, level) = rows.values(
        from: SpeakerTimeline.voiceColumns, Int64.self, Int64.self, Int.self)
      guard selection.holds(peer: rows.integer(0), from: from, to: to) else { continue }
      speeches.append(
        Speech(
          participant: place(of: rows, labels),
          fromNanoseconds: max(from, selection.fromNanoseconds),
          toNanoseconds: min(to, selection.toNanoseconds), meanTenthsOfDecibels: level))
    }
  }

  private mutating func readDominances(
    _ connection: borrowing SQLiteConnection, _ labels: PeerLabels, _ selection: TakeSelection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction, contributor, from_ns, to_ns
      FROM dominant_speaker ORDER BY from_ns
      """)
    while try rows.step() {
      let (from, to) = rows.values(from: SpeakerTimeline.voiceColumns, Int64.self, Int64.self)
      guard selection.holds(peer: rows.integer(0), from: from, to: to) else { continue }
      dominances.append(
        Dominance(
          participant: place(of: rows, labels),
          fromNanoseconds: max(from, selection.fromNanoseconds),
          toNanoseconds: min(to, selection.toNanoseconds)))
    }
  }

  /// Every query here begins with this many columns, which identify the participant.
  private static let voiceColumns = 4

  /// Returns the index of the participant in a row's first columns; a new participant is added.
  private mutating func place(of rows: borrowing SQLiteStatement, _ labels: PeerLabels) -> Int {
    let (peer, track, direction, contributor) = rows.values(
      Int64.self, Int64.self, String.self, Int64?.self)
    let known = participants.firstIndex {
      $0.track == track && $0.peer == peer && $0.direction == direction
        && $0.contributor == contributor
    }
    if known == nil {
      participants.append(
        Participant(
          peer: peer, label: labels[peer] ?? "", track: track, direction: direction,
          contributor: contributor))
    }
    return known ?? participants.count - 1
  }

  // MARK: Totals

  private mutating func addTimes() {
    speeches.sort { ($0.fromNanoseconds, $0.participant) < ($1.fromNanoseconds, $1.participant) }
    dominances.sort { ($0.fromNanoseconds, $0.participant) < ($1.fromNanoseconds, $1.participant) }
    var weights = [Int64](repeating: 0, count: participants.count)
    for speech in speeches {
      let length = speech.toNanoseconds - speech.fromNanoseconds
      participants[speech.participant].speakingNanoseconds +|= length
      weights[speech.participant] +|= Int64(speech.meanTenthsOfDecibels) *| (length / 1_000_000)
    }
    for index in participants.indices {
      let milliseconds = participants[index].speakingNanoseconds / 1_000_000
      if milliseconds > 0 {
        participants[index].meanTenthsOfDecibels = Int(weights[index] / milliseconds)
      }
    }
    for dominance in dominances {
      participants[dominance.participant].dominantNanoseconds +|= dominance.toNanoseconds
        - dominance.fromNanoseconds
    }
  }
}

// MARK: - Text

// The timeline as text and JSON.
extension SpeakerTimeline {
  /// Formats each person's time as a bar, then speeches in order and levels in aligned columns.
  package func text(_ look: TableLook = TableLook()) -> String {
    guard !participants.isEmpty else {
      return unheard.map { "Who spoke is unknown: \($0).\n" }
        ?? "There is no audio in this take.\n"
    }
    let times = TextTable(
      columns: ["from", "to", "seconds", "who", "what", "dBov"],
      rows: entries.map { entry in
        [
          seconds(entry.from), seconds(entry.to), seconds(entry.to - entry.from),
          participants[entry.participant].title, entry.what,
          entry.mean.map(tenths) ?? "",
        ]
      }, alignsRight: [true, true, true, false, false, true], wraps: true)
    let levels = TextTable(
      columns: ["who", "speaks", "dominates", "dBov", "loudest", "of 100", "silent"],
      rows: participants.map { participant in
        [
          participant.title, seconds(participant.speakingNanoseconds),
          seconds(participant.dominantNanoseconds),
          participant.meanTenthsOfDecibels.map(tenths) ?? "", String(participant.loudestDecibels),
          String(participant.loudestPercent),
          seconds(participant.silentNanoseconds) + " of "
            + seconds(participant.measuredNanoseconds),
        ]
      }, alignsRight: [false, true, true, true, true, true, true], wraps: true)
    guard !entries.isEmpty else { return "Nobody spoke.\n\n" + levels.text(look) }
    let chart = talk.chart(look)
    return (chart.isEmpty ? "" : chart + "\n") + times.text(look) + "\n" + levels.text(look)
  }

  /// The timeline as a JSON object with participants, speeches and people.
  package var json: String {
    let who = participants.map { participant in
      JSONText.object([
        ("participant", .text(participant.name)), ("person", participant.person.map { .text($0) }),
        ("peer", .integer(participant.peer)),
        ("track", .integer(participant.track)), ("direction", .text(participant.direction)),
        ("contributor", participant.contributor.map { .integer($0) }),
        ("speaking_ns", .integer(participant.speakingNanoseconds)),
        ("dominant_ns", .integer(participant.dominantNanoseconds)),
        ("dbov", participant.meanTenthsOfDecibels.map { .number(Double($0) / 10) }),
        ("loudest_dbov", .integer(Int64(participant.loudestDecibels))),
        ("loudest_percent", .integer(Int64(participant.loudestPercent))),
        ("heard_ns", .integer(participant.measuredNanoseconds)),
        ("silent_ns", .integer(participant.silentNanoseconds)),
      ])
    }
    let what = entries.map { entry in
      JSONText.object([
        ("participant", .text(participants[entry.participant].name)), ("what", .text(entry.what)),
        ("from_ns", .integer(entry.from)), ("to_ns", .integer(entry.to)),
        ("dbov", entry.mean.map { .number(Double($0) / 10) }),
      ])
    }
    // One element per line is easier to read in the file.
    let lists = [
      ("participants", JSONText.list(who, separator: ",\n")),
      ("times", JSONText.list(what, separator: ",\n")),
    ]
    let members = lists + talk.members
    return "{" + members.map { "\"\($0.0)\":\($0.1.text)" }.joined(separator: ",\n") + "}"
  }

  private typealias Entry = (from: Int64, to: Int64, participant: Int, what: String, mean: Int?)

  /// Speech and dominance, ordered by start.
  private var entries: [Entry] {
    var entries: [Entry] = speeches.map {
      ($0.fromNanoseconds, $0.toNanoseconds, $0.participant, "speaks", $0.meanTenthsOfDecibels)
    }
    entries += dominances.map {
      ($0.fromNanoseconds, $0.toNanoseconds, $0.participant, "dominates", nil)
    }
    return entries.sorted {
      ($0.from, $0.participant, $1.what) < ($1.from, $1.participant, $0.what)
    }
  }

  private func seconds(_ nanoseconds: Int64) -> String { thousandths(nanoseconds / 1_000_000) }

  private func tenths(_ value: Int) -> String {
    "\(value < 0 ? "-" : "")\(value.magnitude / 10).\(value.magnitude % 10)"
  }
}

// MARK: - UnheardMedia

/// Explains why a take contains no media although it contains the packets.
package enum UnheardMedia {
  /// Explains why none of a take's media was decoded; nil if no reason is known, for example
  /// because the take has no such track.
  ///
  /// Decoded frames are not looked for, so call this only if there are none.
  ///
  /// - Parameter kind: `audio` or `video`; nil for both.
  package static func reason(in path: String, kind: String?) throws(TapeError) -> String? {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      return try reason(connection, kind: kind)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  static func reason(_ connection: borrowing SQLiteConnection, kind: String?) throws(SQLiteError)
    -> String?
  {
    let kinds = kind.map { "kind = '\($0)'" } ?? "kind IN ('audio', 'video')"
    let codecs = try connection.prepare(
      """
      SELECT group_concat(codec, ', ') FROM (
        SELECT DISTINCT codec FROM format
        WHERE \(kinds) AND outcome IN ('not decoded', 'passed on') ORDER BY codec)
      """)
    if try codecs.step(), let names = codecs.text(0) {
      return "its \(kind ?? "media") was not decoded (\(names)); retake upgrade --decode makes a "
        + "take in which this build's codecs decode it"
    }
    let closed = try connection.prepare(
      """
      SELECT what, reason FROM coverage WHERE row IN (SELECT max(row) FROM coverage GROUP BY what)
        AND what IN ('no-keys', 'not-opened', 'waiting-overflow', 'unsupported')
      ORDER BY row LIMIT 1
      """)
    if try closed.step() {
      let (what, reason) = closed.values(String.self, String.self)
      guard let words = CoverageText.text(what: what, reason: reason) else { return nil }
      return "\(words), so their contents are unknown; import the capture with its keys"
    }
    let agreed = try connection.integer("SELECT count(*) FROM track WHERE \(kinds)") ?? 0
    guard agreed > 0 else { return nil }
    return "it has a track of \(kind ?? "media"), but no frame of it was decoded"
  }
}

/// Phrases on what a recording could not see; the page's script repeats most of them.
package enum CoverageText {
  private static let words = [
    "no-keys": "not decrypted, without a key", "not-opened": "not decrypted by the given keys",
    "waiting-overflow": "dropped while waiting for keys",
    "truncated": "captured in part",
    "cryptex": "with encrypted header extensions",
    "unsupported": "under an unsupported protection",
    "unknown-peer": "over a relay whose other leg was not seen", "tls": "under TLS",
    "stream-gap": "after a gap in their stream",
    "data-not-opened": "of data channels that were not opened",
    "redundancy": "with redundant payloads that were not used", "dropped": "lost while capturing",
    "outside-of-time": "with a date that no take can have",
    "unread-layer": "inside layers that are not opened",
  ]

  /// Describes a gap that a `coverage` row states; nil if the gap does not make any answer less
  /// certain.
  ///
  /// For example, packets that belong to no call are a harmless gap.
  ///
  /// - Parameter reason: usually the number of packets, optionally followed by a colon and words;
  ///   for some kinds, words alone.
  static func text(what: String, reason: String) -> String? {
    if what == "late-start" { return "what happened before the capture began" }
    if what == "one-direction" { return "the packets in one direction" }
    if what == "unknown-clock" { return "the jitter of streams of an unknown clock rate" }
    if what == "damaged-capture" { return "the damaged parts of the capture" }
    if what == "cut-capture" { return "what came after the point where the capture is cut off" }
    if what == "unused-key" { return "what the SRTP keys are for; they open no packet" }
    if what == "unused-key-log" { return "the calls that the key log belongs to" }
    if what == "reported" {
      return "packets and media, because another stack reported only its counts"
    }
    if ["no-clock", "report-times", "strange-lines"].contains(what) { return reason }
    let weakensNothing = ["ignored", "relayed-twice", "description", "deduced", "unannounced"]
    guard !weakensNothing.contains(what) else { return nil }
    guard let words = words[what] else { return "\(what): \(reason)" }
    let count = reason.prefix { $0.isNumber }
    return count.isEmpty
      ? "packets \(words)" : "\(counted(Int64(count) ?? .max, "packet")) \(words)"
  }

  /// Descriptions of gaps that do not make any answer less certain.
  private static let harmless = [
    "ignored": "packet of no call", "relayed-twice": "packet captured twice, through a relay",
    "description": "description that is unreadable or belongs to no call",
    "unannounced": "stream that no description announces",
    "deduced": "stream whose contents its packets show",
  ]

  /// Advice by kind of gap, such as the options of `retake import` that may close it.
  private static let remedies = [
    "no-keys": "retake import --keys FILE reads the call's key log, --srtp-key a key",
    "not-opened": "retake import --keys FILE or --srtp-key with the keys of this call opens them",
    "data-not-opened": "retake import --keys FILE opens them with the call's key log",
    "unused-key-log": "the capture and the key log must be of the same call",
  ]

  /// Describes a `coverage` row for users, with advice if there is any.
  package static func line(what: String, reason: String) -> String {
    let digits = reason.prefix { $0.isNumber }
    var more = reason.dropFirst(digits.count)
    if more.hasPrefix(": ") { more = more.dropFirst(2) }
    var line: String
    if let noun = harmless[what] {
      let (first, rest) = (noun.prefix { $0 != " " }, noun.drop { $0 != " " })
      line = counted(Int64(digits) ?? 1, String(first)) + rest
    } else {
      line = text(what: what, reason: reason) ?? what
    }
    if !more.isEmpty, !line.contains(more) { line += ": \(more)" }
    if let remedy = remedies[what] { line += "; \(remedy)" }
    return line
  }
}
