import ArgumentParser
import Debug
import Media
import Queries
import Replay
import Tape
import Wire

/// The rules to apply, and the findings that count as failures.
struct FindingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Further rules, thresholds and severities, as JSON; see the article on findings.",
      valueName: "file"),
    completion: .file(extensions: ["json"]), transform: Taking.path)
  var rules: String?

  @Option(
    help: ArgumentHelp(
      "Exit with status 1 if there is a finding of this severity or worse, or with this id; may be "
        + "given several times.",
      valueName: "severity|id"),
    transform: Taking.text(1...100))
  var failOn: [String] = []

  /// Returns the rules in the file that `--rules` names, or else the built-in ones.
  func chosen() throws -> [FindingRule] {
    guard let rules else { return FindingRule.all }
    guard FileBytes.kind(of: rules) != nil else {
      throw CommandFailure(
        .noSuchFile,
        "--rules \(rules): there is no such file; it is a JSON list of rules, as the article "
          + "Findings describes")
    }
    return try reading { () throws(TapeError) in try FindingRuleFile.rules(path: rules) }
  }

  /// Refuses words of `--fail-on` that are neither severities nor rules.
  func check(_ rules: [FindingRule]) throws {
    let known = FindingSeverity.allCases.map(\.name) + rules.map(\.id)
    for word in failOn where !known.contains(word) {
      throw CommandFailure(
        .usage,
        "--fail-on \(CommandReading.shown(word)): it is neither a severity nor the id of a finding"
          + hint(word, known))
    }
  }

  /// Returns the end of an error message: the ids similar to a word or to a part of it, or else
  /// what `--fail-on` accepts.
  private func hint(_ word: String, _ known: [String]) -> String {
    let parts = [word] + word.split(separator: "-").map(String.init)
    let near = parts.lazy.map { Nearest.words(to: $0, among: known) }.first { !$0.isEmpty }
    guard let near else {
      let severities = FindingSeverity.allCases.map(\.name).joined(separator: ", ")
      return ": give one of \(severities), or an id, which is in brackets at a finding's end"
    }
    return "; did you mean \(near.joined(separator: " or "))?"
  }

  /// Exits with status 1 if the take has findings that `--fail-on` names.
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
      "\(take): \(counted(Int64(bad.count), "finding")) for --fail-on; the first: "
        + "\(CommandReading.oneLine(worst.text))")
  }
}

/// Lists a take's findings: causes with their symptoms.
struct FindingsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "findings",
    abstract: "List what went wrong in a call: the causes first, each with its symptoms.",
    discussion: """
      Each finding is a cause with its symptoms below it, the one with the greatest impact first. \
      It has a severity (critical, high, medium, low, info), its subject, its measurements, and a \
      stable id. --queries prints the SQL behind them. For several takes, or a folder, it lists \
      the causes of each, from the catalogue stored with the takes.

      Examples:
        retake findings call.take
        retake findings takes/ --fail-on high
        retake findings call.take --from 10s --to 20s --json
        retake findings call.take --fail-on high --fail-on relay-in-use
        retake findings call.take --rules ours.json
        retake findings call.take --explain
      """)

  @OptionGroup var options: TakesOptions
  @OptionGroup var part: SelectionOptions
  @OptionGroup var findings: FindingOptions

  @Flag(help: "Also print the SQL behind them.")
  var queries = false

  @Flag(
    help: ArgumentHelp(
      "Replay the session with the lost packets delivered and with longer buffers, and say what "
        + "would have prevented freezes and concealed audio; this needs some seconds."
    ))
  var explain = false

  @OptionGroup var pager: PagerOptions

  func run() throws {
    let rules = try findings.chosen()
    try findings.check(rules)
    if options.areMany { return try showMany(rules) }
    reportEndings(of: options.take)
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

  /// Shows several takes' findings, read from the catalogue if it has everything requested.
  private func showMany(_ rules: [FindingRule]) throws {
    var explanation: CatalogueReading.Explanation?
    if explain {
      explanation = { (take, found) throws(TapeError) in
        try FindingExplainer(path: take, findings: found, codecs: { LibraryCodecs() })
          .explain { _, _ in }
      }
    }
    let look = try FolderLook(
      options.takes,
      CatalogueReading(
        rules: findings.rules == nil ? nil : rules, selection: part.ofEachTake,
        explanation: explanation))
    if options.json {
      try look.printJSON("findings")
    } else {
      var text = try reading { () throws(TapeError) in
        try look.catalogue.findingsText(pager.look)
      }
      if queries {
        let found = try reading { () throws(TapeError) in try look.catalogue.foundRules(rules) }
        text += found.map { "\n-- \($0.id)\n\($0.sql);\n" }.joined()
      }
      try pager.show(text)
    }
    try look.end(findings)
  }
}

/// Shows a call on one screen.
struct SummaryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "summary",
    abstract: "Summarize a call on one screen: peers, path, media, quality, and what went wrong.",
    discussion: """
      The JSON is smaller than 20 kB for any call, so that it can be passed to a program or a \
      language model; it states how much was cut.

      For several takes, or a folder, it prints one line per take, from the catalogue stored with \
      the takes.

      Examples:
        retake summary call.take
        retake summary call.take --json
        retake summary takes/
      """)

  @OptionGroup var options: TakesOptions
  @OptionGroup var findings: FindingOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    let rules = try findings.chosen()
    try findings.check(rules)
    if options.areMany {
      let look = try FolderLook(
        options.takes, CatalogueReading(rules: findings.rules == nil ? nil : rules))
      return try look.show("summary", options, pager, findings) { (look) throws(TapeError) in
        try look.catalogue.summaryText(pager.look)
      }
    }
    reportEndings(of: options.take)
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
