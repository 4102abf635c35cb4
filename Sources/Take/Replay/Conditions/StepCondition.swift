package import Stats
package import Tape
package import Wire

/// A condition that selects steps of a take, in terms of the take's tables and columns.
///
///     12.3s   step:120   state ice-connection failed   packet rtcp pli   packet in rtp sequence>=9
///     frame in video key   event refused   call createOffer   message offer   stat freezeCount>0
///
/// All plain words after the subject must describe the row, and all tests such as `field=value`
/// must hold (also `!=`, `<`, `<=`, `>`, `>=`, and `~` for "contains"). The fields are the take's
/// columns.
package struct StepCondition: Hashable, Sendable, CustomStringConvertible {
  enum Subject: Hashable, Sendable {
    case step(Int)
    case time(Instant)
    case rows([Table])
    /// Members of a stats object, which the tests compare with values.
    case stat
  }

  /// A comparison of a field with a value.
  struct Test: Hashable, Sendable {
    var field: String
    var comparison: String
    var value: String
  }

  let subject: Subject
  let words: [String]
  let tests: [Test]
  /// The types of stats objects to read; nil if the condition is not about stats.
  package let statsTypes: Set<String>?
  /// The text of the condition, with single spaces.
  package let description: String

  /// Parses a condition; an error says what is wrong and what would be valid.
  package init(_ text: String) throws(ConditionError) {
    description = text.split(separator: " ").joined(separator: " ")
    var tokens = description.split(separator: " ").map { String($0) }
    guard !tokens.isEmpty else { throw ConditionError("the condition is empty; \(Self.examples)") }
    let first = tokens.removeFirst()
    if let place = try Self.place(first, &tokens) {
      guard tokens.isEmpty else {
        throw ConditionError(
          "\"\(tokens.joined(separator: " "))\" after \(first) means nothing; leave it out")
      }
      (subject, words, tests, statsTypes) = (place, [], [], nil)
      return
    }
    var words: [String] = []
    var tests: [Test] = []
    if first == "ssrc" {
      guard let value = tokens.first, UInt32(value) != nil else {
        throw ConditionError("ssrc needs the number of a source, as in: ssrc 301774210")
      }
      tokens[0] = "ssrc=\(value)"
    }
    for token in tokens {
      if let test = Self.test(token) {
        try test.check()
        tests.append(test)
      } else {
        words.append(token.lowercased())
      }
    }
    if first == "stat" {
      guard words.isEmpty, !tests.isEmpty else {
        throw ConditionError("stat needs a member and a threshold, as in: stat freezeCount>0")
      }
      (subject, self.words, self.tests) = (.stat, [], tests)
      statsTypes = try Self.statsTypes(of: tests)
      return
    }
    statsTypes = nil
    subject = .rows(try Self.tables(first, words: &words, tests: tests))
    self.words = words
    self.tests = tests
    try checkFields()
  }

  /// Whether a replay stops before the step that meets the condition rather than after it.
  package var stopsBefore: Bool {
    switch subject {
    case .step, .time: true
    case .rows, .stat: false
    }
  }

  /// Whether the condition is about stats, which need the machine and not only a step's rows.
  package var needsStats: Bool { subject == .stat }

  /// Whether a step's rows are enough to decide the condition.
  package var isAboutRows: Bool {
    if case .rows = subject { return true }
    return false
  }

  /// Whether the condition may select datagrams, by their own columns or by what they contain.
  package var selectsDatagrams: Bool {
    guard case .rows(let tables) = subject else { return false }
    return tables.contains(.packet) || tables.contains(.rtcp)
  }

  static let examples =
    "try 12.3s, step:120, 'state ice-connection failed', 'packet rtcp pli' or 'stat freezeCount>0'"

  // MARK: Parsing

  private static func place(_ first: String, _ rest: inout [String]) throws(ConditionError)
    -> Subject?
  {
    var value = first
    if first == "step" || first == "time" || first == "at" {
      guard !rest.isEmpty else { throw ConditionError("\(first) needs a number") }
      value = (first == "step" ? "step:" : "") + rest.removeFirst()
    }
    if value.hasPrefix("step:") {
      guard let number = Int(value.dropFirst(5)), number > 0 else {
        throw ConditionError("step: needs a number from 1, not \(value.dropFirst(5))")
      }
      return .step(number)
    }
    guard TimeText.seconds(value) != nil else {
      guard first == "time" || first == "at" || Double(value) != nil else { return nil }
      throw ConditionError("a time is from 0 to 1000000000 s, as in 12.5 or 12.5s, not \(value)")
    }
    guard let instant = TimeText.instant(value) else {
      throw ConditionError("a time is from 0 to 1000000000 s, not \(value)")
    }
    return .time(instant)
  }

  private static func test(_ token: String) -> Test? {
    guard let start = token.firstIndex(where: { "!=<>~".contains($0) }), start > token.startIndex
    else { return nil }
    let comparison = token[start...].prefix { "!=<>~".contains($0) }
    guard ["!=", "<=", ">=", "=", "<", ">", "~"].contains(comparison) else { return nil }
    return Test(
      field: String(token[..<start]), comparison: String(comparison),
      value: String(token[comparison.endIndex...]))
  }

  static func tables(_ subject: String, words: inout [String], tests: [Test])
    throws(ConditionError) -> [Table]
  {
    switch subject {
    case "ssrc": return [.packet, .rtcp, .frame]
    case "pair": return [.candidatePair]
    case "call": return [.callRequest]
    case "packet" where words.contains("rtcp") && (words.count > 1 || !tests.isEmpty):
      // With more words, the condition is about RTCP rows rather than the datagram.
      words.removeAll { $0 == "rtcp" }
      return [.rtcp]
    default: break
    }
    let named = Table.allCases.filter {
      $0.name == subject || subject == "message" && $0 == .signaling
    }
    guard !named.isEmpty else {
      let near = Nearest.words(to: subject, among: Table.allCases.map(\.name) + subjects)
      throw ConditionError(
        "\"\(subject)\" is neither a place nor a table; "
          + (near.isEmpty ? examples : "did you mean \(near.joined(separator: " or "))?"))
    }
    return named
  }

  private func checkFields() throws(ConditionError) {
    guard case .rows(let tables) = subject else { return }
    if tables == [.state] { try checkStates() }
    for test in tests {
      let isKnown = Self.fields(of: tables).contains(test.field)
      guard isKnown else {
        throw ConditionError(
          "\(tables.first?.name ?? "") has no field \(test.field)"
            + Nearest.hint(test.field, among: Self.fields(of: tables)))
      }
    }
  }

  /// Rejects a word that is probably a misspelt state.
  ///
  /// A word unlike all known states is accepted, since it may be the state of another machine.
  private func checkStates() throws(ConditionError) {
    let named = tests.filter { ["machine", "from_state", "to_state"].contains($0.field) }
    for word in words + named.filter({ $0.comparison.hasSuffix("=") }).map(\.value)
    where !Self.states.contains(word) {
      let near = Nearest.words(to: word, among: Self.states)
      guard near.isEmpty else {
        throw ConditionError(
          "no state is called \(word); did you mean \(near.joined(separator: " or "))?")
      }
    }
  }

  /// The names of a connection's state machines and of their states, from W3C where it defines
  /// them.
  static let states = [
    "signaling", "ice-connection", "ice-gathering", "connection", "dtls", "sctp", "establishment",
    "new", "checking", "connecting", "connected", "completed", "disconnected", "failed", "closed",
    "gathering", "complete", "stable", "have-local-offer", "have-remote-offer",
    "have-local-pranswer", "have-remote-pranswer", "establishing", "established", "timed-out",
  ]

  /// Returns the fields of tables that a condition can test.
  ///
  /// They are the columns (except path, format and bytes), fields that views add, and peer and
  /// label.
  static func fields(of tables: [Table]) -> [String] {
    var names: [String] = []
    for table in tables {
      names += table.columnNames.filter { !["path", "format", "bytes"].contains($0) }
      if table == .packet {
        names += ["direction", "protocol", "size", "payload_type", "marker", "local", "remote"]
      }
      if table == .frame { names += Table.format.columnNames.filter { $0 != "format" } }
    }
    var seen: Set<String> = []
    return (names + ["peer", "label"]).filter { seen.insert($0).inserted }
  }

  // MARK: Matching

  /// Returns whether an executed step satisfies the condition; `stats` is called only for a
  /// condition about stats.
  package func matches(
    _ step: TapeChunk.Step, _ rows: RowList, _ memory: RowMemory, stats: () -> StatsReport
  ) -> Bool {
    switch subject {
    case .step, .time: return isReached(before: step.head)
    case .rows(let tables):
      for row in step.rows where tables.contains(rows.table(row)) {
        let facts = RowFacts(
          rows: rows, row: row, peer: step.peer ?? 0, isInput: step.inputRows.contains(row),
          memory: memory)
        if matches(facts) { return true }
      }
      return false
    case .stat: return matches(stats(), of: step.peer ?? 0)
    }
  }

  /// Returns whether a row satisfies the condition.
  func matches(_ facts: RowFacts) -> Bool {
    tests.allSatisfy { test in facts.field(test.field).map(test.holds) ?? false }
      && words.allSatisfy(facts.has)
  }
}

