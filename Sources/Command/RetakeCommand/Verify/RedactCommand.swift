import ArgumentParser
import FoundationEssentials
import Queries
import Replay
import Tape
import Wire

/// The parts to remove from a take before it is shared.
struct RemoveOption: ParsableArguments {
  @Option(
    help: """
      The parts to replace, separated by commas: media, keys, addresses, names, messages. Default: \
      all of them.
      """,
    transform: RemoveOption.read)
  var remove = Redaction.Parts.all

  @Sendable private static func read(_ word: String) throws -> Redaction.Parts {
    var parts: Redaction.Parts = []
    for name in word.split(separator: ",", omittingEmptySubsequences: false) {
      guard let known = Redaction.Parts.named.first(where: { $0.name == name }) else {
        throw Taking.Refusal(
          "the parts are media, keys, addresses, names and messages, separated by commas")
      }
      parts.insert(known.part)
    }
    return parts
  }
}

extension Redactor {
  /// Redacts a take with a secret that is drawn now and not stored anywhere.
  static func run(path: String, output: String, parts: Redaction.Parts) throws(TapeError)
    -> Summary
  {
    var generator = SystemRandomNumberGenerator()
    return try run(
      path: path, output: output, parts: parts,
      secret: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}

/// Makes a redacted take that can be shared.
struct RedactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "redact",
    abstract: "Make a take that can be shared, with its keys, addresses, names, words and media "
      + "replaced.",
    discussion: """
      Everything that shows who called, from where, with what secrets, and what was said is \
      replaced, equal values by equal stand-ins of the same length; media keeps its sizes and \
      times. Packets are protected again with other keys. Then the stack runs with the new inputs, \
      so that the new take replays: recorded DTLS results replace the removed keys, and recorded \
      frames the removed media. If that is impossible, the rows are kept as facts that are not \
      replayed, and the command says so. At the end the file is searched for everything that was \
      replaced; if anything is found, no file is written.

      Examples:
        retake redact call.take --out public.take
        retake redact call.take --out colleague.take --remove keys,addresses
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "The new take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  @OptionGroup var what: RemoveOption
  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    reportEndings(of: options.take)
    try overwrite.check(out, reading: options.take)
    let made = try WritingWhole.writeTake(out, overwrite.present) { temporary in
      try Progress("redacting").follow {
        try reading { () throws(TapeError) in
          try Redactor.run(path: options.take, output: temporary, parts: what.remove)
        }
      }
    }
    if options.json {
      return try Output.json(
        JSONText.object([
          ("take", .text(options.take)), ("out", .text(out)),
          ("removed", .list(made.removed.map { .text($0) })), ("words", .integer(made.words)),
          ("addresses", .integer(made.addresses)), ("searched", .integer(made.searched)),
          ("steps", .integer(made.steps)), ("executed", .flag(made.isExecuted)),
          ("reason", made.reason.map { .text($0) }), ("promise", .text(made.sentence)),
        ]).text)
    }
    let replaced =
      "\(counted(made.words, "name")) and \(counted(made.addresses, "address", "addresses"))"
    try Output.line(
      "\(out): \(replaced) replaced, and none of \(counted(made.searched, "text")) found in it")
    try Output.line("  \(made.sentence)")
    if let reason = made.reason { try Output.line("  it cannot be replayed, because \(reason)") }
  }
}
