import FaultyCalls
import Foundation

/// Makes calls with one known fault each, and some without, and judges the findings in their takes.
///
///     findings --seed 7 --faults 40 --good 10 --folder .build/findings
///
/// With `--only KIND` every call has that fault, and `--seen WHO` chooses its recorder; with
/// `--keep` the takes stay, and `--show` prints all of their findings. A line names its call's
/// seed, and `--plan KIND:NUMBER` makes only that call. The exit status is 1 if the first finding
/// names the fault in fewer than nine of ten calls, if a fault is not named at all, or if a call
/// without a fault has a finding worse than "low".
///
/// With `--fleet N` it makes takes of N short calls of all kinds instead, dated over thirty days
/// and tagged, and judges nothing; `--shard 1/2` makes half of them.
@main
struct Findings {
  private var seed: UInt64 = 1
  private var faults = 40
  private var good = 10
  private var folder = ".build/findings"
  private var only: [FaultKind] = []
  private var keeps = false
  private var shows = false
  private var sight: FaultSight?
  private var retake = ".build/debug/retake"
  private var fleet = 0
  private var shard = (number: 1, count: 1)
  private var plans: [Substring] = []

  static func main() throws {
    var findings = Findings()
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "--seed": findings.seed = words.popFirst().flatMap { UInt64($0) } ?? 1
      case "--faults": findings.faults = words.popFirst().flatMap { Int($0) } ?? 0
      case "--good": findings.good = words.popFirst().flatMap { Int($0) } ?? 0
      case "--folder": findings.folder = words.popFirst() ?? ""
      case "--only":
        let names = (words.popFirst() ?? "").split(separator: ",")
        findings.only = names.compactMap { FaultKind(rawValue: String($0)) }
      case "--keep": findings.keeps = true
      case "--fleet": findings.fleet = words.popFirst().flatMap { Int($0) } ?? 0
      case "--shard":
        let parts = (words.popFirst() ?? "").split(separator: "/").compactMap { Int($0) }
        if parts.count == 2, parts[1] > 0 { findings.shard = (parts[0], parts[1]) }
      case "--show": findings.shows = true
      case "--seen": findings.sight = words.popFirst().flatMap { FaultSight(rawValue: $0) }
      case "--plan": findings.plans += (words.popFirst() ?? "").split(separator: ",")
      case "--retake": findings.retake = words.popFirst() ?? ""
      default:
        print(
          "findings: \(word) is none of --seed --faults --good --folder --only --seen --plan "
            + "--keep --show --fleet --shard"
        )
        exit(2)
      }
    }
    if findings.fleet > 0 {
      try FleetTakes(
        folder: findings.folder, seed: findings.seed, retake: findings.retake
      ).make(findings.fleet, shard: findings.shard)
      exit(0)
    }
    exit(try findings.run() ? 0 : 1)
  }

  /// Makes and judges all calls; returns whether the findings meet the requirements above.
  private func run() throws -> Bool {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let run = FaultRun(
      folder: folder, seed: seed, keeps: keeps, shows: shows, sight: sight, retake: retake)
    if !plans.isEmpty { return try total(plans.flatMap { try again(run, $0) }) }
    let chance = Chance(seed, "kinds")
    var kinds: [FaultKind] = []
    while kinds.count < faults {
      kinds += chance.shuffled(only.isEmpty ? FaultKind.allCases : only)
    }
    var judged: [JudgedCall] = []
    for (number, kind) in kinds.prefix(faults).enumerated() {
      let call = try run.faulty(kind, seed: run.seed(of: UInt64(number)))
      show(call)
      judged.append(call)
    }
    let goodKinds = chance.shuffled(GoodKind.allCases)
    for number in 0..<good {
      let call = try run.good(
        goodKinds[number % goodKinds.count], seed: seed &* 1_000_003 &+ UInt64(number))
      show(call)
      judged.append(call)
    }
    return total(judged)
  }

  /// Makes an earlier call again, from its kind and seed.
  private func again(_ run: FaultRun, _ plan: Substring) throws -> [JudgedCall] {
    let parts = plan.split(separator: ":").map(String.init)
    guard parts.count == 2, let seed = UInt64(parts[1]) else { return [] }
    if let kind = FaultKind(rawValue: parts[0]) {
      let call = try run.faulty(kind, seed: seed, attempts: 1)
      show(call)
      return [call]
    }
    guard let kind = GoodKind(rawValue: parts[0]) else { return [] }
    let call = try run.good(kind, seed: seed)
    show(call)
    return [call]
  }

  private func show(_ call: JudgedCall) {
    let findings = call.findings.isEmpty ? "-" : call.findings.prefix(4).joined(separator: "; ")
    print(
      "\(padded(call.verdict.rawValue, 12))\(padded(call.name, 20))\(call.severity), \(call.seed)\n"
        + "            \(findings)"
        + (call.findings.count > 4 ? "; and \(call.findings.count - 4) more" : ""))
    fflush(nil)
  }

  private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  private func total(_ judged: [JudgedCall]) -> Bool {
    func count(_ verdict: JudgedCall.Verdict) -> Int { judged.count { $0.verdict == verdict } }
    let (first, named) = (count(.first), count(.named))
    let unnamed = count(.symptom) + count(.unnamed)
    let all = first + named + unnamed
    let alarms = count(.falseAlarm)
    let seconds = judged.reduce(0) { $0 + $1.seconds }
    print(
      """

      seed \(seed): \(all) faults; first finding right \(first), named further down \(named), \
      not named \(unnamed) (\(count(.symptom)) of them with symptoms); \
      \(judged.count - all) good calls, \(alarms) with a false alarm; \(Int(seconds)) s
      """)
    return first * 10 >= all * 9 && unnamed == 0 && alarms == 0
  }
}
