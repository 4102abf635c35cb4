import FaultyCalls
import Foundation

/// Makes the takes of a fleet: short calls of all kinds in virtual time, one folder a day over
/// thirty days, with the tags that a test farm would add.
///
/// Existing takes stay, so that an interrupted run continues where it stopped.
struct FleetTakes {
  let folder: String
  let seed: UInt64
  /// The program that makes takes from captures and from other stacks' files.
  let retake: String

  private static let days = 30

  /// Makes a shard's calls, and prints how many takes there are of each kind.
  func make(_ count: Int, shard: (number: Int, count: Int)) throws {
    let began = Date()
    var made = 0
    var counts: [FleetKind: Int] = [:]
    for number in 0..<count where number % shard.count == shard.number - 1 {
      let day = number % Self.days
      let name = String(format: "%02d", day + 1)
      let place = "\(folder)/day-\(name)"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let path = place + String(format: "/call-%05d.take", number)
      let call = FleetCall(number, day: day, seed: seed)
      counts[call.kind, default: 0] += 1
      guard !FileManager.default.fileExists(atPath: path) else { continue }
      let unfinished = path + ".new"
      try? FileManager.default.removeItem(atPath: unfinished)
      try call.make(unfinished, with: retake)
      try FileManager.default.moveItem(atPath: unfinished, toPath: path)
      made += 1
      if made.isMultiple(of: 100) { say("\(made) takes", began) }
    }
    let all = counts.values.reduce(0, +)
    for kind in FleetKind.allCases {
      let share = 1000 * counts[kind, default: 0] / max(1, all)
      say("\(counts[kind, default: 0]) of \(kind.name) (\(share / 10).\(share % 10) %)")
    }
    say("\(made) takes in \(folder)", began)
  }

  private func say(_ text: String, _ began: Date? = nil) {
    print(text + (began.map { ", \(Int(Date().timeIntervalSince($0))) s" } ?? ""))
    fflush(nil)
  }
}
