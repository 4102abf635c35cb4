import ArgumentParser
import Foundation
import Testing

@testable import RetakeCommand

/// Runs every option and argument of every verb with hostile values: each command must fail with
/// exactly one sentence, or succeed.
///
/// The options come from the parser itself, so new ones are included. Parsing is slow in a debug
/// build, because the parser validates the commands each time. By default, one command line in
/// seven is tested; `make sweep` tests all of them.
struct SweepTests {
  private static let isWhole = ProcessInfo.processInfo.environment["RETAKE_SWEEP"] == "whole"

  // MARK: Parser output

  /// The output of `--experimental-dump-help`.
  private struct Dump: Decodable {
    var command: Verb
  }

  private struct Verb: Decodable {
    var commandName: String
    var subcommands: [Verb]?
    var arguments: [Argument]?
  }

  private struct Argument: Decodable {
    struct Name: Decodable {
      var kind: String
      var name: String
    }

    var kind: String
    var valueName: String?
    var names: [Name]?
    var isOptional: Bool
    var allValues: [String]?

    /// The option's name, such as `--seconds`; nil for a positional argument.
    var option: String? {
      names?.first { $0.kind == "long" }.map { "--\($0.name)" }
    }
  }

  private static func tree() throws -> Verb {
    do {
      _ = try Retake.parse(["--experimental-dump-help"])
    } catch {
      let text = Retake.fullMessage(for: error)
      return try JSONDecoder().decode(Dump.self, from: Data(text.utf8)).command
    }
    throw CancellationError()
  }

  /// Returns the verbs without subcommands, with the words that lead to them.
  private static func verbs(_ verb: Verb, _ path: [String] = []) -> [([String], [Argument])] {
    let below = (verb.subcommands ?? []).filter { $0.commandName != "help" }
    guard below.isEmpty else { return below.flatMap { verbs($0, path + [$0.commandName]) } }
    return [(path, verb.arguments ?? [])]
  }

  // MARK: Values

  private static let long = String(repeating: "x", count: 1 << 20)

  /// Hostile values, each with a name.
  private static let hostile: [(name: String, value: String)] = [
    ("nan", "nan"), ("-nan", "-nan"), ("inf", "inf"), ("-inf", "-inf"),
    ("-1", "-1"), ("-0.5", "-0.5"), ("-1s", "-1s"), ("1e308", "1e308"), ("1e-320", "1e-320"),
    ("2^63", "9223372036854775808"), ("2^64", "18446744073709551616"), ("0x10", "0x10"),
    ("empty", ""), ("NUL", "a\0b"), ("line feed", "a\nb"), ("escape", "\u{1b}[2J"),
    ("1 MB", long), ("1 MB of digits", String(repeating: "9", count: 1 << 20)),
    ("wrong unit", "5 parsecs"), ("reversed", "packet rtp from=2s to=1s"),
    ("reversed steps", "packet rtp from=step:9 to=step:3"), ("reversed sizes", "360x0"),
    ("half", "1.5x"), ("equals", "="),
    ("port", "127.0.0.1:65536"), ("dash", "-"), ("arabic digits", "\u{0663}\u{0664}"),
    ("every=0", "packet every=0"), ("share=nan", "packet share=nan"),
    ("probability=nan", "packet probability=nan"),
    ("delay", "nanms packet"), ("long delay", "1e300s packet"), ("name=value", "mtu=-1"),
  ]

  /// Returns a valid value for an argument, so that other values can be tested.
  private static func good(_ argument: Argument, in path: [String]) -> String {
    switch argument.valueName {
    case "url", "urls":
      ["janus", "sora", "room"].contains(path.last)
        ? "ws://127.0.0.1:9/none" : "http://127.0.0.1:9/none"
    case "query": "SELECT 1"
    default: "/nonexistent/\(argument.valueName ?? "x").take"
    }
  }

  /// The option that a relay requires.
  private static let upstream = ["--upstream", "https://127.0.0.1:9"]

