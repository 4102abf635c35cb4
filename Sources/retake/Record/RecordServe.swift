import ArgumentParser
import Foundation
import Live
import Signaling

/// A page and HTTP signaling; whoever connects is recorded.
struct RecordServe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a page and HTTP signaling; whoever calls is recorded.",
    discussion: """
      POST /offer {"sdp", "type"} answers a call; POST /mkoffer and POST /answer call the other \
      way; GET /stats shows the stats of all calls; the page at / calls from a browser. With --out \
      FILE all calls go into one take, which Ctrl-C ends; with a folder each call has a take of \
      its own, which ends when its peer leaves.

      Example:
        retake record serve --listen 127.0.0.1:8080 --out call.take
      """)

  @OptionGroup var options: RecordOptions

  @Option(help: "The address and port to listen on; port 0 finds a free one.")
  var listen: ListenAddress = ListenAddress(host: "127.0.0.1", port: 8080)

  @Option(help: "What to send: echo, pattern, or a .y4m or .wav file; may be given twice.")
  var send: [SendChoice] = []

  @Flag(help: "End the recording when the first call ends.")
  var once = false

  func run() async throws {
    let plan = try SendPlan(send, default: .echo)
    let stop = StopSignal()
    let calls = try CallService(options: options, plan: plan)
    let routes = SignalingRoutes(calls: calls)
    let server: HTTPServer
    do {
      server = try await HTTPServer.listen(host: listen.host, port: listen.port) { request in
        await routes.respond(to: request)
      }
    } catch {
      throw CommandFailure(.inputOutput, error.reason)
    }
    do {
      try await calls.open()
    } catch {
      await server.shutdown()
      throw error
    }
    printError("open \(server.url)/ in a browser, or POST an offer to \(server.url)/offer")
    printError("the take holds keys and media of the calls; Ctrl-C ends the recording")
    let endsWithCall = once
    await stop.wait(seconds: options.seconds) {
      for await _ in calls.endedCalls where endsWithCall { return }
    }
    await server.shutdown()
    print(try await calls.finish())
  }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible {
  var host: String
  var port: Int

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  init?(argument: String) {
    guard let colon = argument.lastIndex(of: ":"),
      let port = UInt16(argument[argument.index(after: colon)...])
    else { return nil }
    var host = String(argument[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    guard !host.isEmpty else { return nil }
    self.init(host: host, port: Int(port))
  }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
