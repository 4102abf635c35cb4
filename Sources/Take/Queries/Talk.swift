import Tape
import Wire

/// The statistics of a conversation: speaking times, overlaps, silences and interruptions.
///
/// A person on several connections counts once, as in the `person_speech` view. The views `talk`,
/// `overlap`, `interruption` and `talk_share` use the same definitions, but only for entire takes.
package struct Talk: Sendable, Codable {
  /// A person's turns, speaking times and interruptions.
  package struct Person: Sendable, Codable {
    package var name: String
    /// How many times the person began to speak.
    package var turns = 0
    package var speakingNanoseconds: Int64 = 0
    /// How long the person spoke alone, and while others spoke.
    package var aloneNanoseconds: Int64 = 0
    package var overlapNanoseconds: Int64 = 0
    /// How many times the person interrupted others, and was interrupted.
    package var interruptions = 0
    package var interrupted = 0
  }

  /// A period in which a person spoke.
  package struct Turn: Sendable, Codable, Hashable {
    /// The index in `people`.
    package var person: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
  }

  /// An interruption: someone began to speak while another person spoke, who then stopped.
  package struct Interruption: Sendable, Codable, Hashable {
    package var atNanoseconds: Int64
    package var person: Int
    package var interrupted: Int
    /// How long both spoke.
    package var overlapNanoseconds: Int64
  }

  /// The people who spoke, in the order in which they first spoke.
  package private(set) var people: [Person] = []
  /// The turns and the interruptions, each ordered by start.
  package private(set) var turns: [Turn] = []
  package private(set) var interruptions: [Interruption] = []
  /// When the first audio began and the last ended.
  package private(set) var fromNanoseconds: Int64 = 0
  package private(set) var toNanoseconds: Int64 = 0
  /// How long no one spoke, and how long several people spoke.
  package private(set) var silentNanoseconds: Int64 = 0
  package private(set) var overlapNanoseconds: Int64 = 0

  /// What counts as an interruption; the `interruption` view uses the same numbers.
  private enum Rule {
    /// How long the interrupted person must have been speaking, in nanoseconds.
    static let before: Int64 = 500_000_000
    /// How long both must have spoken, in nanoseconds; in a shorter overlap, the interrupted person
    /// had almost finished.
    static let overlap: ClosedRange<Int64> = 250_000_000...3_000_000_000
    /// How long the interrupting person must have gone on alone, in nanoseconds.
    static let after: Int64 = 1_000_000_000
  }

  init() {}

  /// Reads who spoke when in a take or in a part of it; turns are clipped to the part.
  init(_ connection: borrowing SQLiteConnection, _ selection: TakeSelection) throws(SQLiteError) {
    try readSpan(connection, selection)
    let rows = try connection.prepare(
      """
      SELECT person, CAST(from_ns AS INTEGER), CAST(to_ns AS INTEGER) FROM person_speech
      WHERE person IN (SELECT person FROM voice WHERE \(Talk.isOf(selection)))
      ORDER BY from_ns, to_ns, person
      """)
    var places: [String: Int] = [:]
    while try rows.step() {
      let (name, from, to) = rows.values(String.self, Int64.self, Int64.self)
      let (begin, end) = (max(from, selection.fromNanoseconds), min(to, selection.toNanoseconds))
      guard begin < end else { continue }
      let place = places[name] ?? people.count
      if place == people.count { people.append(Person(name: name)) }
      places[name] = place
      turns.append(Turn(person: place, fromNanoseconds: begin, toNanoseconds: end))
    }
    addTimes()
    addInterruptions()
  }

  /// Returns an SQL condition for the selected peers, which is always true if all are selected.
  private static func isOf(_ selection: TakeSelection) -> String {
    guard let peers = selection.peers else { return "1" }
    return "peer IN (\(peers.sorted().map(String.init).joined(separator: ", ")))"
  }

  private mutating func readSpan(
    _ connection: borrowing SQLiteConnection, _ selection: TakeSelection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT coalesce(min(at_ns) - 100000000, 0), coalesce(max(at_ns), 0) FROM level
      WHERE \(Talk.isOf(selection))
      """)
    guard try rows.step() else { return }
    let (from, to) = rows.values(Int64.self, Int64.self)
    fromNanoseconds = max(from, selection.fromNanoseconds)
    toNanoseconds = max(fromNanoseconds, min(to, selection.toNanoseconds))
  }

  // MARK: Times

  /// Adds up each person's times by going through all starts and ends in order.
  private mutating func addTimes() {
    for turn in turns {
      people[turn.person].turns += 1
      people[turn.person].speakingNanoseconds +|= turn.toNanoseconds -| turn.fromNanoseconds
      fromNanoseconds = min(fromNanoseconds, turn.fromNanoseconds)
      toNanoseconds = max(toNanoseconds, turn.toNanoseconds)
    }
    var changes = turns.flatMap { turn in
      [
        (at: turn.fromNanoseconds, begins: true, person: turn.person),
        (at: turn.toNanoseconds, begins: false, person: turn.person),
      ]
    }
    changes.sort { ($0.at, $0.begins ? 1 : 0, $0.person) < ($1.at, $1.begins ? 1 : 0, $1.person) }
    var speaking: [Int] = []
    var since = fromNanoseconds
    for change in changes {
      count(change.at -| since, speaking)
      since = max(since, change.at)
      if change.begins {
        speaking.append(change.person)
      } else if let place = speaking.firstIndex(of: change.person) {
        speaking.remove(at: place)
      }
    }
    count(toNanoseconds -| since, speaking)
  }

  private mutating func count(_ length: Int64, _ speaking: [Int]) {
    guard length > 0 else { return }
    if speaking.isEmpty { silentNanoseconds +|= length }
    if speaking.count > 1 { overlapNanoseconds +|= length }
    for person in speaking {
      if speaking.count == 1 {
        people[person].aloneNanoseconds +|= length
      } else {
        people[person].overlapNanoseconds +|= length
      }
    }
  }

  /// Finds interruptions by comparing each turn with the turns of others that were going on.
  private mutating func addInterruptions() {
    var open: [Turn] = []
    for turn in turns {
      open.removeAll { $0.toNanoseconds <= turn.fromNanoseconds }
      for other in open where other.person != turn.person {
        let overlap = other.toNanoseconds -| turn.fromNanoseconds
        guard turn.fromNanoseconds -| other.fromNanoseconds >= Rule.before,
          Rule.overlap.contains(overlap),
          turn.toNanoseconds -| other.toNanoseconds >= Rule.after
        else { continue }
        people[turn.person].interruptions += 1
        people[other.person].interrupted += 1
        interruptions.append(
          Interruption(
            atNanoseconds: turn.fromNanoseconds, person: turn.person, interrupted: other.person,
            overlapNanoseconds: overlap))
      }
      open.append(turn)
    }
  }

  /// Returns a person's share of all speaking time, 0 to 1.
  package func share(of person: Person) -> Double {
    let all = people.reduce(Int64(0)) { $0 +| $1.speakingNanoseconds }
    return all > 0 ? Double(person.speakingNanoseconds) / Double(all) : 0
  }
}

// MARK: - Output

extension Talk {
  /// Returns a table with a bar and the times of each person, followed by a sentence with the
  /// totals; empty if no one spoke.
  func chart(_ look: TableLook) -> String {
    guard !people.isEmpty else { return "" }
    let figures = people.map { person in
      [
        thousandths(person.speakingNanoseconds / 1_000_000), percent(share(of: person)),
        thousandths(person.overlapNanoseconds / 1_000_000), String(person.interruptions),
        String(person.interrupted),
      ]
    }
    let titles = ["speaks", "share", "overlap", "interrupts", "interrupted"]
    let width = chartWidth(look, titles, figures)
    let rows = people.indices.map { [people[$0].name, bar(of: $0, width)] + figures[$0] }
    let table = TextTable(
      columns: ["who", axis(width)] + titles, rows: rows,
      alignsRight: [false, false, true, true, true, true, true])
    let whole = toNanoseconds -| fromNanoseconds
    let words =
      "Of \(thousandths(whole / 1_000_000)) s nobody spoke for "
      + "\(thousandths(silentNanoseconds / 1_000_000)) s, several spoke at once for "
      + "\(thousandths(overlapNanoseconds / 1_000_000)) s."
    return table.text(look) { _, column in column == 1 ? .good : nil }
      + broken(words, at: look.columns)
  }

  /// Wraps a sentence to the terminal's width.
  private func broken(_ sentence: String, at columns: Int?) -> String {
    var lines = [""]
    for word in sentence.split(separator: " ") {
      let last = lines[lines.count - 1]
      if last.isEmpty {
        lines[lines.count - 1] = String(word)
      } else if last.count + 1 + word.count <= columns ?? .max {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the width of the bars.
  ///
  /// On a terminal, this is the rest of its width. Otherwise, it is a cell per quarter of a second,
  /// within limits.
  private func chartWidth(_ look: TableLook, _ titles: [String], _ figures: [[String]]) -> Int {
    guard let columns = look.columns else {
      let quarters = (toNanoseconds -| fromNanoseconds) / 250_000_000
      return Int(min(max(quarters, 40), 120))
    }
    let names = people.map(\.name.count).max() ?? 0
    let numbers = titles.indices.reduce(0) { sum, column in
      sum + 2 + max(titles[column].count, figures.map { $0[column].count }.max() ?? 0)
    }
    return min(max(columns - numbers - min(names, 24) - 2, 10), 120)
  }

  /// Returns the axis above the bars, with the start and end in seconds; if the bars are narrow, it
  /// has only the start.
  private func axis(_ width: Int) -> String {
    let from = thousandths(fromNanoseconds / 1_000_000)
    let to = thousandths(toNanoseconds / 1_000_000)
    guard from.count + to.count < width else { return from }
    return from + String(repeating: " ", count: width - from.count - to.count) + to
  }

  /// Returns a person's bar: a cell is full if the person spoke for at least half of its time, and
  /// half full for less.
  private func bar(of person: Int, _ width: Int) -> String {
    let whole = max(1, toNanoseconds -| fromNanoseconds)
    let cell = max(1, whole / Int64(width))
    var spoken = [Int64](repeating: 0, count: width)
    for turn in turns where turn.person == person {
      let first = min(Int64(width) - 1, (turn.fromNanoseconds -| fromNanoseconds) / cell)
      let last = min(Int64(width) - 1, (turn.toNanoseconds -| fromNanoseconds) / cell)
      guard first >= 0, first <= last else { continue }
      for index in first...last {
        let begin = fromNanoseconds +| index *| cell
        let length = min(turn.toNanoseconds, begin +| cell) -| max(turn.fromNanoseconds, begin)
        spoken[Int(index)] +|= max(0, length)
      }
    }
    return String(spoken.map { $0 == 0 ? "·" : $0 *| 2 >= cell ? "█" : "▄" })
  }

  private func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }

  /// The members of `retake speakers`' JSON that are about people.
  var members: [(String, JSONText)] {
    let who = people.map { person in
      JSONText.object([
        ("name", .text(person.name)), ("turns", .integer(Int64(person.turns))),
        ("speaking_ns", .integer(person.speakingNanoseconds)),
        ("alone_ns", .integer(person.aloneNanoseconds)),
        ("overlap_ns", .integer(person.overlapNanoseconds)),
        ("share", .number(share(of: person))),
        ("interruptions", .integer(Int64(person.interruptions))),
        ("interrupted", .integer(Int64(person.interrupted))),
      ])
    }
    let when = turns.map { turn in
      JSONText.object([
        ("name", .text(people[turn.person].name)),
        ("from_ns", .integer(turn.fromNanoseconds)), ("to_ns", .integer(turn.toNanoseconds)),
      ])
    }
    let broken = interruptions.map { each in
      JSONText.object([
        ("at_ns", .integer(each.atNanoseconds)), ("name", .text(people[each.person].name)),
        ("interrupted", .text(people[each.interrupted].name)),
        ("overlap_ns", .integer(each.overlapNanoseconds)),
      ])
    }
    let talk = JSONText.object([
      ("from_ns", .integer(fromNanoseconds)), ("to_ns", .integer(toNanoseconds)),
      ("silent_ns", .integer(silentNanoseconds)), ("overlap_ns", .integer(overlapNanoseconds)),
    ])
    return [
      ("people", .list(who, separator: ",\n")), ("turns", .list(when, separator: ",\n")),
      ("interruptions", .list(broken, separator: ",\n")), ("talk", talk),
    ]
  }
}