  /// Returns the words that a verb, or one of its options, requires.
  private static func more(_ path: [String], with option: String = "") -> [String] {
    let words: [String] =
      switch (path.last, option) {
      case ("upgrade", _), ("import", _), ("redact", _): ["--out", "/nonexistent/new.take"]
      case ("export", _): ["--pcap", "/nonexistent/new.pcap"]
      case ("janus", _), ("room", _): ["--room", "1"]
      case ("sora", _): ["--channel", "1"]
      case ("pcap", "--read"), ("pcap", "--interface"): []
      case ("pcap", _): ["--interface", "lo"]
      case ("whatif", _): ["--drop", "packet"]
      case ("relay", "--upstream"): []
      case ("relay", "--certificate"): Self.upstream + ["--key", "/nonexistent/key"]
      case ("relay", "--key"): Self.upstream + ["--certificate", "/nonexistent/certificate"]
      case ("relay", _): Self.upstream
      case ("serve", "--certificate"): ["--key", "/nonexistent/key"]
      case ("serve", "--key"): ["--certificate", "/nonexistent/certificate"]
      case ("serve", "--say-channels"): ["--say", "1"]
      default: []
      }
    return words.first == option ? [] : words
  }

  /// A command line with one hostile value.
  private struct Line: Sendable {
    var words: [String]
    var option: String
    /// The hostile value's name.
    var name: String
  }

  /// Returns the command lines of all verbs.
  ///
  /// If several verbs share an option, the hostile values are distributed among them.
  private static func lines() throws -> [Line] {
    var lines: [Line] = []
    var turns: [String: Int] = [:]
    let verbs = verbs(try tree())
    let sharing = Dictionary(
      verbs.flatMap { path, arguments in
        arguments.compactMap { $0.option.map { ("\(path[0]) \($0)", 1) } }
      }, uniquingKeysWith: +)
    for (place, (path, arguments)) in verbs.enumerated() {
      let positional = arguments.filter { $0.kind == "positional" }
      let needed = positional.map { good($0, in: path) }
      let options = arguments.compactMap { $0.kind == "option" ? $0.option : nil }
      for option in options {
        let key = "\(path[0]) \(option)"
        let (turn, count) = (turns[key, default: 0], sharing[key] ?? 1)
        turns[key] = turn + 1
        for (index, (name, value)) in hostile.enumerated() where index % count == turn {
          // Alternates between the two ways to write an option.
          let words = index / 2 % 2 == 0 ? [option, value] : ["\(option)=\(value)"]
          let rest = more(path, with: option)
          lines.append(Line(words: path + needed + rest + words, option: option, name: name))
        }
      }
      // Most positional arguments are paths of takes, which all verbs read in the same way, so each
      // verb gets a fifth of the values.
      for (number, (name, value)) in hostile.enumerated() where number % 5 == place % 5 {
        for index in positional.indices {
          var words = needed
          words[index] = value
          let option = positional[index].valueName ?? ""
          lines.append(Line(words: path + more(path) + words, option: option, name: name))
        }
      }
    }
    return lines
  }

  // MARK: Tests

  /// One in this many command lines is tested by default; a prime number.
  private static let step = 7

  /// A refusal is one sentence that names the option and its allowed values.
  @Test func hostileValuesAreRefusedInOneSentence() async throws {
    let all = try Self.lines()
    #expect(all.count >= 3_500)
    // If the step and the number of values have no common factor, every value is tested.
    #expect(Self.hostile.count % Self.step != 0)
    let lines = Self.isWhole ? all : stride(from: 0, to: all.count, by: Self.step).map { all[$0] }
    let (found, seconds, helpSeconds) = await withTaskGroup { group in
      for part in 0..<2 {
        group.addTask {
          var found: [Outcome] = []
          var (hostile, help) = (0.0, 0.0)
          for place in stride(from: part, to: lines.count, by: 2) {
            let begin = Self.processorSeconds
            found.append(Self.outcome(lines[place]))
            hostile += Self.processorSeconds - begin
            // After one line in eight, the verb's help is measured, so that both run under the same
            // load.
            guard place % 16 < 2 else { continue }
            let verbs = CommandReading.verbs(of: lines[place].words).dropFirst()
            let middle = Self.processorSeconds
            do {
              _ = try CommandReading.read(verbs + ["--help"])
            } catch {
              _ = CommandReading.text(of: error)
            }
            help += Self.processorSeconds - middle
          }
          return (found, hostile, help * 8)
        }
      }
      return await group.reduce(into: ([Outcome](), 0.0, 0.0)) { all, part in
        all = (all.0 + part.0, all.1 + part.1, all.2 + part.2)
      }
    }
    let refused = found.count { $0.isRefused }
    let faults = found.compactMap(\.fault)
    print(
      "sweep: \(lines.count) command lines, \(refused) refused, "
        + "\(Int(seconds * 1000)) ms of processors; as many of help \(Int(helpSeconds * 1000)) ms")
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    #expect(refused > lines.count / 2)
    // Processors differ, and in a debug build the parser uses most of the time. The limit is
    // therefore relative: a hostile line must not take much longer than its verb's help.
    #expect(seconds < 2 * helpSeconds)
  }

