import ArgumentParser
import Foundation
import Queries
import Stats
import Tape
import Wire

/// Stats reports out of a take.
struct StatsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Show the W3C stats of every peer, at the end of the take or at any second of it.",
    discussion: """
      Examples:
        retake stats call.take
        retake stats call.take --at 12.5 --type inbound-rtp --json
        retake stats call.take --problems
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "The time in seconds since the take began.")
  var at: Double?

  @Option(help: "Only objects of this type; may be given several times.")
  var type: [String] = []

  @Flag(help: "Name what went wrong instead: when, the evidence, and the SQL that finds it.")
  var problems = false

  func validate() throws {
    if problems, at != nil || !type.isEmpty {
      throw ValidationError("--problems looks at the whole take; leave out --at and --type.")
    }
    if let at, !(0...1e9).contains(at) {
      throw ValidationError("--at takes a time in seconds, not \(at).")
    }
  }

  func run() throws {
    if problems {
      let found = try reading { () throws(TapeError) in try TakeProblems(path: options.take) }
      print(options.json ? found.json : found.text)
      return
    }
    let instant = at.map { Instant(nanoseconds: Int64($0 * 1e9)) }
    let samples = try reading { () throws(TapeError) in
      try StatSamples(path: options.take, at: instant)
    }
    if samples.peers.allSatisfy(\.objects.isEmpty) {
      throw CommandFailure(
        .difference,
        "\(options.take): stat: no stats were sampled \(at.map { "before \($0) s" } ?? "")"
          + "; give a later --at")
    }
    let types = Set(samples.peers.flatMap(\.objects).map(\.type)).sorted()
    if let unknown = type.first(where: { !types.contains($0) }) {
      throw CommandFailure(
        .usage,
        "\(options.take): --type \(unknown): no such stats; there are "
          + types.joined(separator: ", "))
    }
    print(options.json ? json(samples) : text(samples))
  }

  private func isWanted(_ object: StatSamples.Object) -> Bool {
    type.isEmpty || type.contains(object.type)
  }

  /// An object of the peers' labels, each with the array that getStats gives.
  private func json(_ samples: StatSamples) -> String {
    let peers = samples.peers.map { peer in
      let objects = peer.objects.filter(isWanted).map(\.json)
      return "\(jsonString(peer.label)):[\(objects.joined(separator: ","))]"
    }
    return "{\(peers.joined(separator: ","))}"
  }

  private func text(_ samples: StatSamples) -> String {
    var lines: [String] = []
    for peer in samples.peers {
      lines.append(peer.label)
      for object in peer.objects where isWanted(object) {
        lines.append("  \(object.type)  \(object.id)")
        for (name, value) in members(object.members) {
          lines.append("    \(name.padding(toLength: 36, withPad: " ", startingAt: 0))\(value)")
        }
      }
    }
    return lines.joined(separator: "\n")
  }

  /// The members of an object in their order; the text is made by Retake itself.
  private func members(_ json: String) -> [(String, String)] {
    guard
      let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    else { return [] }
    // JSONSerialization loses the order of members, their places in the text give it back.
    let places = object.keys.map { key in
      (key, json.range(of: "\(jsonString(key)):")?.lowerBound ?? json.endIndex)
    }
    return places.sorted { $0.1 < $1.1 }.map { key, _ in (key, plain(object[key])) }
  }

  private func plain(_ value: Any?) -> String {
    guard let text = value as? String else { return value.map { "\($0)" } ?? "" }
    return text.count > 80 ? "\(text.prefix(77))..." : text
  }
}
