import ArgumentParser
import FoundationEssentials
import Replay
import Wire

/// Command lines, from the words that the shell gave to a command that can run.
enum CommandReading {
  /// Reads a command line, the name of the program left out.
  ///
  /// - Throws: what `failure` makes a sentence with status 64 of, for all that cannot be meant.
  static func read(_ words: [String]) throws -> any ParsableCommand {
    try checkVerb(words)
    try checkNames(words)
    return try Retake.parseAsRoot(joined(words))
  }

  /// The text that was asked for, where an error stands for one: help, the version, completions.
  static func text(of error: any Error) -> String? {
    guard !(error is CommandFailure), Retake.exitCode(for: error) == .success else { return nil }
    return Retake.fullMessage(for: error)
  }

  /// The failure that an error of `read` is: the parser's in one sentence, and where the help is.
  static func failure(of error: any Error, _ words: [String]) -> CommandFailure {
    if let failure = error as? CommandFailure { return failure }
    // The parser asks in a second sentence.
    var sentence = oneLine(cut(Retake.message(for: error)))
      .replacing(". Did you mean", with: "; did you mean")
      .replacing(". Please provide one of", with: ": give one of")
    if sentence.hasSuffix(".") { sentence.removeLast() }
    let path = verbs(of: words).joined(separator: " ")
    return CommandFailure(.usage, "\(sentence) (\(path) --help tells more)")
  }

  // MARK: Verbs

  /// Refuses a verb that is none, with those that are nearest to it.
  private static func checkVerb(_ words: [String]) throws(CommandFailure) {
    var command: any ParsableCommand.Type = Retake.self
    var path = ["retake"]
    // What help is asked of is a verb, too.
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
            + " (\(path.joined(separator: " ")) --help tells more)")
      }
      path.append(word)
      command = verb
    }
  }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    [command._commandName] + command.configuration.aliases
  }

  // MARK: Words

  /// Refuses what is far too long to be the name of an option: to look for one that is near takes
  /// long.
  private static func checkNames(_ words: [String]) throws(CommandFailure) {
    for word in words.prefix(while: { $0 != "--" }) where word.hasPrefix("-") {
      let isShort = word.utf8.prefix(nameLimit).contains(UInt8(ascii: "="))
      guard word.utf8.count > nameLimit, !isShort else { continue }
      throw CommandFailure(
        .usage, "\(shown(word)) is no option: names have at most \(nameLimit) characters")
    }
  }

  private static let nameLimit = 200

  /// The words with negative numbers joined to the option before them: `--seconds -1` is a time
  /// that is refused as such, and not an option -1; and `--out=` as an empty name, which it is.
  private static func joined(_ words: [String]) throws(CommandFailure) -> [String] {
    var joined: [String] = []
    var isOver = false
    for word in words {
      isOver = isOver || word == "--"
      if !isOver, isNegative(word) {
        guard let last = joined.last, isBareOption(last) else {
          throw CommandFailure(
            .usage, "\(shown(word)) is no option; a file of that name is ./\(shown(word))")
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

  /// The verbs that a command line begins with, and the name of the program before them.
  private static func verbs(of words: [String]) -> [String] {
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

  /// A message with its middle left out when it is long: a value that was typed.
  private static func cut(_ message: String) -> String {
    guard message.utf8.count > messageLimit else { return message }
    let (head, tail) = (message.utf8.prefix(shownLimit), message.utf8.suffix(messageLimit))
    let words = String(decoding: tail, as: UTF8.self)
    let end = words.ranges(of: "' is invalid for '").first.map { words[$0.lowerBound...] } ?? "'"
    return String(decoding: head, as: UTF8.self) + "...(\(message.utf8.count) bytes)" + end
  }

  private static let messageLimit = 1_200
  private static let shownLimit = 80

  /// A word for a sentence: on one line, and not longer than can be read.
  static func shown(_ word: String) -> String {
    guard word.utf8.count > shownLimit else { return oneLine(word) }
    let head = String(decoding: word.utf8.prefix(shownLimit), as: UTF8.self)
    return oneLine(head) + "...(\(word.utf8.count) bytes)"
  }

  /// A text on one line, without what changes a terminal.
  static func oneLine(_ text: String) -> String { PrintableText.line(text) }
}
