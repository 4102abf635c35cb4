public import ArgumentParser
import CallRecording
import FoundationEssentials
import ICE
import Live
import Peer
import SDP
import Secure
public import Signaling
import Tape

/// Publishes to a WHIP endpoint.
struct RecordWHIP: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "whip",
    abstract: "Publish to a WHIP endpoint (RFC 9725) and record the session.",
    discussion: """
      The offer is posted to the endpoint; the session is deleted when the recording ends. When \
      the connection is lost, ICE is restarted with PATCH.

      Examples:
        retake record whip https://live.example/whip/room --token @token --seconds 30
        retake record whip http://127.0.0.1:8080/whip --send clip.y4m \\
          --out publish.take
      """)

  @Argument(help: "The URL of the endpoint.", transform: Taking.url(["http", "https"]))
  var url: String

  @OptionGroup var options: RecordOptions
  @OptionGroup var session: SessionOptions

  @OptionGroup var sending: SendOptions

  func validate() throws {
    if sending.choices.contains(.echo) {
      throw ValidationError(
        "--send echo: a publisher receives nothing to send back; send pattern or a file.")
    }
  }

  func run() async throws {
    let plan = try SendPlan(sending, default: .pattern, preferring: options.videoCodec)
    try await SessionRecording(.whip, url: url, options: options, session: session, plan: plan)
      .run()
  }
}

/// Plays from a WHEP endpoint.
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

/// Options that WHIP and WHEP share.
struct SessionOptions: ParsableArguments {
  @Option(
    help: "The bearer token for the endpoint. \(Taking.secretForm)",
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var token: BearerToken?

  @Flag(
    help: """
      Post the offer without candidates and send them with PATCH as they are found; without it, \
      the offer has them all.
      """)
  var trickle = false

  @Option(
    name: .customLong("restart-ice"),
    help: "Restart ICE after this many seconds, as a network change would.",
    transform: Taking.seconds(0...1_000_000))
  var restartSeconds: Double?
}

extension BearerToken: ExpressibleByArgument {
  /// The expected form, for error messages.
  static let wanted = "a token has from 1 to 10000 letters, digits and characters of -._~+/="

  /// Parses a bearer token; fails if it does not have the form of `wanted`.
  public init?(argument: String) { self.init(argument) }
}

// MARK: - SessionRecording

/// Records a WHIP or WHEP client's session.
struct SessionRecording {
  private let client: SessionClient
  private let options: RecordOptions
  private let session: SessionOptions
  private let plan: SendPlan

  init(
    _ kind: SessionProtocol, url: String, options: RecordOptions, session: SessionOptions,
    plan: SendPlan
  ) throws {
    guard let parts = URLComponents(string: url), ["http", "https"].contains(parts.scheme),
      parts.host?.isEmpty == false
    else {
      throw CommandFailure(.usage, "\(url) is not an http:// or https:// address of an endpoint")
    }
    client = SessionClient(kind, endpoint: url, token: session.token)
    self.options = options
    self.session = session
    self.plan = plan
  }

  /// Records the session and prints the report.
  func run() async throws {
    let name = client.kind.rawValue
    let path = try options.newTakePath(prefix: name)
    let stop = StopSignal()
    let take = try openSession(options.sessionOptions(take: path, ring: options.ringPlan()))
    var configuration = options.peerConfiguration
    let named = try await stop.interrupting { await namedICEServers() }
    configuration.iceServers += named ?? []
    let connection = take.makePeer(
      label: "retake", role: "\(name) client", configuration: configuration)
    let failures = SendFailures.onTerminal()
    let peer = CallPeer(
      connection, in: take, sending: plan,
      devices: plan.devices.isEmpty ? nil : LocalDevices(plan.devices, telling: failures),
      transport: name, preferring: options.videoCodec,
      telling: failures)
    var failure: CommandFailure?
    let call = SessionCall(client, peer)
    do {
      let begun: Void? = try await stop.interrupting {
        try await call.begin(trickles: session.trickle)
      }
      if begun != nil, await !call.hasFailed {
        let progress = Progress("recording", seconds: options.session.seconds)
        await stop.wait(seconds: options.session.seconds) {
          await withTaskGroup(of: Void.self) { group in
            group.addTask { await peer.waitUntilGone() }
            group.addTask { await progress.run { peer.progress } }
            group.addTask { await call.maintainConnection(restartingAfter: session.restartSeconds) }
            _ = await group.next()
            group.cancelAll()
          }
        }
        progress.clear()
      }
      failure = await call.end().map { CommandFailure(.inputOutput, $0) }
    } catch {
      failure = CommandFailure(.inputOutput, Self.sentence(of: error, client.endpoint))
    }
    let media = peer.mediaSummary
    peer.endDevices()
    let summary = try await finish(take, path)
    if let failure {
      if await !call.hasBegun { discard(path) }
      throw failure
    }
    var report = RecordingReport()
    report.add(summary, [RecordingReport.Peer(connection)], media: media)
    try report.conclude(with: failures, json: options.json)
  }

  /// Returns the usable ICE servers that the endpoint names.
  ///
  /// Failures are ignored here: if the endpoint does not respond, the later offer fails with a
  /// better message.
  private func namedICEServers() async -> [ICEServerConfiguration] {
    let servers = (try? await client.iceServers()) ?? []
    return servers.compactMap { server in
      var trial = PeerConfiguration()
      trial.iceServers = [
        ICEServerConfiguration(
          urls: [server.uri], username: server.username, credential: server.credential)
      ]
      return trial.firstUnusableICEServer == nil ? trial.iceServers.first : nil
    }
  }