/// Explains in one sentence what is wrong with a condition.
package struct ConditionError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

extension StepCondition {
  /// Returns whether the condition's step or time is reached before a step is executed; false for
  /// other conditions.
  package func isReached(before step: StepHead) -> Bool {
    switch subject {
    case .step(let number): step.number >= number
    case .time(let instant): step.at > instant
    case .rows, .stat: false
    }
  }
}

extension StepCondition {
  /// The number of the step that the condition names; nil if it names none.
  package var stepNumber: Int? {
    if case .step(let number) = subject { return number }
    return nil
  }

  /// The time that the condition names; nil if it names none.
  package var instant: Instant? {
    if case .time(let instant) = subject { return instant }
    return nil
  }

  /// The words that a condition may begin with, besides the names of tables.
  static let subjects = ["message", "call", "pair", "ssrc", "step:", "stat"]
}

extension StepCondition {
  /// Returns whether the condition selects the datagram that a step received.
  ///
  /// A condition about the datagram's contents, such as an RTCP block, selects the datagram too.
  package func selects(_ step: TapeChunk.Step, _ rows: RowList, _ memory: RowMemory) -> Bool {
    guard step.head.kind == .datagram, case .rows(let tables) = subject else { return false }
    return step.rows.contains { row in
      guard tables.contains(rows.table(row)) else { return false }
      let isInput = step.inputRows.contains(row)
      let facts = RowFacts(
        rows: rows, row: row, peer: step.peer ?? 0, isInput: isInput, memory: memory)
      return (isInput || facts.field("direction") == "in" && rows.table(row) != .packet)
        && matches(facts)
    }
  }
}
