import ArgumentParser
import Foundation
import Testing

@testable import RetakeCommand

/// Parses the command lines that users copy from help, README and the articles.
struct ExampleTests {
  /// A command line, and its source.
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
        // Replaces placeholders for keys, and secret files that do not exist here.
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

  /// Help is wrapped at 80 columns, so a longer line would be cut in two when copied.
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

  /// Returns the lines that start with the program's name, joined at backslashes.
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
    // Pipes, comments and redirections belong to the shell.
    return found.map { line in
      ["  #", " | ", " > ", " 2>", " && ", " &"].reduce(line) { line, end in
        line.range(of: end).map { String(line[..<$0.lowerBound]) } ?? line
      }
    }
  }

  /// Returns whether a line is a command; in tables of figures, other lines start with the
  /// program's name, too.
  private static func isCommand(_ line: String) -> Bool {
    let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    return words.count > 1 && words[0] == "retake"
      && words[1].range(of: "^[a-z-]+$", options: .regularExpression) != nil
  }

  /// Returns a shell line's words; nil if a quote is not closed.
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
