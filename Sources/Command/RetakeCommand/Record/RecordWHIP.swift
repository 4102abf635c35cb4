public import ArgumentParser
import CallRecording
public import Signaling

/// Retake publishes to a WHIP endpoint.
struct RecordWHIP: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "whip",
    abstract: "Publish to a WHIP endpoint (RFC 9725) and record the session.",
    discussion: """
      The offer is posted to the endpoint; the session is deleted when the recording ends. When \
      the connection is lost, ICE is restarted with PATCH.

      Examples:
        retake record whip https://live.example/whip/room --token @token --seconds 30
        retake record whip http://127.0.0.1:8080/whip --send clip.y4m --out publish.take
      """)

  @Argument(help: "The URL of the endpoint.", transform: Taking.url(["http", "https"]))
  var url: String

  @OptionGroup var options: RecordOptions
  @OptionGroup var session: SessionOptions

  @OptionGroup var sending: SendOptions

  func validate() throws {
    if sending.choices.contains(.echo) {
      throw ValidationError("--send echo: a publisher receives nothing that it could send back.")
    }
  }

  func run() async throws {
    let plan = try SendPlan(sending, default: .pattern, preferring: options.videoCodec)
    try await SessionRecording(.whip, url: url, options: options, session: session, plan: plan)
      .run()
  }
}

/// Retake plays from a WHEP endpoint.
struct RecordWHEP: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "whep",
    abstract: "Play from a WHEP endpoint and record the session.",
    discussion: """
      An offer to receive is posted to the endpoint (draft-ietf-wish-whep); a server that makes an \
      offer of its own is answered. The session is deleted when the recording ends.

      Examples:
        retake record whep https://live.example/whep/room --token @token --seconds 30
        retake record whep http://127.0.0.1:8080/whep --out play.take
      """)

  @Argument(help: "The URL of the endpoint.", transform: Taking.url(["http", "https"]))
  var url: String

  @OptionGroup var options: RecordOptions
  @OptionGroup var session: SessionOptions
  @OptionGroup var playing: PlayOption

  func run() async throws {
    let plan = SendPlan(.pattern, devices: try DevicePlan(playing: playing.play))
    try await SessionRecording(.whep, url: url, options: options, session: session, plan: plan)
      .run()
  }
}

/// What both standard ways of signaling over HTTP take.
struct SessionOptions: ParsableArguments {
  @Option(
    help: "The bearer token that the endpoint wants. \(Taking.secretForm)",
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var token: BearerToken?

  @Flag(
    help: """
      Post the offer without candidates and tell them with PATCH as they are found; without it, \
      the offer has them all.
      """)
  var trickle = false

  @Option(
    name: .customLong("restart-ice"),
    help: "Restart ICE after so many seconds, as after a change of the network.",
    transform: Taking.seconds(0...1_000_000))
  var restartSeconds: Double?
}

extension BearerToken: ExpressibleByArgument {
  /// What is wanted, for who gave something else.
  static let wanted = "a token has from 1 to 10000 letters, digits and characters of -._~+/="

  /// Reads a token from the command line.
  public init?(argument: String) { self.init(argument) }
}
