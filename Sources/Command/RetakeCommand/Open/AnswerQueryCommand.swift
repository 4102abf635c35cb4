import ArgumentParser
import Serving
import Tape

/// The process that answers a query for a page of `retake open`.
struct AnswerQueryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer-query",
    abstract: "Answer the query in RETAKE_QUERY for a page of retake open.",
    discussion: """
      retake open starts it for each query of its pages: with limits of memory and time that end \
      it. retake sql is for people.

      Examples:
        RETAKE_QUERY="SELECT count(*) FROM packet" retake answer-query call.take
      """,
    shouldDisplay: false)

  @Argument(help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  func run() throws {
    let text: String
    do throws(TapeError) {
      text = try AnswerQuery(take: take).run()
    } catch {
      // Whoever started this reads one stream.
      try Output.write(error.reason)
      throw CommandFailure(error.kind == .failed ? .usage : .invalidTake, "")
    }
    try Output.write(text)
  }
}
