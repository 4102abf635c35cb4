import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Live
import PageRecording
import Peer
import Reenactment
import Relaying
import Replay
import SDP
import Signaling
import Synchronization
import Tape
import Wire

/// Sends a live client the media that a recorded call received.
struct ReenactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reenact",
    abstract: "Play one end of a recorded call to a live client, such as a browser.",
    discussion: """
      The client replaces a recorded receiver (--peer) and is sent the packets that the receiver \
      got, each at its recorded time since the connection: lost packets stay lost, late ones late. \
      ICE, DTLS and SRTP are new; SSRCs, payload types and header extensions are negotiated with \
      the client. If the client lacks a codec, the call is refused and the codec named.

      The client opens the page, posts its offer to /offer or to /whep, or gets one from /mkoffer; \
      or Retake calls it: --call posts an offer, --whip publishes to an endpoint. An application \
      with its own signaling gets Retake's address in place of its server's (--upstream), as with \
      record relay. Only one client is served. Retransmissions are sent as recorded (--repair \
      as-recorded), or when the client requests a packet that the take has (honest). Key frames \
      cannot be produced on request.

      --out is a new take of the call with the client; the page's own reports and statistics are \
      written beside it. --against chromium runs a headless Chromium on the page, or on that of \
      --url, and compares its statistics with --expect: the exit status is 1 if one does not hold.

      Examples:
        retake reenact bad.take --peer callee --out again.take
        retake reenact bad.take --against chromium --expect "freezeCount <= 1"
        retake reenact bad.take --whip http://127.0.0.1:8081/whip --repair honest
        retake reenact bad.take --peer "near end 2" --listen 127.0.0.1:8090 \\
          --upstream wss://sfu.example --out again.take
      """)

  @Argument(
    help: "The take of the recorded call.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var take: String

  @OptionGroup var receiver: PeerOption

  @Option(
    help: """
      How requests for lost packets are answered: as-recorded, or honest, which sends each \
      requested packet that the take has. Default: as-recorded.
      """)
  var repair = RepairRule.asRecorded

  @Option(
    name: .shortAndLong, help: "The new take. Default: a name with the time.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @Option(
    help: "Post an offer as JSON to this URL, as record call does, instead of waiting for one.",
    transform: Taking.url(["http"]))
  var call: String?

  @Option(
    help: "Publish to this WHIP endpoint instead of waiting for an offer.",
    transform: Taking.url(["http", "https"]))
  var whip: String?

  @Option(
    name: .customLong("whip-token"),
    help: "The bearer token for the endpoint of --whip. \(Taking.secretForm)",
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var whipToken: BearerToken?

  @Option(
    help: """
      The application's server, as http://, https://, ws:// or wss://HOST[:PORT]: the application \
      reaches it through --listen, and gets the recorded packets in place of the server's media.
      """,
    transform: Taking.url(["http", "https", "ws", "wss"]))
  var upstream: String?

  @OptionGroup var signaling: RelaySignalingOptions
  @OptionGroup var listening: ListenOptions

  @Option(
    help: """
      A local address that ICE may gather on; may be given several times. Default: all but \
      loopback, or loopback if there is no other; with --against, but not --upstream, loopback.
      """,
    transform: Taking.value("an address is one of IPv4 or IPv6, as in 192.0.2.1 or 2001:db8::1"))
  var bind: [IPAddress] = []

  @Option(
    name: .customLong("connect-within"),
    help: "End if no client has connected within this many seconds. Default: 30.",
    transform: Taking.seconds(1...86_400))
  var connectSeconds = 30.0

  @Option(
    help: "Run this client headless and check what it reports: chromium.",
    transform: ClientProgram.reader)
  var against: ClientProgram?

  @Option(
    help: """
      The page that the client of --against opens. Default: Retake's own, which receives and shows \
      the media.
      """,
    transform: Taking.url(["http", "https"]))
  var url: String?

  @Option(
    name: .customLong("jitter-buffer-target"),
    help: ArgumentHelp(
      """
      How much the client of --against buffers on Retake's own page, up to 4 s, as in 400ms: \
      jitterBufferTarget of its receivers. Default: the client's choice.
      """, valueName: "time"),
    transform: Taking.seconds(0...4))
  var jitterBufferTarget: Double?

  @Option(
    help: "The program to run for --against. Default: chromium, chromium-browser or google-chrome.",
    completion: .file(), transform: Taking.path)
  var browser: String?

  @Option(
    help: ArgumentHelp(
      """
      What the client's getStats must report at the end, as in "freezeCount <= 1" or \
      "video.framesDecoded > 100"; may be given several times. Members are those of received \
      streams, unless preceded by another type of statistics.
      """, valueName: "condition"),
    transform: Taking.value(StatExpectation.wanted))
  var expect: [StatExpectation] = []

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  func validate() throws {
    if call != nil, whip != nil {
      throw ValidationError("--call and --whip are two ways to reach the client: give one.")
    }
    if whipToken != nil, whip == nil {
      throw ValidationError(
        "--whip-token is for the endpoint of --whip: give both, or leave it out.")
    }
    try validateUpstream()
    guard against == nil else {
      if call != nil || whip != nil {
        throw ValidationError(
          "--against runs a client that makes the call: leave out "
            + "\(call == nil ? "--whip" : "--call").")
      }
      if url != nil, jitterBufferTarget != nil {
        throw ValidationError(
          "--jitter-buffer-target is for Retake's own page: a page of --url sets its own.")
      }
      return
    }
    let needing = [
      ("--url", url != nil), ("--browser", browser != nil), ("--expect", !expect.isEmpty),
      ("--jitter-buffer-target", jitterBufferTarget != nil),
    ]
    if let (name, _) = needing.first(where: \.1) {
      throw ValidationError("\(name) applies to the client of --against: add --against chromium.")
    }
  }

  private func validateUpstream() throws {
    guard let upstream else {
      if signaling.authorities != nil || signaling.rulesFile != nil {
        throw ValidationError(
          "--authorities and --sdp-rules apply to the server of --upstream: add --upstream.")
      }
      return
    }
    try signaling.check(upstream: upstream)
    if call != nil || whip != nil {
      throw ValidationError(
        "--upstream waits for the application: leave out \(call == nil ? "--whip" : "--call").")
    }
    if listening.token != nil {
      throw ValidationError(
        "--token: the application of --upstream does not send one, so leave it out.")
    }
    if against != nil, url == nil {
      throw ValidationError(
        "--upstream with --against runs the application's page: name it with --url.")
    }
  }

  func run() async throws {
    let peer = try receiver.number(in: take)
    let progress = Progress("reading \(CommandReading.oneLine(take))")
    let plan = try Self.reading { () throws(TapeError) in
      try ReenactmentPlan(
        take: take, peer: peer, hasSpares: repair == .honest,
        progress: { at, end in
          progress.show("\(decimal(at.seconds, 0)) of \(decimal(end.seconds, 0)) s")
        })
    }
    progress.clear()
    let program = try against.map { _ in try Self.program(browser) }
    let path = try RecordOptions.newTakePath(out, prefix: "reenact", overwrite)
    try await ReenactmentRun(command: self, plan: plan, path: path, program: program).run()
  }

  /// Reads a plan; throws a usage error if the chosen peer cannot be played.
  private static func reading(
    _ body: () throws(TapeError) -> ReenactmentPlan
  ) throws -> ReenactmentPlan {
    do throws(TapeError) {
      return try body()
    } catch {
      guard error.place == "--peer" else { throw CommandFailure(error) }
      throw CommandFailure(.usage, error.description)
    }
  }

  private static func program(_ given: String?) throws -> String {
    do throws(BrowserError) {
      return try HeadlessBrowser.program(given)
    } catch {
      throw CommandFailure(.noSuchFile, error.description)
    }
  }
}

extension RepairRule: ExpressibleByArgument {}

extension StatExpectation: ExpressibleByArgument {}

/// A client that `retake reenact` can start.
enum ClientProgram: String, CaseIterable, Sendable {
  case chromium

  static let reader: Taking.Reader<ClientProgram> = { word in
    guard let program = ClientProgram(rawValue: word) else {
      throw Taking.Refusal(
        "the only client is chromium; start any other one yourself at the address of --listen")
    }
    return program
  }
}
