import ArgumentParser
import FoundationEssentials
import Media
import Queries
import Replay
import Stats
import Tape
import Wire

/// Prints a take's stats reports.
struct StatsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Show the W3C stats of every peer, at the end of the take or at any instant of it.",
    discussion: """
      Without --at, the last samples of the recording are shown. With --at, the take is replayed \
      to that instant and getStats is called there; --sampled shows the last recorded samples \
      before it instead.

      Examples:
        retake stats call.take
        retake stats call.take --at 12.5 --type inbound-rtp --json
        retake stats call.take --series --type inbound-rtp --csv \\
          --peer caller --from 2s --to 5s
        retake stats call.take --sdk
        retake stats call.take --problems
      """)

  @OptionGroup var options: TakeOptions

  @OptionGroup var part: SelectionOptions

  @Option(
    help: "A time in seconds since the take began (12.5), or a step (step:120).",
    transform: Taking.place)
  var at: StepCondition?

  @Flag(help: "With --at: the last recorded samples, without a replay.")
  var sampled = false

  @Option(
    help: "Only objects of this type; may be given several times.",
    completion: .list(StatsMembers.types(with: []).sorted()), transform: StatsType.read)
  var type: [String] = []

  @Flag(help: "Print all samples in order instead, one JSON object per line.")
  var series = false

  @Flag(help: "With --series: one member per line, as comma-separated values.")
  var csv = false

  @Flag(help: "Print what each peer sends and receives in the form of the room SDKs, as JSON.")
  var sdk = false

  @Flag(help: "List what went wrong instead, like retake findings.")
  var problems = false

  @Flag(help: "With --problems: also print the SQL behind them.")
  var queries = false

  @OptionGroup var pager: PagerOptions

  func validate() throws {
    if problems, at != nil || !type.isEmpty || series || sdk {
      throw ValidationError("--problems works with --peer, --from and --to; leave out the others.")
    }
    if !part.span.isEmpty, !problems, !series {
      throw ValidationError("--from and --to need --series or --problems; without those, use --at.")
    }
    if series, at != nil || sdk {
      throw ValidationError("--series prints all samples; leave out --at and --sdk.")
    }
    if sdk, !type.isEmpty || sampled {
      throw ValidationError("--sdk prints whole reports; leave out --type and --sampled.")
    }
    if queries, !problems { throw ValidationError("--queries needs --problems: add it.") }
    if csv, options.json { throw ValidationError("Give --json or --csv, not both.") }
    if csv, !series { throw ValidationError("--csv is a format of --series: add --series.") }
    if sampled, at?.instant == nil {
      throw ValidationError("--sampled needs --at with a time, as in --at 12.5.")
    }
  }

  func run() throws {
    reportEndings(of: options.take)
    let selection = try part.selection(in: options.take)
    if problems {
      let found = try Progress("reading").follow {
        try reading { () throws(TapeError) in
          try TakeFindings(path: options.take, selection: selection)
        }
      }
      if options.json { return try Output.json(found.detectionsJSON) }
      try pager.show(found.text(pager.look, showsQueries: queries))
    } else if series {
      try printSeries(selection)
    } else if sdk {
      try printSDK(selection)
    } else {
      try printReport(selection)
    }
  }

  // MARK: Reports

  private func printReport(_ selection: TakeSelection) throws {
    let found: StatSamples
    if at != nil, !sampled {
      let replayed = try replay()
      found = StatSamples(
        peers: replayed.peers.map { peer in
          StatSamples.Peer(
            number: peer.number, label: peer.label,
            objects: peer.report.objects.map(StatSamples.Object.init))
        })
    } else {
      found = try reading { () throws(TapeError) in
        try StatSamples(path: options.take, at: at?.instant)
      }
    }
    let samples = StatSamples(
      peers: found.peers.filter { selection.peers?.contains($0.number) ?? true })
    if samples.peers.allSatisfy(\.objects.isEmpty) {
      throw CommandFailure(
        .unmet,
        "\(options.take): stat: no stats were sampled\(at.map { " before \($0)" } ?? "")"
          + "; give a later --at")
    }
    let types = Set(samples.peers.flatMap(\.objects).map(\.type)).sorted()
    if let unknown = type.first(where: { !types.contains($0) }) {
      throw CommandFailure(
        .unmet,
        "\(options.take): --type \(unknown): it has no such stats, only "
          + types.joined(separator: ", "))
    }
    if let wanted = at?.instant,
      let end = try reading({ () throws(TapeError) in try StepTimes.end(of: options.take) }),
      wanted > end
    {
      let seconds = decimal(end.seconds, 3)
      printError(
        "retake: \(options.take): it ends before --at, at \(seconds) s; these are the "
          + "stats at its end")
    }
    if options.json { return try Output.json(json(samples)) }
    try pager.show(text(samples) + "\n")
  }

  /// Replays up to `--at` or to the end, and returns the stats there.
  private func replay() throws -> StatsReplay {
    let progress = Progress("replaying")
    defer { progress.clear() }
    let found = try reading { () throws(TapeError) in
      try StatsReplay(
        path: options.take,
        until: at.map { place in place.instant.map { .time($0) } ?? .condition(place) },
        toolchain: try Toolchain.current(for: options.take), codecs: { LibraryCodecs() },
        progress: { progress.show("replaying: \(decimal($0.seconds, 1)) s") })
    }
    guard case .identical = found.replay.verdict else {
      printErrors(found.replay.description)
      throw CommandFailure(
        .difference,
        "\(options.take): the replay differs from the recording before that instant; "
          + "--sampled shows the last recorded samples")
    }
    return found
  }

  private func isWanted(_ object: StatSamples.Object) -> Bool {
    type.isEmpty || type.contains(object.type)
  }

  /// Returns an object with each peer's getStats array, by label; labels that several peers share
  /// get a number.
  private func json(_ samples: StatSamples) -> String {
    JSONText.object(
      samples.peers.map { peer in
        let isOne = samples.peers.count { $0.label == peer.label } == 1
        return (
          name(of: peer.label, peer.number, isOne: isOne),
          .list(peer.objects.filter(isWanted).map { JSONText($0.json) })
        )
      }
    ).text
  }

  /// Returns a peer's key in JSON: its label, with its number if other peers share the label.
  private func name(of label: String, _ number: some BinaryInteger, isOne: Bool) -> String {
    isOne ? label : "\(label) \(number)"
  }

  private func text(_ samples: StatSamples) -> String {
    var lines: [String] = []
    for peer in samples.peers {
      lines.append(PrintableText.line(peer.label))
      for object in peer.objects where isWanted(object) {
        lines.append(PrintableText.line("  \(object.type)  \(object.id)"))
        for (name, value) in object.list {
          let space = String(repeating: " ", count: max(1, 40 - name.count))
          lines.append("    \(name)\(space)\(plain(value))")
        }
      }
    }
    return lines.joined(separator: "\n")
  }

  /// Formats a JSON value for display: strings without quotes, long strings shortened.
  private func plain(_ value: String) -> String {
    guard value.hasPrefix("\"") else { return value }
    let text = TextTable.plain(String(value.dropFirst().dropLast()))
    guard let columns = pager.look.columns else { return text }
    let room = max(20, columns - 44)
    return text.count > room ? "\(text.prefix(room - 3))..." : text
  }

  // MARK: Other forms

  private func printSeries(_ selection: TakeSelection) throws {
    let pieces = OutputPieces(csv ? .text : .json)
    let count = try reading { () throws(TapeError) in
      try StatSeries.write(
        path: options.take, types: type, format: csv ? .csv : .lines, selection: selection,
        isWanted: { pieces.areWanted }, write: { pieces.add($0) })
    }
    try pieces.check()
    guard count == 0 else { return }
    throw CommandFailure(
      .unmet,
      "\(options.take): stat: there are no samples"
        + (type.isEmpty ? "" : " of \(type.joined(separator: ", "))") + "; try another --type")
  }

  /// Prints an object with each peer's local and remote report, by label.
  private func printSDK(_ selection: TakeSelection) throws {
    let replayed = try replay().peers.filter { selection.peers?.contains($0.number) ?? true }
    let peers = replayed.map { peer in
      (
        name(of: peer.label, peer.number, isOne: replayed.count { $0.label == peer.label } == 1),
        JSONText.object([
          ("local", JSONText(peer.report.local.json)),
          ("remote", JSONText(peer.report.remote.json)),
        ])
      )
    }
    try Output.json(JSONText.object(peers).text)
  }
}

/// Parses the arguments of `--type`.
enum StatsType {
  static func read(_ word: String) throws -> String {
    let known = StatsMembers.types(with: []).sorted()
    guard known.contains(word) else {
      throw Taking.Refusal(
        "no such stats are known\(Nearest.hint(word, among: known))")
    }
    return word
  }
}
