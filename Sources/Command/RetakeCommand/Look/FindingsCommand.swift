import ArgumentParser
import Debug
import Media
import Queries
import Replay
import Tape
import Wire

/// Which rules are asked, and what counts as a failure.
struct FindingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Further rules, thresholds and severities, as JSON; see the article on findings.",
      valueName: "file"),
    completion: .file(extensions: ["json"]), transform: Taking.path)
  var rules: String?

  @Option(
    help: ArgumentHelp(
      "End with status 1 where there is a finding of this severity or worse, or with this id; may "
        + "be given several times.",
      valueName: "severity|id"),
    transform: Taking.text(1...100))
  var failOn: [String] = []

  /// All rules as they are asked.
  func chosen() throws -> [FindingRule] {
    guard let rules else { return FindingRule.all }
    return try reading { () throws(TapeError) in try FindingRuleFile.rules(path: rules) }
  }

  /// Refuses words of `--fail-on` that are neither a severity nor a rule.
  func check(_ rules: [FindingRule]) throws {
    let known = FindingSeverity.allCases.map(\.name) + rules.map(\.id)
    for word in failOn where !known.contains(word) {
      throw CommandFailure(
        .usage,
        "--fail-on \(CommandReading.shown(word)): it is neither a severity nor a rule"
          + Nearest.hint(word, among: known))
    }
  }

  /// Ends with status 1 where a finding is one that fails.
  func fail(on found: TakeFindings, take: String) throws {
    func isBad(_ finding: Finding) -> Bool {
      failOn.contains { word in
        if let severity = FindingSeverity(name: word) { return finding.severity >= severity }
        return finding.ids.contains(word)
      }
    }
    let bad = found.findings.filter(isBad)
    guard let worst = bad.first else { return }
    throw CommandFailure(
      .difference,
      "\(take): \(counted(Int64(bad.count), "finding")) of --fail-on; the first: "
        + "\(CommandReading.oneLine(worst.text))")
  }
}

/// What went wrong in a take: causes with their symptoms.
struct FindingsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "findings",
    abstract: "Name what went wrong in a call: the causes first, each with what it led to.",
    discussion: """
      Each finding is a cause with its symptoms beneath it, the one that cost most first. It has a \
      severity (critical, high, medium, low, info), who and what it is about, what was measured, \
      and an id that stays the same. --queries prints the SQL behind them.

      Examples:
        retake findings call.take
        retake findings call.take --from 10s --to 20s --json
        retake findings call.take --fail-on high --fail-on relay-in-use
        retake findings call.take --rules ours.json
        retake findings call.take --explain
      """)

  @OptionGroup var options: TakeOptions
  @OptionGroup var part: SelectionOptions
  @OptionGroup var findings: FindingOptions

  @Flag(help: "Print the SQL behind them, too.")
  var queries = false

  @Flag(
    help: ArgumentHelp(
      "Replay the session with the lost packets delivered and with longer buffers, and say what "
        + "would have been needed where a picture froze or audio was concealed; takes seconds."
    ))
  var explain = false

  @OptionGroup var pager: PagerOptions

  func run() throws {
    noteEndings(of: options.take)
    let rules = try findings.chosen()
    try findings.check(rules)
    let selection = try part.selection(in: options.take)
    var found = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        try TakeFindings(path: options.take, selection: selection, rules: rules)
      }
    }
    if explain {
      let progress = Progress("replaying")
      defer { progress.clear() }
      let texts = try reading { () throws(TapeError) in
        try FindingExplainer(
          path: options.take, findings: found.findings, codecs: { LibraryCodecs() }
        ).explain { what, at in
          progress.show("replaying \(what): \(decimal(at.seconds, 1)) s")
        }
      }
      found.explain(texts)
    }
    if options.json {
      try Output.json(found.json(take: options.take))
    } else {
      try pager.show(found.text(pager.look, showsQueries: queries))
    }
    try findings.fail(on: found, take: options.take)
  }
}

/// A call on one screen.
struct SummaryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "summary",
    abstract: "Sum a call up on one screen: who, path, media, quality, and what went wrong.",
    discussion: """
      The JSON has less than 20 kB for any call, so that it can be handed to a program or a \
      language model; of what is cut it says how much there was.

      Examples:
        retake summary call.take
        retake summary call.take --json
      """)

  @OptionGroup var options: TakeOptions
  @OptionGroup var findings: FindingOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    noteEndings(of: options.take)
    let rules = try findings.chosen()
    try findings.check(rules)
    let (found, summary) = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        let found = try TakeFindings(path: options.take, rules: rules)
        return (found, try TakeSummary(path: options.take, findings: found))
      }
    }
    if options.json {
      try Output.json(summary.json)
    } else {
      try pager.show(summary.text(pager.look))
    }
    try findings.fail(on: found, take: options.take)
  }
}
