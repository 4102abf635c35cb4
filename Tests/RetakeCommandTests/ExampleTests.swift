import ArgumentParser
import Foundation
import Testing

@testable import RetakeCommand

/// Command lines that a person copies from help, README and the articles are read as they stand.
struct ExampleTests {
  /// A command line, and where it stands.
  private struct Example {
    var place: String
    var line: String
  }

  @Test func everyExampleCanBePasted() throws {
    let examples = Self.examplesOfHelp(Retake.self, ["retake"]) + (try Self.examplesOfPages())
    #expect(examples.count > 100)
    for example in examples {
      guard let words = Self.words(example.line) else {
        Issue.record("\(example.place): \(example.line): a quote has no end")
        continue
      }
      do {
        // A key stands there as a word, and a secret in a file that is not here.
        let key = String(repeating: "A", count: 40)
        let meant = words.dropFirst().map { word in
          guard word.hasPrefix("@") else { return word.replacing("=KEY", with: "=\(key)") }
          return word.hasSuffix(".secret") ? "key:secret" : "secret"
        }
        _ = try CommandReading.read(Array(meant))
      } catch {
        guard CommandReading.text(of: error) == nil else { continue }
        Issue.record(
          "\(example.place): \(example.line): \(CommandReading.failure(of: error, words))")
      }
    }
  }

  /// Help is wrapped at 80 columns: what is longer would be cut in two where it is copied.
  @Test func noExampleOfHelpIsWrapped() {
    func check(_ command: any ParsableCommand.Type, _ path: String) {
      for line in command.configuration.discussion.split(separator: "\n")
      where line.hasPrefix("  ") {
        #expect(line.count <= 80, "\(path) --help: \(line)")
      }
      for subcommand in command.configuration.subcommands {
        check(subcommand, "\(path) \(subcommand._commandName)")
      }
    }
    check(Retake.self, "retake")
  }

  private static func examplesOfHelp(
    _ command: any ParsableCommand.Type, _ path: [String]
  ) -> [Example] {
    let configuration = command.configuration
    let own = lines(of: configuration.discussion).map {
      Example(place: path.joined(separator: " ") + " --help", line: $0)
    }
    return own
      + configuration.subcommands.flatMap { examplesOfHelp($0, path + [$0._commandName]) }
  }

  private static func examplesOfPages() throws -> [Example] {
    let articles = "Sources/Products/Retake/Retake.docc"
    let names = try FileManager.default.contentsOfDirectory(atPath: articles)
    let paths = ["README.md"] + names.filter { $0.hasSuffix(".md") }.map { "\(articles)/\($0)" }
    return try paths.flatMap { path in
      let text = try String(contentsOfFile: path, encoding: .utf8)
      return lines(of: text).map { Example(place: path, line: $0) }
    }
  }

  /// The lines that begin with the program's name, each with those that a backslash adds to it.
  private static func lines(of text: String) -> [String] {
    var found: [String] = []
    var isOpen = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let words = line.trimmingCharacters(in: .whitespaces)
      if isOpen {
        found[found.count - 1] += " " + words.replacing("\\", with: "")
      } else if line.hasPrefix("  "), isCommand(words) {
        found.append(words.hasSuffix("\\") ? String(words.dropLast()) : words)
      } else {
        continue
      }
      isOpen = words.hasSuffix("\\")
    }
    // What continues behind a pipe, a comment or a redirection is the shell's.
    return found.map { line in
      ["  #", " | ", " > ", " 2>", " && ", " &"].reduce(line) { line, end in
        line.range(of: end).map { String(line[..<$0.lowerBound]) } ?? line
      }
    }
  }

  /// Tables of figures have lines that begin with the name, too.
  private static func isCommand(_ line: String) -> Bool {
    let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    return words.count > 1 && words[0] == "retake"
      && words[1].range(of: "^[a-z-]+$", options: .regularExpression) != nil
  }

  /// The words of a line of the shell; nil when a quote has no end.
  private static func words(_ line: String) -> [String]? {
    var words: [String] = []
    var word: String?
    var quote: Character?
    for character in line {
      if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        quote = character
        word = word ?? ""
      } else if character == " " {
        if let whole = word { words.append(whole) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    if let whole = word { words.append(whole) }
    return quote == nil ? words : nil
  }
}
