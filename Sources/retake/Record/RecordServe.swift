import ArgumentParser
import Foundation
import Live
import Peer
import Signaling

/// A page and HTTP signaling; whoever connects is recorded.
struct RecordServe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a page and HTTP signaling; whoever calls is recorded.",
    discussion: """
      POST /offer {"sdp", "type"} answers a call; POST /mkoffer and POST /answer call the other \
      way; GET /stats shows the stats of all calls; the page at / calls from a browser. With \
      --out FILE all calls go into one take, which Ctrl-C ends; with a folder each call has a \
      take of its own, which ends when its peer leaves.

      Publishers that speak WHIP (RFC 9725) are recorded at /whip, players that speak WHEP at \
      /whep; a player is sent what --send says, or a pattern instead of an echo.

      Examples:
        retake record serve --listen 127.0.0.1:8080 --out call.take
        retake record serve --listen 192.0.2.1:8443 --certificate a.pem --key a.key \\
          --token SECRET --out takes/
      """)

  @OptionGroup var options: RecordOptions

  @Option(help: "The address and port to listen on; port 0 finds a free one.")
  var listen: ListenAddress = ListenAddress(host: "127.0.0.1", port: 8080)

  @OptionGroup var sending: SendOptions

  @Option(
    help: """
      Say messages of these sizes in bytes over the data channel of an own offer, a text and a \
      block of each, instead of an echo; like 0,1200,65536.
      """)
  var say: MessageSizes?

  @Option(
    help: """
      With --say: open so many more channels then, one after another, each closed when what was \
      said over it came back.
      """)
  var sayChannels = 0

  @Option(help: "A bearer token that callers must give; the page has it in its address.")
  var token: BearerToken?

  @Option(
    name: .customLong("tell-ice-server"),
    help: """
      An ICE server to tell to WHIP and WHEP clients: stun:HOST, turn:NAME:PASSWORD@HOST, ...; \
      may be given several times.
      """)
  var toldICEServers: [ICEServerChoice] = []

  @Option(help: "A certificate in PEM: pages and signaling then go over HTTPS; needs --key.")
  var certificate: String?

  @Option(help: "The private key of --certificate in PEM.")
  var key: String?

  @Flag(help: "End the recording when the first call ends.")
  var once = false

  func validate() throws {
    if (certificate == nil) != (key == nil) {
      throw ValidationError("--certificate and --key belong together: give both or none.")
    }
    for server in toldICEServers {
      let server = server.server
      for text in server.urls + [server.username ?? "", server.credential ?? ""] {
        // They go into a field of HTTP, where nothing else can stand.
        guard text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) && $0 != 0x3c && $0 != 0x3e })
        else {
          throw ValidationError(
            "--tell-ice-server takes visible ASCII without < and >, not \(text).")
        }
      }
    }
  }

  private var toldLinks: [LinkedICEServer] {
    toldICEServers.flatMap { choice in
      choice.server.urls.map {
        LinkedICEServer(
          uri: $0, username: choice.server.username, credential: choice.server.credential)
      }
    }
  }

  private var identity: TLSIdentity? {
    guard let certificate, let key else { return nil }
    return TLSIdentity(certificate: certificate, key: key)
  }

  func run() async throws {
    let plan = try SendPlan(
      sending, default: .echo, preferring: options.videoCodec,
      messages: say.map { Conversation(sizes: $0, channels: sayChannels) })
    let stop = StopSignal()
    let calls = try CallService(options: options, plan: plan)
    let routes = SignalingRoutes(
      calls: calls, sessions: SessionRoutes(sessions: calls, iceServers: toldLinks),
      token: token)
    let server: HTTPServer
    do {
      server = try await HTTPServer.listen(
        host: listen.host, port: listen.port, identity: identity,
        allowsAllOrigins: token == nil ? nil : true
      ) { request in
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
    let page = server.url + "/" + (token.map { "#token=\($0.text)" } ?? "")
    printError("open \(page) in a browser, or POST an offer to \(server.url)/offer")
    printError("WHIP publishers go to \(server.url)/whip, WHEP players to \(server.url)/whep")
    printError("the take holds keys and media of the calls; Ctrl-C ends the recording")
    let endsWithCall = once
    await stop.wait(seconds: options.seconds) {
      for await _ in calls.endedCalls where endsWithCall { return }
    }
    await server.shutdown()
    var report = try await calls.finish()
    try report.conclude(with: calls.failures, json: options.json)
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
