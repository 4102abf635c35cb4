import Media
import Stats
package import Tape
import Wire

/// The speakers in a take, with times and levels: the output of `retake speakers`.
///
/// Participants are the audio tracks that each peer sends and receives, and the contributing
/// sources that a mixer named. The peer detected speech and dominance while recording, and a replay
/// verifies them; here they are only read.
package struct SpeakerTimeline: Sendable, Codable {
  /// A voice as one peer sends or receives it.
  package struct Participant: Sendable, Codable {
    package var peer: Int64
    package var label: String
    /// The transceiver's number.
    package var track: Int64
    /// `in` for received audio, `out` for sent.
    package var direction: String
    /// The source mixed into the track (CSRC); nil for the track itself.
    package var contributor: Int64?
    /// The room participant's name; nil for tracks outside of rooms.
    package var person: String?
    /// The durations of audio with levels and of the silence in it.
    package var measuredNanoseconds: Int64 = 0
    package var silentNanoseconds: Int64 = 0
    /// The mean level while speaking, in tenths of dBov; nil if the participant never spoke.
    package var meanTenthsOfDecibels: Int?
    /// The peak level in dBov, and on a meter from 0 to 100.
    package var loudestDecibels = AudioLevel.silence.dbov
    package var loudestPercent = 0
    /// The speaking time, and the time as its peer's dominant speaker.
    package var speakingNanoseconds: Int64 = 0
    package var dominantNanoseconds: Int64 = 0

    /// The name in the `speaker` view: label, direction, track, and any contributor.
    package var name: String {
      "\(label)/\(direction)/\(track)" + (contributor.map { "/\($0)" } ?? "")
    }

    /// The name, preceded by the participant's if known.
    package var title: String { person.map { "\($0) (\(name))" } ?? name }
  }

  /// A period in which a participant spoke, including short pauses.
  package struct Speech: Sendable, Codable, Hashable {
    /// The index in `participants`.
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    /// The mean level of blocks with speech, in tenths of dBov.
    package var meanTenthsOfDecibels: Int
  }

  /// A period in which a participant was its peer's dominant speaker.
  package struct Dominance: Sendable, Codable, Hashable {
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
  }

  package private(set) var participants: [Participant] = []
  /// The speeches and the periods of dominance, each ordered by start.
  package private(set) var speeches: [Speech] = []
  package private(set) var dominances: [Dominance] = []
  /// Speaking times by person, over all tracks and connections.
  package private(set) var talk = Talk()
  /// The reason that there are no levels although there was audio; nil if there are levels, or no
  /// audio.
  private(set) var unheard: String?

  /// Reads the levels of a take or a part of it; spans are clipped to the part.
  package init(path: String, selection: TakeSelection = TakeSelection()) throws(TapeError) {
    try self.init(path: path, try TakeFile.openForQueries(path), selection)
  }

  /// Reads the levels through an open connection.
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
        // A CSRC does not say which of several participants it is.
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

  /// Reads levels; the one in the sender's packets takes precedence over that of decoded audio, as
  /// in the peer.
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
      // Samples at 48 kHz.
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

  /// The number of leading columns that identify the participant in every query here.
  private static let voiceColumns = 4

  /// Returns the index of the participant that a row's leading columns identify.
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
  /// Returns bars for each person's time, then speeches in order, then levels, as aligned columns.
  package func text(_ look: TableLook = TableLook()) -> String {
    guard !participants.isEmpty else {
      return unheard.map { "Nobody can say who spoke: \($0).\n" }
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

  /// The timeline as a JSON object.
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
    // One element per line, for readers of the file.
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

/// Reasons why received media is missing although a take has its packets.
package enum UnheardMedia {
  /// Returns a sentence about media that was not decrypted or decoded; nil if there was none.
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
      return "there is \(kind ?? "media") in it that was not decoded (\(names)); retake upgrade "
        + "--decode makes a take with what can be decoded here"
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
      return "\(words), so nobody knows what is in them; import the capture with its keys"
    }
    let agreed = try connection.integer("SELECT count(*) FROM track WHERE \(kinds)") ?? 0
    guard agreed > 0 else { return nil }
    return "there is a track of \(kind ?? "media") in it, and nothing of it was decoded"
  }
}

/// Descriptions of what could not be seen; the page has the same.
package enum CoverageText {
  private static let words = [
    "no-keys": "not decrypted, without a key", "not-opened": "not decrypted by the given keys",
    "waiting-overflow": "dropped while waiting for keys",
    "truncated": "captured in part",
    "cryptex": "with encrypted header extensions",
    "unsupported": "under a protection that is not read",
    "unknown-peer": "over a relay whose other end was not seen", "tls": "under TLS",
    "stream-gap": "after a gap in their stream",
    "data-not-opened": "of data channels that were not opened",
    "redundancy": "with older payloads that were not used", "dropped": "lost while capturing",
    "outside-of-time": "of a date that no take can have",
    "unread-layer": "in layers that are not opened",
  ]

  /// Describes a row of `coverage`; returns nil if it does not weaken any answer, as with packets
  /// that belong to no call.
  ///
  /// - Parameter reason: a number of packets, optionally followed by a colon and a text.
  static func text(what: String, reason: String) -> String? {
    if what == "late-start" { return "what was before the capture began" }
    if what == "one-direction" { return "the packets of one direction" }
    if what == "unknown-clock" { return "the jitter of streams of an unknown clock rate" }
    if what == "damaged-capture" { return "what is damaged in the capture" }
    if what == "cut-capture" { return "what followed where the capture is cut off" }
    if what == "unused-key" { return "what the SRTP keys are for, which open no packet" }
    if what == "unused-key-log" { return "the calls that the key log is of" }
    if what == "reported" { return "packets and media, as another stack reported what it counted" }
    if ["no-clock", "report-times", "strange-lines"].contains(what) { return reason }
    let weakensNothing = ["ignored", "relayed-twice", "description", "deduced", "unannounced"]
    guard !weakensNothing.contains(what) else { return nil }
    guard let words = words[what] else { return "\(what): \(reason)" }
    let count = reason.prefix { $0.isNumber }
    return count.isEmpty
      ? "packets \(words)" : "\(counted(Int64(count) ?? .max, "packet")) \(words)"
  }

  /// Phrases for kinds of coverage that weaken no answer.
  private static let harmless = [
    "ignored": "packet of no call", "relayed-twice": "packet captured twice, through a relay",
    "description": "description that cannot be read or is of no call",
    "unannounced": "stream that no description announces",
    "deduced": "stream whose contents its packets show",
  ]

  /// For kinds of coverage: the options of `import` that may help.
  private static let remedies = [
    "no-keys": "retake import --keys FILE reads the call's key log, --srtp-key a key",
    "not-opened": "retake import --keys FILE or --srtp-key with the keys of this call opens them",
    "data-not-opened": "retake import --keys FILE opens them with the call's key log",
    "unused-key-log": "the capture and the key log have to be of the same call",
  ]

  /// Describes a row of `coverage` for users, with the option that helps.
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
