import ArgumentParser
import CallRecording
import FoundationEssentials
import Live
import Peer
import Signaling
import TLS
import Tape

/// Serves a page with HTTP signaling, and records every call.
struct RecordServe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve a page and HTTP signaling; every call is recorded.",
    discussion: """
      POST /offer {"sdp", "type"} answers a call; POST /mkoffer and POST /answer call in the other \
      direction; GET /stats shows the stats of all calls; the page at / calls from a browser. With \
      --out FILE all calls go into one take, which Ctrl-C ends; with a folder each call has its \
      own take, which ends when its peer leaves.

      Publishers that speak WHIP (RFC 9725) are recorded at /whip, players that speak WHEP at \
      /whep; a player is sent the media of --send, or a pattern instead of an echo.

      With --ring, no call is recorded as a whole: the last seconds of each are kept in memory, \
      and become takes when there is a reason.

      With --rooms, retake record room enters the rooms at /rooms.

      Examples:
        retake record serve --listen 127.0.0.1:8080 --out call.take
        retake record serve --listen 192.0.2.1:8443 --certificate a.pem --key a.key \\
          --token @token --out takes/
        retake record serve --out calls/ --ring 60s --on finding
      """)

  @OptionGroup var options: RecordOptions

  @OptionGroup var listening: ListenOptions

  @Option(
    help: """
      How many calls may run at once; further ones are refused with status 503 until one ends. 50 \
      calls with echoed audio keep one processor core busy; silent calls need little. Default: \
      \(Self.usualCalls).
      """,
    transform: Taking.whole(1...100_000))
  var calls = Self.usualCalls

  @Option(
    name: .customLong("connect-within"),
    help: """
      End a call whose peer has not connected within this many seconds. Default: \
      \(Self.usualConnectSeconds).
      """,
    transform: Taking.seconds(1...86_400))
  var connectSeconds = Double(Self.usualConnectSeconds)

  private static let usualCalls = 50
  private static let usualConnectSeconds = 120

  @OptionGroup var sending: SendOptions
  @OptionGroup var playing: PlayOption

  @Option(
    help: """
      Send messages of these sizes in bytes over the data channel of the recorder's offers, a text \
      and a binary message for each, instead of echoing; as in 0,1200,65536.
      """,
    transform: Taking.value(MessageSizes.wanted))
  var say: MessageSizes?

  @Option(
    help: """
      With --say: then open this many more channels, one after another; each is closed when its \
      message has been echoed.
      """,
    transform: Taking.whole(0...65_535))
  var sayChannels = 0

  @Option(
    name: .customLong("tell-ice-server"),
    help: """
      An ICE server to announce to WHIP and WHEP clients: stun:HOST, turn:NAME:PASSWORD@HOST, ...; \
      may be given several times. \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.value(ICEServerChoice.wanted)))
  var toldICEServers: [ICEServerChoice] = []

  @OptionGroup var hosting: RoomHostingOptions

  @Flag(help: "End the recording when the first call ends.")
  var once = false

  func validate() throws {
    guard say != nil || sayChannels == 0 else {
      throw ValidationError("--say-channels goes with --say: give both, or leave it out.")
    }
    for server in toldICEServers {
      let server = server.server
      for text in server.urls + [server.username ?? "", server.credential ?? ""] {
        // The servers are sent in an HTTP header field, which limits the characters.
        guard text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) && $0 != 0x3c && $0 != 0x3e })
        else {
          throw ValidationError(
            "--tell-ice-server, with its name and password, must be visible ASCII without < and >.")
        }
      }
    }
  }

  private var announcedLinks: [LinkedICEServer] {
    toldICEServers.flatMap { choice in
      choice.server.urls.map {
        LinkedICEServer(
          uri: $0, username: choice.server.username, credential: choice.server.credential)
      }
    }
  }

  func run() async throws {
    let plan = try SendPlan(
      sending, plays: playing.play, default: .echo, preferring: options.videoCodec,
      messages: say.map { Conversation(sizes: $0, channels: sayChannels) })
    let stop = StopSignal()
    try raiseDescriptorLimit()
    let service = try finished { () throws(TapeError) in
      try CallService(
        options: options.recording(options.ringPlan()), plan: plan, callsMaximum: calls,
        connectionLimit: .seconds(connectSeconds), failures: .onTerminal())
    }
    let routes = SignalingRoutes(
      calls: service, sessions: SessionRoutes(sessions: service, iceServers: announcedLinks))
    let rooms = RoomHosting()
    let hasRooms = hosting.rooms
    let server = try await listening.server(sockets: hasRooms ? [rooms.route] : []) { request in
      if hasRooms, let answer = await rooms.respond(to: request) { return answer }
      return await routes.respond(to: request)
    }
    var room: (session: Session, path: String)?
    do {
      try await service.open()
      if hasRooms {
        let made = try await service.roomSession()
        rooms.open(made.session, options, hosting)
        room = made
      }
    } catch {
      await server.shutdown()
      throw error
    }
    printError("open \(server.pageURL) in a browser, or POST an offer to \(server.url)/offer")
    if hasRooms { printError("rooms are at \(server.webSocketURL)\(RoomHosting.path)") }
    printError("WHIP publishers go to \(server.url)/whip, WHEP players to \(server.url)/whep")
    if listening.token == nil, server.wantsToken {
      printError("others can reach this address, so callers need the token \(server.token.text)")
    }
    printError("the take holds keys and media of the calls; Ctrl-C ends the recording")
    let endsWithCall = once
    await stop.wait(seconds: options.session.seconds) {
      for await _ in service.endedCalls where endsWithCall { return }
    }
    if hasRooms { await service.record(guests: await rooms.close()) }
    await server.shutdown()
    var report: RecordingReport
    if let room, await !service.isShared(room.session) {
      let summary = try await finish(room.session, room.path)
      report = try await service.finish()
      report.add(summary, [], media: "rooms")
    } else {
      report = try await service.finish()
    }
    try report.conclude(with: service.failures, json: options.json)
  }

  /// Raises the limit on file descriptors to fit the allowed number of calls; throws if that is not
  /// possible.
  private func raiseDescriptorLimit() throws {
    let limit = DescriptorLimit.raise()
    // A room participant has two connections, one for sending and one for receiving.
    let guests = hosting.rooms ? hosting.guests : 0
    let needed = RecordServe.baseDescriptors + (calls + 2 * guests) * RecordServe.callDescriptors
    guard limit < needed else { return }
    let (named, lowered) =
      hosting.rooms
      ? ("--calls \(calls) and --guests \(guests)", "--calls and --guests")
      : ("--calls \(calls)", "--calls")
    throw CommandFailure(
      .usage,
      "\(named) may need \(needed) file descriptors, but the system allows \(limit): raise the "
        + "hard limit of `ulimit -n`, or lower \(lowered)")
  }

  /// How many descriptors the recorder itself and HTTP connections need.
  private static let baseDescriptors = 1_200
  /// How many descriptors a call needs: a socket for each of a few addresses, and the files of its
  /// take.
  private static let callDescriptors = 8
}

// MARK: - ListenOptions

/// The listening address and access rules, for all commands that listen.
struct ListenOptions: ParsableArguments {
  @OptionGroup var address: ServerOptions

  @Option(
    help: """
      A bearer token that callers must send; the page has it in its address. Default: a generated \
      one, which is printed; on loopback it is only needed for requests about all calls, such as \
      GET /stats. \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var token: BearerToken?

  @Option(
    name: .customLong("allow-host"),
    help: """
      Another host name by which callers may address the recorder, without a port; may be given \
      several times. Loopback names, the listening address and the name given to --listen are \
      always allowed.
      """,
    transform: Taking.value(HostChoice.wanted))
  var allowedHosts: [HostChoice] = []

  @Option(
    name: [.customLong("allow-origin"), .customLong("origin")],
    help: """
      An origin whose pages may call, like https://app.example; may be given several times. \
      Default: only the recorder's own page.
      """,
    transform: Taking.value(OriginChoice.wanted))
  var allowedOrigins: [OriginChoice] = []

  /// Starts listening, or throws a command failure.
  ///
  /// - Parameters:
  ///   - sockets: the paths that accept WebSockets.
  ///   - adjust: changes the access rules.
  func server(
    sockets: [WebSocketRoute] = [], access adjust: (inout AccessRules) -> Void = { _ in },
    _ handler: @escaping HTTPServer.Handler
  ) async throws -> HTTPServer {
    var access = AccessRules(
      hosts: allowedHosts.map(\.name), origins: allowedOrigins.map(\.text), token: token)
    adjust(&access)
    do throws(HTTPError) {
      return try await HTTPServer.listen(
        host: address.listen.host, port: address.listen.port, access: access,
        identity: address.identity, sockets: sockets, notice: { printError($0) }, handler: handler)
    } catch {
      throw CommandFailure(.inputOutput, error.reason)
    }
  }
}

