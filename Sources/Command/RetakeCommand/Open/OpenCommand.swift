import ArgumentParser
import FoundationEssentials
import Serving
import Signaling
import Tape
import Wire

/// Opens a take or a folder of takes in a browser.
struct OpenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "open",
    abstract: "Look at a take, or at a folder of takes, in a browser: packets, SQL and media too.",
    discussion: """
      Serves the page of `retake page` on this machine only, at an address with a token, together \
      with parts that do not fit into a file: every packet down to its fields, lanes drawn by SQL, \
      audio and video of any length, and takes that are still being recorded. A folder, or several \
      takes, are shown as a catalogue; two takes can be shown below each other. Ctrl-C ends it.

      Examples:
        retake open call.take
        retake open before.take after.take
        retake open takes/ --port 8090
      """)

  @Argument(
    help: "Takes, and folders of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var paths: [String]

  @Option(
    help: "The port on 127.0.0.1; 0 finds a free one. Default: 0.",
    transform: Taking.whole(0...65_535))
  var port = 0

  @Flag(help: "Print the address as JSON for programs.")
  var json = false

  func run() async throws {
    let stop = StopSignal()
    let server: TakeServer
    do {
      server = try await TakeServer(paths, port: port, tool: "/proc/self/exe")
    } catch let error as TapeError {
      throw CommandFailure(error)
    } catch let error as HTTPError {
      throw CommandFailure(.inputOutput, error.reason)
    }
    if json {
      try Output.json(JSONText.object([("url", .text(server.pageURL))]).text)
    } else {
      try Output.line("open \(server.pageURL) in a browser; Ctrl-C ends this")
    }
    await stop.wait(seconds: nil) {
      // Wait for a signal.
      for await _ in AsyncStream<Never>.makeStream().stream {}
    }
    await server.shutdown()
  }
}

/// Runs a query for a page of `retake open`, in a separate process.
struct AnswerQueryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer-query",
    abstract: "Answer the query in RETAKE_QUERY for a page of retake open.",
    discussion: """
      retake open starts it for each query of its pages, with limits on memory and time. People \
      use retake sql instead.

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
      // The parent process reads only one stream.
      try Output.write(error.reason)
      throw CommandFailure(error.kind == .failed ? .usage : .invalidTake, "")
    }
    try Output.write(text)
  }
}
