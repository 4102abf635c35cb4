import ArgumentParser
import FoundationEssentials
import RoomClient

/// Joins a room on a Janus server and records it.
struct RecordJanus: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "janus",
    abstract: "Join a room of a Janus server and record all of it.",
    discussion: """
      The take holds the room, its signaling and its connections; all of them replay. Janus is \
      reached over its WebSocket transport. Ctrl-C leaves the room.

      Examples:
        retake record janus ws://127.0.0.1:8188 --room 1234 --publish pattern
        retake record janus wss://janus.example/ --room 1234 \\
          --publish talk.wav --seconds 60
        retake record janus ws://127.0.0.1:8188 --plugin audiobridge \\
          --room 1234 --publish pattern
        retake record janus ws://127.0.0.1:8188 --plugin echotest \\
          --publish pattern --seconds 10
      """)

  @Argument(help: "The address of the WebSocket.", transform: Taking.url(["ws", "wss"]))
  var url: String

  @Option(
    help: "The room's number or name; the echo test needs none.", transform: Taking.text())
  var room: String?

  @Option(help: "The plugin: videoroom, audiobridge or echotest.")
  var plugin = JanusPlugin.videoroom

  @Option(
    help: "The PIN of the room. \(Taking.secretForm)", transform: Taking.secret(Taking.text()))
  var pin: String?

  @Option(
    name: .customLong("api-secret"), help: "The API secret of the server. \(Taking.secretForm)",
    transform: Taking.secret(Taking.text()))
  var secret: String?

  @Option(help: "A textroom plugin room, for messages.", transform: Taking.text())
  var textroom: String?

  @OptionGroup var options: RecordOptions
  @OptionGroup var taking: RoomOptions

  enum JanusPlugin: String, ExpressibleByArgument, CaseIterable {
    case videoroom, audiobridge, echotest
  }

  func validate() throws {
    guard plugin == .echotest || room != nil else {
      throw ValidationError("--room is missing: give the number of a room, as in --room 1234.")
    }
  }

  func run() async throws {
    var words = ["plugin": plugin.rawValue]
    words["pin"] = pin
    words["apisecret"] = secret
    words["textroom"] = textroom
    try await RoomRecording(
      server: .janus(url, options: words), roomID: room ?? "echo", name: "janus",
      options: options, room: taking, role: taking.publish.isEmpty ? .recvonly : .both,
      takesVideo: plugin != .audiobridge
    ).run()
  }
}

/// Joins a channel on a Sora server and records it.
struct RecordSora: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sora",
    abstract: "Join a channel of a Sora server and record all of it.",
    discussion: """
      The take holds the channel, its signaling (over the WebSocket, and over data channels when \
      the server switches to them) and its connection; all of them replay.

      Examples:
        retake record sora wss://sora.example/signaling \\
          --channel test --publish pattern
        retake record sora wss://sora.example/signaling --channel test --role recvonly
        retake record sora wss://sora.example/signaling \\
          --channel test --set spotlight=true
        retake record sora wss://sora.example/signaling \\
          --channel test --publish pattern --simulcast
      """)

  @Argument(
    help: "The signaling URL; several are tried in order.", transform: Taking.url(["ws", "wss"]))
  var urls: [String]

  @Option(help: "The channel ID.", transform: Taking.text())
  var channel: String

  @Option(help: "sendonly, recvonly or sendrecv. Default: as --publish says.")
  var role: SoraRole?

  @Option(
    help: "The metadata of the connect message, as JSON. \(Taking.secretForm)",
    transform: Taking.secret(Taking.text()))
  var metadata: String?

  @Option(
    help: """
      A field of the connect message as NAME=VALUE, the value in JSON; may be repeated. \
      \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.pair("NAME=VALUE, as in spotlight=true", separator: "=")))
  var set: [String] = []

  @OptionGroup var options: RecordOptions
  @OptionGroup var taking: RoomOptions

  enum SoraRole: String, ExpressibleByArgument, CaseIterable {
    case sendonly, recvonly, sendrecv

    var role: RoomRole {
      switch self {
      case .sendonly: .sendonly
      case .recvonly: .recvonly
      case .sendrecv: .both
      }
    }
  }

  func run() async throws {
    var words: [String: String] = [:]
    for field in set {
      let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      words[String(parts[0])] = String(parts[1])
    }
    // The server offers simulcast layers only if the client requests them.
    if taking.simulcast, words["simulcast"] == nil { words["simulcast"] = "true" }
    try await RoomRecording(
      server: .sora(urls, options: words), roomID: channel, name: "sora", options: options,
      room: taking, role: role?.role ?? (taking.publish.isEmpty ? .recvonly : .both),
      metadata: metadata
    ).run()
  }
}

/// Joins a room of Retake's own protocol and records it.
struct RecordRoom: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "room",
    abstract: "Join a room of retake record serve --rooms and record all of it.",
    discussion: """
      The take holds the room, its signaling and its connections; all of them replay. Ctrl-C \
      leaves the room.

      Examples:
        retake record serve --rooms --out server.take
        retake record room ws://127.0.0.1:8080/rooms --room talk \\
          --publish pattern --out a.take
        retake record room ws://127.0.0.1:8080/rooms --room talk --secret @room.secret
      """)

  @Argument(help: "The address of the rooms.", transform: Taking.url(["ws", "wss"]))
  var url: String

  @Option(help: "The room: 1 to 32 letters, digits and hyphens.", transform: Taking.text())
  var room: String

  @Option(
    help: "The token for the server. \(Taking.secretForm)",
    transform: Taking.secret(Taking.text()))
  var token: String?

  @Option(
    help: """
      KEY:SECRET, as in the server's --room-secret: tokens are requested with it, and renewed \
      before they expire. Neither is written into the take. \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.pair("KEY:SECRET", separator: ":")))
  var secret: String?

  @OptionGroup var options: RecordOptions
  @OptionGroup var taking: RoomOptions

  func validate() throws {
    guard RoomServer.isRoomID(room) else {
      throw ValidationError(
        "--room is a name of 1 to 32 letters, digits and hyphens, as in --room talk.")
    }
    guard token == nil || secret == nil else {
      throw ValidationError("--token and --secret cannot be combined: give one of them.")
    }
  }

  private var authenticator: (any Authenticator)? {
    if let secret {
      // ws becomes http, and wss becomes https.
      let endpoint = "http" + url.dropFirst(2) + "/token"
      return ServiceAuthenticator(
        serviceId: "retake", serviceSecret: secret, endpoint: endpoint)
    }
    return token.map { TokenAuthenticator(serviceId: "retake", token: $0) }
  }

  func run() async throws {
    try await RoomRecording(
      server: .retake(url), roomID: room, name: "room", options: options, room: taking,
      role: taking.publish.isEmpty ? .recvonly : .both, authenticator: authenticator
    ).run()
  }
}