// MARK: - ServerOptions

/// The listening address and its certificate, for servers and relays.
struct ServerOptions: ParsableArguments {
  @Option(
    help: """
      The address and port to listen on; port 0 finds a free one. Default: \(Self.usualAddress).
      """,
    transform: Taking.value(ListenAddress.wanted))
  var listen = Self.usualAddress

  private static let usualAddress = ListenAddress(host: "127.0.0.1", port: 8080)

  @Option(
    help: "A certificate in PEM, to be reached over HTTPS and WSS; needs --key.",
    completion: .file(), transform: Taking.path)
  var certificate: String?

  @Option(
    help: "The private key of --certificate in PEM.", completion: .file(), transform: Taking.path)
  var key: String?

  func validate() throws {
    if (certificate == nil) != (key == nil) {
      throw ValidationError("--certificate and --key belong together: give both or neither.")
    }
  }

  var identity: TLSIdentity? {
    guard let certificate, let key else { return nil }
    return TLSIdentity(certificate: certificate, key: key)
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

  /// The expected form, for error messages.
  static let wanted =
    "an address is HOST:PORT with a port from 0 to 65535, as in 127.0.0.1:8080 or [::1]:8080"

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

/// A host's name, without scheme, port and path.
struct HostChoice: ExpressibleByArgument {
  var name: String

  /// The expected form, for error messages.
  static let wanted = "a host is a name or address without scheme and port, as in recorder.example"

  init?(argument: String) {
    let isAddress = argument.contains(":")
    let allowed = argument.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true  // letters, digits, - . _
      case 0x3a, 0x5b, 0x5d: isAddress && argument.filter { $0 == ":" }.count > 1  // : [ ]
      default: false
      }
    }
    guard allowed, !argument.isEmpty else { return nil }
    name = argument
  }
}

/// An origin as browsers send it: `SCHEME://HOST`, with the port unless it is the default.
struct OriginChoice: ExpressibleByArgument {
  var text: String

  /// The expected form, for error messages.
  static let wanted = "an origin is SCHEME://HOST[:PORT], as in https://app.example, or null"

  init?(argument: String) {
    let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
    let isWritten =
      parts.count == 3 && parts[0].hasSuffix(":") && parts[0].count > 1 && parts[1].isEmpty
      && !parts[2].isEmpty && argument.utf8.allSatisfy { (0x21..<0x7f).contains($0) }
    guard isWritten || argument == "null" else { return nil }
    text = argument
  }
}
