import FaultyCalls
import Foundation
import Queries
import Tape

/// A made call, its findings, and the verdict on them.
struct JudgedCall {
  enum Verdict: String {
    case first, named, symptom, unnamed, good
    case falseAlarm = "false alarm"
  }

  var name: String
  /// The seed that the call was drawn from; `--plan` makes the same call again from it.
  var seed: UInt64
  var severity: String
  /// The findings' ids and severities, worst first.
  var findings: [String]
  var verdict: Verdict
  var seconds: Double
}

/// Makes calls and judges their findings.
struct FaultRun {
  let folder: String
  let seed: UInt64
  let keeps: Bool
  let shows: Bool
  /// Who records the faults; nil lets the seed decide.
  let sight: FaultSight?
  /// The path of `retake`, which makes a take from captured packets.
  let retake: String

  func seed(of number: UInt64) -> UInt64 { seed &* 1_000_003 &+ number &* 101 }

  /// Makes a call with a fault, drawing again until the fault has enough effect.
  func faulty(_ kind: FaultKind, seed first: UInt64, attempts: UInt64 = 40) throws -> JudgedCall {
    let began = Date()
    var severity = ""
    var (recorded, culprit, seed): (Int?, Int, UInt64) = (nil, 0, first)
    let path = "\(folder)/\(kind.rawValue)-\(first).take"
    for attempt in 0..<attempts {
      try? FileManager.default.removeItem(atPath: path)
      seed = first &+ attempt
      let plan = FaultPlan(kind, seed: seed, sight: sight)
      let made = try FaultyCall.make(plan, path: path)
      (recorded, culprit) = (plan.recorded, plan.culprit)
      severity =
        made.severity + " (\(["alice", "bob"][plan.culprit])"
        + (plan.recorded.map { ", seen by \(["alice", "bob"][$0])" } ?? "") + ")"
      if made.isTouched { break }
      severity += " [too little]"
    }
    if sight?.isWire == true {
      severity += ", on the wire"
      try WireSight.replace(path, with: retake)
    }
    let findings = try Finder.findings(of: path)
    if shows { print(try TakeFindings(path: path).text()) }
    if !keeps { try? FileManager.default.removeItem(atPath: path) }
    let accepted = AcceptedFindings.of(kind, recorded: recorded, culprit: culprit)
    let place = findings.firstIndex { accepted.contains($0.id) }
    let verdict: JudgedCall.Verdict =
      switch place {
      case 0?: .first
      case _?: .named
      case nil: findings.contains { $0.isLoud } ? .symptom : .unnamed
      }
    return JudgedCall(
      name: kind.rawValue, seed: seed, severity: severity, findings: findings.map(\.text),
      verdict: verdict,
      seconds: Date().timeIntervalSince(began))
  }

  /// Makes a call without faults; any finding worse than "low" is a false alarm.
  func good(_ kind: GoodKind, seed: UInt64) throws -> JudgedCall {
    let began = Date()
    let path = "\(folder)/good-\(kind.rawValue)-\(seed).take"
    try? FileManager.default.removeItem(atPath: path)
    try GoodCall.make(kind, seed: seed, path: path)
    let findings = try Finder.findings(of: path)
    if shows { print(try TakeFindings(path: path).text()) }
    if !keeps { try? FileManager.default.removeItem(atPath: path) }
    return JudgedCall(
      name: kind.rawValue, seed: seed, severity: "nothing wrong", findings: findings.map(\.text),
      verdict: findings.contains { $0.isLoud } ? .falseAlarm : .good,
      seconds: Date().timeIntervalSince(began))
  }
}

/// The parts of a finding that are judged.
struct FoundThing {
  var id: String
  /// Whether the finding is worse than "low".
  var isLoud: Bool
  var text: String
}

/// Queries a take's findings.
enum Finder {
  static func findings(of path: String) throws -> [FoundThing] {
    try TakeFindings(path: path).findings.map { finding in
      let symptoms = finding.ids.dropFirst()
      return FoundThing(
        id: finding.id, isLoud: finding.severity > .low,
        text: "\(finding.id) (\(finding.severity.name)"
          + (symptoms.isEmpty ? ")" : "; \(symptoms.joined(separator: ", ")))"))
    }
  }
}
