import ArgumentParser
import FoundationEssentials
import Replay
import Wire

/// Parses command lines into commands.
enum CommandReading {
  /// Parses a command line without the program's name.
  ///
  /// - Throws: an error that `failure` converts to a sentence with status 64, for anything invalid.
  static func read(_ words: [String]) throws -> any ParsableCommand {
    try checkVerb(words)
    try checkNames(words)
    return try Retake.parseAsRoot(joined(words))
  }

  /// Returns the text that an error represents: help, the version, completions; nil for other
  /// errors.
  static func text(of error: any Error) -> String? {
    guard !(error is CommandFailure), Retake.exitCode(for: error) == .success else { return nil }
    return Retake.fullMessage(for: error)
  }

  /// Converts an error from `read` to a failure: the parser's message as one sentence, and where to
  /// find help.
  static func failure(of error: any Error, _ words: [String]) -> CommandFailure {
    if let failure = error as? CommandFailure { return failure }
    // The parser adds its suggestion as a second sentence.
    var sentence = oneLine(cut(Retake.message(for: error)))
      .replacing(". Did you mean", with: "; did you mean")
      .replacing(". Please provide one of", with: ": give one of")
    if sentence.hasSuffix(".") { sentence.removeLast() }
    let path = verbs(of: words).joined(separator: " ")
    return CommandFailure(.usage, "\(sentence) (see \(path) --help)")
  }

  // MARK: Verbs

  /// Refuses an unknown verb, and suggests similar ones.
  private static func checkVerb(_ words: [String]) throws(CommandFailure) {
    var command: any ParsableCommand.Type = Retake.self
    var path = ["retake"]
    // The argument to `help` is a verb too.
    for word in words.first == "help" ? words.dropFirst() : words[...] {
      let verbs = command.configuration.subcommands
      guard !verbs.isEmpty, !word.hasPrefix("-") else { return }
      guard let verb = verbs.first(where: { names(of: $0).contains(word) }) else {
        if word == "help" || command.configuration.defaultSubcommand != nil { return }
        let known = verbs.filter { $0.configuration.shouldDisplay }
          .compactMap { names(of: $0).first }
        throw CommandFailure(
          .usage,
          "\(path.joined(separator: " ")) has no verb \"\(shown(word))\""
            + Nearest.hint(word, among: known)
            + " (see \(path.joined(separator: " ")) --help)")
      }
      path.append(word)
      command = verb
    }
  }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    [command._commandName] + command.configuration.aliases
  }

  // MARK: Words

  /// Refuses very long option names, because the search for similar names is slow.
  private static func checkNames(_ words: [String]) throws(CommandFailure) {
    for word in words.prefix(while: { $0 != "--" }) where word.hasPrefix("-") {
      let isShort = word.utf8.prefix(nameLimit).contains(UInt8(ascii: "="))
      guard word.utf8.count > nameLimit, !isShort else { continue }
      throw CommandFailure(
        .usage, "\(shown(word)) is not an option: names have at most \(nameLimit) characters")
    }
  }

  private static let nameLimit = 200

  /// Joins negative numbers to the option before them, so that `--seconds -1` is refused as an
  /// invalid time rather than as an unknown option -1; splits `--out=` into the option and an empty
  /// value.
  private static func joined(_ words: [String]) throws(CommandFailure) -> [String] {
    var joined: [String] = []
    var isOver = false
    for word in words {
      isOver = isOver || word == "--"
      if !isOver, isNegative(word) {
        guard let last = joined.last, isBareOption(last) else {
          throw CommandFailure(
            .usage, "\(shown(word)) is not an option; a file of that name is ./\(shown(word))")
        }
        joined[joined.count - 1] = "\(last)=\(word)"
      } else if !isOver, word.hasPrefix("--"), word.utf8.last == UInt8(ascii: "=") {
        joined += [String(word.dropLast()), ""]
      } else {
        joined.append(word)
      }
    }
    return joined
  }

  private static func isBareOption(_ word: String) -> Bool {
    word.hasPrefix("--") && word != "--" && !word.utf8.contains(UInt8(ascii: "="))
  }

  private static func isNegative(_ word: String) -> Bool {
    guard word.hasPrefix("-"), let first = word.dropFirst().first else { return false }
    return first.isNumber || first == "." || Double(word.prefix(nameLimit)) != nil
  }

  // MARK: Sentences

  /// Returns the verbs at the start of a command line, preceded by the program's name.
  static func verbs(of words: [String]) -> [String] {
    var command: any ParsableCommand.Type = Retake.self
    var path = ["retake"]
    for word in words {
      guard
        let verb = command.configuration.subcommands.first(where: { names(of: $0).contains(word) })
      else { break }
      path.append(verb._commandName)
      command = verb
    }
    return path
  }

  /// Shortens a long message in the middle, where a typed value may be.
  private static func cut(_ message: String) -> String {
    guard message.utf8.count > messageLimit else { return message }
    let (head, tail) = (message.utf8.prefix(shownLimit), message.utf8.suffix(messageLimit))
    let words = String(decoding: tail, as: UTF8.self)
    let end = words.ranges(of: "' is invalid for '").first.map { words[$0.lowerBound...] } ?? "'"
    return String(decoding: head, as: UTF8.self) + "...(\(message.utf8.count) bytes)" + end
  }

  private static let messageLimit = 1_200
  private static let shownLimit = 80

  /// Returns a typed word as messages show it, on one line and of limited length.
  static func shown(_ word: String) -> String {
    guard word.utf8.count > shownLimit else { return oneLine(word) }
    let head = String(decoding: word.utf8.prefix(shownLimit), as: UTF8.self)
    return oneLine(head) + "...(\(word.utf8.count) bytes)"
  }

  /// Returns the text as one line, without control characters.
  static func oneLine(_ text: String) -> String { PrintableText.line(text) }
}
