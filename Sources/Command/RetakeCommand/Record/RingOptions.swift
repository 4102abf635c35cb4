import ArgumentParser
import CallRecording
import FoundationEssentials
import Glibc
import Importing
import Live
import Queries
import Replay
import Tape
import Wire

/// Options for a flight recorder, which writes takes of the last seconds when triggered.
struct RingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Instead of recording everything, keep this many seconds in memory, and write a take of them "
        + "on SIGUSR1, when a connection fails, and for each reason in --on. The takes are an "
        + "observer's, and are named like --out with the time.",
      valueName: "seconds"),
    transform: Taking.seconds(1...3600))
  var ring: Double?

  @Option(
    name: .customLong("on"),
    help: ArgumentHelp(
      "With --ring, search for this every ten seconds: finding (of medium severity or worse), "
        + "finding:SEVERITY, finding:ID, or a condition of replay --until, as in 'packet rtcp "
        + "pli'; may be given several times. Each writes at most one take per length of the ring.",
      valueName: "what"),
    transform: RingOptions.wish)
  var wishes: [RingWish] = []

  @Option(
    name: .customLong("ring-megabytes"),
    help: ArgumentHelp(
      "With --ring, the memory of all rings together; writing a take needs as much again. Default: "
        + "\(Self.usualMegabytes).",
      valueName: "megabytes"),
    transform: Taking.whole(1...65_536))
  var megabytes: Int?

  @Option(
    name: .customLong("ring-count"),
    help: ArgumentHelp(
      "With --ring, how many takes are written at most. Default: \(Self.usualCount).",
      valueName: "takes"),
    transform: Taking.whole(1...100_000))
  var count: Int?

  @Flag(
    name: .customLong("ring-replace"),
    help: ArgumentHelp(
      "With --ring, remove the oldest take when --ring-count is reached, instead of writing no "
        + "more."))
  var replaces = false

  private static let usualMegabytes = 64
  private static let usualCount = 20

  func validate() throws {
    guard ring == nil else {
      let most = Self.megabytesMaximum
      guard (megabytes ?? Self.usualMegabytes) <= most else {
        throw ValidationError(
          "--ring-megabytes is from 1 to \(most) here, half of this machine's memory.")
      }
      return
    }
    let given = [
      (!wishes.isEmpty, "--on"), (megabytes != nil, "--ring-megabytes"),
      (count != nil, "--ring-count"), (replaces, "--ring-replace"),
    ]
    if let option = given.first(where: { $0.0 })?.1 {
      throw ValidationError("\(option) needs --ring: add --ring 60s, or leave it out.")
    }
  }

  private static var megabytesMaximum: Int {
    max(1, Int(clamping: ProcessInfo.processInfo.physicalMemory) / 2_000_000)
  }

  /// Parses a reason to write a take: a finding or a condition.
  private static let wish: Taking.Reader<RingWish> = { word in
    let wanted = "finding, finding:SEVERITY, finding:ID, or a condition of replay --until"
    guard (1...Taking.textLimit).contains(word.utf8.count) else {
      throw Taking.Refusal("it is \(wanted), from 1 to \(Taking.textLimit) bytes long")
    }
    if word == "finding" { return .severity(.medium) }
    if word.hasPrefix("finding:") {
      let name = String(word.dropFirst(8))
      if let severity = FindingSeverity(name: name) { return .severity(severity) }
      let known = FindingRule.all.map(\.id)
      guard known.contains(name) else {
        let names = FindingSeverity.allCases.map(\.name) + known
        throw Taking.Refusal(
          "\(CommandReading.shown(name)) is neither a severity nor a rule"
            + Nearest.hint(name, among: names))
      }
      return .finding(name)
    }
    let condition = try StepCondition(word)
    guard !condition.stopsBefore else {
      throw Taking.Refusal("a time or a step cannot be searched for: give \(wanted)")
    }
    return .condition(condition)
  }

  /// Creates the plan of a flight recorder; nil without `--ring`.
  ///
  /// - Parameters:
  ///   - take: the label, the tags and other settings for its takes.
  ///   - adjust: changes the settings.
  func plan(
    _ take: ImportSettings, isVirtual: Bool = false,
    adjust: (inout RingPlan.Settings) -> Void = { _ in }
  ) -> RingPlan? {
    guard let ring else { return nil }
    var settings = RingPlan.Settings()
    settings.length = Interval(nanoseconds: Int64(ring * 1e9))
    settings.bytesMaximum = (megabytes ?? Self.usualMegabytes) * 1_000_000
    settings.takesMaximum = count ?? Self.usualCount
    settings.removesOldest = replaces
    settings.wishes = wishes
    settings.take = take
    adjust(&settings)
    let plan = RingPlan(settings) { sentence in
      Progress.clearLine()
      printError("retake: \(sentence)")
    }
    guard !isVirtual else { return plan }
    SignalWatch.on([SIGUSR1]) { _ in plan.writeAll(.signal("SIGUSR1")) }
    printError(
      "the last \(decimal(ring, 1)) s are kept in at most "
        + "\(megabytes ?? Self.usualMegabytes) MB of memory; kill -USR1 \(getpid()) writes them")
    return plan
  }
}

extension RecordOptions {
  /// Creates the plan of a flight recorder for endpoints; nil without `--ring`.
  func ringPlan(isVirtual: Bool = false) -> RingPlan? {
    ring.plan(session.importSettings, isVirtual: isVirtual) { $0.isSynchronous = isVirtual }
  }
}