  /// The thread's processor time in seconds.
  private static var processorSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// A command line's result.
  private struct Outcome: Sendable {
    var isRefused = false
    /// The fault in that result; nil if it is correct.
    var fault: String?
  }

  /// Parses a command line; if its verb reads takes, runs it, though none of the takes exists.
  private static func outcome(_ line: Line) -> Outcome {
    do {
      var command = try CommandReading.read(line.words)
      // `answer-query` would limit the time and memory of this process.
      let isLive = ["record", "reenact", "open", "share-screen", "answer-query"]
        .contains(line.words[0])
      guard !isLive else { return Outcome() }
      do {
        try command.run()
        return Outcome(fault: "\(line.option) \(line.name): it ran without a take")
      } catch let failure as CommandFailure {
        let isTold = [.noSuchFile, .usage, .inputOutput, .invalidTake].contains(failure.status)
        return Outcome(
          fault: isTold && !failure.message.contains("\n")
            ? nil : "\(line.option) \(line.name): \(failure)")
      } catch {
        return Outcome(fault: "\(line.option) \(line.name): \(error)")
      }
    } catch {
      let failure = CommandReading.failure(of: error, line.words)
      return Outcome(isRefused: true, fault: fault(of: failure, line))
    }
  }

  /// Returns the fault in a refusal; nil if it is correct.
  private static func fault(of failure: CommandFailure, _ line: Line) -> String? {
    let lines = failure.message.split(separator: "\n", omittingEmptySubsequences: false)
    let sentence = lines.first ?? ""
    let wrong: [(Bool, String)] = [
      (failure.status != .usage, "status \(failure.status.rawValue)"),
      (lines.count != 1, "\(lines.count) lines"),
      (sentence.utf8.count > 1_000, "\(sentence.utf8.count) bytes"),
      (sentence.contains(". "), "more than one sentence"),
      (
        !sentence.contains(line.option) && !sentence.hasPrefix("\(line.name) is not an option"),
        "it does not say of what"
      ),
      (sentence.hasPrefix("Missing"), "the value was not looked at"),
    ]
    return wrong.first(where: \.0).map { fault in
      "\(line.words.prefix(2).joined(separator: " ")) \(line.option) \(line.name): \(fault.1): "
        + failure.message.prefix(300)
    }
  }

  /// Number options have limits, and a refusal names them.
  @Test func theRangeOfNumbersIsReported() throws {
    let asked: Set = [
      "--seconds", "--loss", "--frame-rate", "--peer", "--calls", "--at", "--jobs",
    ]
    var numeric: Set<String> = []
    var seen: Set<String> = []
    var place = 0
    for (path, arguments) in Self.verbs(try Self.tree()) {
      let names = arguments.filter { $0.kind == "positional" }
      let good = names.map { Self.good($0, in: path) }
      for option in arguments.compactMap({ $0.kind == "option" ? $0.option : nil }) {
        guard seen.insert("\(path[0]) \(option)").inserted else { continue }
        place += 1
        let isAsked = Self.isWhole || place.isMultiple(of: Self.step) || asked.contains(option)
        guard isAsked else { continue }
        let needed = good + Self.more(path, with: option)
        // An option that accepts 1 but refuses `nan` has a number. If both refusals are equal, they
        // do not concern the value (`sql --file` with a query).
        let one = Self.refusal(path + needed + [option, "1"])
        guard let refusal = Self.refusal(path + needed + [option, "nan"]),
          refusal.message != one?.message, one?.message.contains("for '\(option)") != true
        else { continue }
        for value in ["-1", "1e308"] {
          let sentence = Self.refusal(path + needed + [option, value])?.message ?? "nothing"
          #expect(
            sentence.contains("from ") && sentence.contains(" to ")
              || sentence.contains(" from 1 on"), "\(path) \(option) \(value): \(sentence)")
        }
        numeric.insert(option)
      }
    }
    #expect(numeric.isSuperset(of: asked))
  }

  private static func refusal(_ words: [String]) -> CommandFailure? {
    do {
      _ = try CommandReading.read(words)
      return nil
    } catch {
      return CommandReading.failure(of: error, words)
    }
  }
}