  private static func sentence(of error: any Error, _ url: String) -> String {
    switch error {
    case let error as HTTPError: error.reason
    case let error as PeerError: "\(url): the session failed: \(error.message)"
    case let error as SDPError: "\(url): the server's description: \(error.description)"
    case let error as CommandFailure: error.message
    default: "\(url): \(error)"
    }
  }
}

/// A session's client, which makes all requests to the server.
private actor SessionCall {
  private let client: SessionClient
  private let peer: CallPeer
  private var session: SessionClient.Session?
  /// The server's description, updated for the last ICE restart; nil before the answer.
  private var remote: SDPDocument?
  private var candidates: Task<Void, Never>?
  /// The first failure after the session began; nil if there was none.
  private var failure: String?
  var hasFailed: Bool { failure != nil }
  /// Whether the server accepted the offer.
  var hasBegun: Bool { session != nil }
  private var isRestarting = false

  init(_ client: SessionClient, _ peer: CallPeer) {
    self.client = client
    self.peer = peer
  }

  // MARK: Opening and closing

  func begin(trickles: Bool) async throws {
    try await peer.prepareOffer(client.kind)
    let found = peer.connection.events
    let offer: SessionDescription
    if trickles {
      offer = try await peer.bareOffer()
    } else {
      try await peer.connection.setLocalDescription()
      offer = try await peer.gatheredDescription()
    }
    let begun = try await client.open(offer: offer.sdp)
    session = begun
    if begun.isCounterOffer {
      try await answer(begun)
    } else {
      remote = try SDPDocument(parsing: begun.description)
      let answer = SessionDescription(type: .answer, sdp: begun.description)
      do {
        try await peer.accept(answer)
      } catch let refusal as CallRefusal {
        failure = "\(client.endpoint): \(refusal.reason)"
      }
    }
    if trickles {
      candidates = Task { await self.sendCandidates(found, of: offer) }
    }
  }

  /// Handles a server's counter-offer instead of an answer (draft-ietf-wish-whep section 4.2).
  private func answer(_ begun: SessionClient.Session) async throws {
    try await peer.connection.setLocalDescription(SessionDescription(type: .rollback, sdp: ""))
    let offer = SessionDescription(type: .offer, sdp: begun.description)
    peer.record(offer, isInbound: true)
    try await peer.connection.setRemoteDescription(offer)
    try await peer.connection.setLocalDescription()
    let answer = try await peer.gatheredDescription()
    try await client.answer(answer.sdp, in: begun)
  }

  /// Ends the session at the server; returns the first failure of the session or of ending it, or
  /// nil if there was none.
  func end() async -> String? {
    candidates?.cancel()
    guard let session else { return failure }
    // A server that hung up has already ended the session.
    let states = peer.connection.states
    guard states.dtls != .closed, states.dtls != .failed, states.connection != .failed else {
      return failure
    }
    peer.record(CallPeer.byeType, "", isInbound: false)
    do throws(HTTPError) {
      try await client.close(session)
    } catch {
      return failure ?? error.reason
    }
    return failure
  }

  // MARK: Candidates

  /// Sends candidates to the server as they are found.
  private func sendCandidates(
    _ found: AsyncStream<PeerConnectionEvent>, of offer: SessionDescription
  ) async {
    guard let session, let document = try? SDPDocument(parsing: offer.sdp) else { return }
    for await case .iceCandidate(let candidate) in found {
      let texts = (candidate?.candidate).map { [$0] } ?? []
      let fragment = document.fragment(candidates: texts, hasEnded: candidate == nil).text
      peer.record(CallPeer.candidateType, fragment, isInbound: false)
      do throws(HTTPError) {
        guard try await client.add(fragment: fragment, to: session) else { return }
      } catch {
        failure = failure ?? error.reason
        return
      }
      if candidate == nil { return }
    }
  }

  // MARK: ICE restarts

  /// Restarts ICE whenever the connection is lost; if a time is given, also once after that time.
  func maintainConnection(restartingAfter seconds: Double?) async {
    async let _ = restart(after: seconds)
    var was = ICEConnectionState.new
    for await states in peer.connection.stateChanges {
      if states.iceConnection == .disconnected, was != .disconnected { await restart() }
      was = states.iceConnection
    }
  }

  private func restart(after seconds: Double?) async {
    guard let seconds, (try? await Task.sleep(for: .seconds(seconds))) != nil else { return }
    await restart()
  }

  private func restart() async {
    guard !isRestarting, var next = session, next.entityTag != nil, let before = remote else {
      return
    }
    isRestarting = true
    defer { isRestarting = false }
    do {
      let fragment = try await peer.restartOffer()
      peer.record(CallPeer.restartType, fragment.text, isInbound: false)
      let answered = try await client.restart(fragment: fragment.text, of: &next)
      peer.record(CallPeer.restartType, answered, isInbound: true)
      let parsed = try SDPFragment(parsing: answered)
      guard let answer = before.restarted(by: parsed) else {
        throw HTTPError(reason: "\(next.url) answered an ICE restart without ICE parameters")
      }
      try await peer.connection.setRemoteDescription(
        SessionDescription(type: .answer, sdp: answer.text))
      session = next
      remote = answer
    } catch {
      failure = failure ?? "the ICE restart failed: \((error as? PeerError)?.message ?? "\(error)")"
    }
  }
}
