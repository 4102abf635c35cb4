import FaultyCalls
import Foundation
import Queries
import Tape

/// A call that was made and what was found in it.
struct JudgedCall {
  enum Verdict: String {
    case first, named, symptom, unnamed, good
    case falseAlarm = "false alarm"
  }

  var name: String
  var severity: String
  /// What was found, worst first: the id and how bad it is.
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

  /// A call with a fault, drawn again until the fault touched enough.
  func faulty(_ kind: FaultKind, number: UInt64) throws -> JudgedCall {
    let began = Date()
    var severity = ""
    let path = "\(folder)/\(number)-\(kind.rawValue).take"
    for attempt: UInt64 in 0..<8 {
      try? FileManager.default.removeItem(atPath: path)
      let plan = FaultPlan(kind, seed: seed &* 1_000_003 &+ number &* 101 &+ attempt)
      let made = try FaultyCall.make(plan, path: path)
      severity =
        made.severity + " (\(["alice", "bob"][plan.culprit])"
        + (plan.recorded.map { ", seen by \(["alice", "bob"][$0])" } ?? "") + ")"
      if made.isTouched { break }
      severity += " [too little]"
    }
    let findings = try Finder.findings(of: path)
    if shows { print(try TakeFindings(path: path).text()) }
    if !keeps { try? FileManager.default.removeItem(atPath: path) }
    let accepted = AcceptedFindings.of(kind)
    let place = findings.firstIndex { accepted.contains($0.id) }
    let verdict: JudgedCall.Verdict =
      switch place {
      case 0?: .first
      case _?: .named
      case nil: findings.contains { $0.isLoud } ? .symptom : .unnamed
      }
    return JudgedCall(
      name: kind.rawValue, severity: severity, findings: findings.map(\.text), verdict: verdict,
      seconds: Date().timeIntervalSince(began))
  }

  /// A call in which nothing is wrong.
  func good(_ kind: GoodKind, number: UInt64) throws -> JudgedCall {
    let began = Date()
    let path = "\(folder)/good-\(number)-\(kind.rawValue).take"
    try? FileManager.default.removeItem(atPath: path)
    try GoodCall.make(kind, seed: seed &* 1_000_003 &+ number, path: path)
    let findings = try Finder.findings(of: path)
    if shows { print(try TakeFindings(path: path).text()) }
    if !keeps { try? FileManager.default.removeItem(atPath: path) }
    return JudgedCall(
      name: kind.rawValue, severity: "nothing wrong", findings: findings.map(\.text),
      verdict: findings.contains { $0.isLoud } ? .falseAlarm : .good,
      seconds: Date().timeIntervalSince(began))
  }
}

/// A finding as the judge looks at it.
struct FoundThing {
  var id: String
  /// Whether it is worse than "low".
  var isLoud: Bool
  var text: String
}

/// Asks for the findings of a take.
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
