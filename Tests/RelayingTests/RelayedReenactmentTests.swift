import Foundation
import JSEP
import Live
import Media
import Peer
import Replay
import Room
import SDP
import Signaling
import Stats
import Synchronization
import Tape
import Testing
import Wire

@testable import Reenactment
@testable import Relaying

/// A relay plays recorded packets in place of the server's media, and the client does not notice.
@Suite(.timeLimit(.minutes(10)), .serialized) struct RelayedReenactmentTests {
  private static let source =
    URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Captures/virtual-heavy-loss.take").path
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 10)
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)

  /// Returns the first seconds of the recorded call.
  private static func plan() throws -> ReenactmentPlan {
    var plan = try ReenactmentPlan(take: source, peer: 1)
    plan.packets.removeAll { $0.distance > .milliseconds(3_000) }
    plan.messages = []
    plan.channels = []
    return plan
  }

  /// A relay that plays the plan in place of the server's media, and an application's client with
  /// its own take.
  private final class Stage: Sendable {
    let plan: ReenactmentPlan
    let rig: RelayRig
    let clients: Session
    let client: PeerConnection
    let standIn: RelayedReenactment
    let folder: URL

    var relayed: String { folder.appending(path: "relay.take").path }
    var received: String { folder.appending(path: "client.take").path }

    init(
      sockets: [WebSocketRoute] = [], _ change: (inout ReenactmentPlan) -> Void = { _ in }
    ) async throws {
      var plan = try RelayedReenactmentTests.plan()
      change(&plan)
      self.plan = plan
      folder = FileManager.default.temporaryDirectory.appending(path: "stand-in-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let made = Mutex<RelayedReenactment?>(nil)
      rig = try await RelayRig(
        take: folder.appending(path: "relay.take").path, sockets: sockets,
        standIn: { clock in
          let standIn = RelayedReenactment(
            plan, repair: .asRecorded, clock: clock, connectionLimit: .seconds(60),
            notice: { _ in })
          made.withLock { $0 = standIn }
          return standIn
        })
      standIn = try #require(made.withLock { $0 })
      clients = try Session(
        RelayRig.options(take: folder.appending(path: "client.take").path))
      client = clients.makePeer(label: "client")
    }

    /// Passes a description through the relay; returns it as the other side receives it.
    func pass(_ description: SessionDescription?, from side: RelaySide) async throws
      -> SessionDescription
    {
      let description = try #require(description)
      let (text, _) = try await rig.relay.calls.pass(
        description.type, description.sdp, from: side, on: 1)
      return SessionDescription(type: description.type, sdp: text)
    }

    /// Negotiates a call that a peer of one side offers to a peer of the other.
    func negotiate(
      _ offerer: PeerConnection, from side: RelaySide, to answerer: PeerConnection
    ) async throws {
      for (one, other, sender) in [(offerer, answerer, side), (answerer, offerer, side.other)] {
        try await one.setLocalDescription()
        try await one.waitForGatheringComplete(timeout: .seconds(120))
        try await other.setRemoteDescription(
          try await pass(try await one.localDescription, from: sender))
      }
    }

    /// Waits until all has been played, completes the takes, and checks what the client received.
    func finish() async throws {
      for await _ in standIn.finished { break }
      let outcome = try #require(standIn.outcome)
      await standIn.close()
      try await rig.finish()
      try await clients.finish()
      let report = try ReenactmentReport(
        plan, outcome, changesSent: standIn.changesSent, repair: .asRecorded, recording: relayed)
      #expect(report.isComplete && report.packetsSent == plan.mediaPackets)
      #expect(report.changesSent == plan.changes.count && report.omissions.isEmpty)
      #expect(try #require(report.timing).median < 50)
      // All packets come from the plan, and none from the server.
      let (ssrcs, count) = (
        Set(plan.streams.map { Int64($0.ssrc) }),
        try Stage.number(
          received, "SELECT count(*) FROM rtp WHERE peer = 1 AND direction = 'in'")
      )
      #expect(count == plan.mediaPackets)
      let heard = try Stage.numbers(
        received, "SELECT DISTINCT ssrc FROM rtp WHERE peer = 1 AND direction = 'in'")
      #expect(Set(heard).isSubset(of: ssrcs), "\(heard)")
      let decoded =
        "SELECT count(*) FROM frame WHERE peer = 1 AND direction = 'in' AND kind = 'video' "
        + "AND outcome = 'decoded'"
      #expect(try Stage.number(received, decoded) > 3)
      for take in [relayed, received] { try RelayedReenactmentTests.checkReplay(take) }
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    static func numbers(_ take: String, _ query: String) throws -> [Int64] {
      let statement = try TakeFile.openForQueries(take).prepare(query)
      var numbers: [Int64] = []
      while try statement.step() { numbers.append(statement.values(Int64.self)) }
      return numbers
    }

    static func number(_ take: String, _ query: String) throws -> Int64 {
      try numbers(take, query).first ?? 0
    }
  }

  private static func checkReplay(_ path: String) throws {
    let result = TakeVerification.run(path: path, mode: .exact, isStrict: true)
    #expect(result.isPassed, "\(result.details)")
  }

  @Test func aClientThatOffersGetsTheRecordedPacketsAndTheServerTheClients() async throws {
    let stage = try await Stage()
    defer { stage.remove() }
    for peer in [stage.client, stage.rig.answerer] {
      try await peer.addTrack(.audio, source: Self.tone)
      try await peer.addTrack(.video, source: Self.pattern)
    }
    // Data continues to flow between the application and its server.
    let channel = try await stage.client.createDataChannel("chat")
    let echo = Task { [answerer = stage.rig.answerer] in
      await answerer.forEachRemoteDataChannel { channel in
        for await message in channel.messages { try? await channel.send(message) }
      }
    }
    try await stage.rig.call(stage.client)
    try await channel.waitUntilOpen(timeout: .seconds(120))
    let messages = channel.messages.makeAsyncIterator()
    try await channel.send("to the server")
    #expect(await messages.next() == .text("to the server"))
    await RelayRig.receive(videoFrames: 5, blocks: 20, of: stage.rig.answerer)
    // A change of the call by the client leaves the played media unchanged.
    try await stage.client.addTransceiver(.audio, direction: .sendonly)
    try await stage.rig.call(stage.client)
    // The server's media ends at the relay, which reports that all of it arrived.
    var reports: [StatsObject] = []
    while reports.isEmpty {
      let stats = try await stage.rig.answerer.getStats()
      reports = stats.objects.filter { $0.type == "remote-inbound-rtp" }
      await Task.yield()
    }
    #expect(reports.allSatisfy { $0["packetsLost"] == .integer(0) })
    try await stage.finish()
    await echo.value
    // Both ends are in the relay's take, with what was played.
    let ends = try Stage.numbers(
      stage.relayed,
      "SELECT count(*) FROM rtp JOIN peer USING (peer) WHERE label = 'near end 1' "
        + "AND direction = 'in'")
    #expect(ends == [Int64(stage.plan.mediaPackets)])
  }

  @Test func aServerThatOffersIsReplacedWhereItWouldSend() async throws {
    let stage = try await Stage()
    defer { stage.remove() }
    // The application publishes over another connection, which is only relayed.
    let publisher = stage.clients.makePeer(label: "publisher")
    let publishing = stage.rig.ends.makePeer(label: "publishing")
    try await publisher.addTransceiver(.video, direction: .sendonly, source: Self.pattern)
    try await stage.negotiate(publisher, from: .near, to: publishing)
    await RelayRig.receive(videoFrames: 3, blocks: 0, of: publishing)
    #expect(stage.standIn.outcome == nil && stage.standIn.refused.count == 1)
    let server = stage.rig.answerer
    try await server.addTrack(.audio, source: Self.tone)
    try await server.addTrack(.video, source: Self.pattern)
    try await stage.negotiate(server, from: .far, to: stage.client)
    #expect(stage.standIn.outcome?.player.isReady == true)
    // The server makes another offer, with a further track.
    try await stage.client.waitUntilConnected(timeout: .seconds(120))
    try await server.addTrack(.audio, source: Self.tone)
    try await stage.negotiate(server, from: .far, to: stage.client)
    try await stage.finish()
  }

  /// The recorded sender mutes and unmutes over the application's own WebSocket, whose server never
  /// learns of it: neither of the offers nor of the client's answers.
  @Test(arguments: [RelaySide.near, .far])
  func laterDescriptionsComeInTheFormOfTheServersMessages(offerer: RelaySide) async throws {
    let application = Application(offers: offerer == .far)
    let states: [(Int, [Bool])] = [
      (400, [false, true]), (900, [true, true]), (2_400, [true, false]),
    ]
    let stage = try await Stage(sockets: [application.route]) { plan in
      plan.changes = states.map { at, sends in
        ReenactmentPlan.Change(
          distance: .milliseconds(Int64(at)),
          states: Dictionary(
            uniqueKeysWithValues: sends.enumerated().map {
              ($0, ReenactmentPlan.SectionState(sends: $1, receives: true))
            }))
      }
    }
    defer { stage.remove() }
    let (client, server) = (stage.client, stage.rig.answerer)
    for peer in [client, server] {
      try await peer.addTrack(.audio, source: Self.tone)
      try await peer.addTrack(.video, source: Self.pattern)
    }
    application.begin(server)
    let socket = try await WebSocket.connect(
      to: "ws" + stage.rig.proxy.url.dropFirst("http".count) + "/room")
    if offerer == .near {
      try await client.setLocalDescription()
      try await Application.send(client, over: socket)
    }
    let shown = Task { try await Application.follow(client, over: socket) }
    await RelayRig.receive(videoFrames: 5, blocks: 20, of: server)
    try await stage.finish()
    await socket.close()
    var directions = try await shown.value
    // The first entry is from the server's description, with the recorded state at the beginning.
    #expect(directions.removeFirst() == [true, true])
    #expect(directions == states.map(\.1))
    #expect(application.received == [offerer == .near ? "offer" : "answer"])
    let count = "SELECT count(*) FROM signaling WHERE peer = 1 AND type = "
    #expect(try Stage.number(stage.relayed, count + "'answer' AND direction = 'in'") >= 3)
    #expect(try Stage.number(stage.relayed, count + "'offer' AND direction = 'out'") >= 3)
  }

  /// A server that makes a call over a WebSocket; its messages state a description's type outside
  /// the object that contains the description.
  private final class Application: Sendable {
    private let peer = Mutex<PeerConnection?>(nil)
    private let types = Mutex<[String]>([])
    private let offers: Bool
    private let ready: AsyncStream<Void>
    private let setReady: AsyncStream<Void>.Continuation

    init(offers: Bool) {
      self.offers = offers
      (ready, setReady) = AsyncStream<Void>.makeStream()
    }

    /// The types of the descriptions that the server received.
    var received: [String] { types.withLock { $0 } }

    func begin(_ peer: PeerConnection) {
      self.peer.withLock { $0 = peer }
      setReady.yield()
    }

    var route: WebSocketRoute {
      WebSocketRoute(path: "/room") { [self] socket, _ in
        for await _ in ready { break }
        guard let peer = peer.withLock({ $0 }) else { return }
        do {
          if offers {
            try await peer.setLocalDescription()
            try await Application.send(peer, over: socket)
          }
          while case .text(let text)? = await socket.receive() {
            let description = try Application.description(in: text)
            types.withLock { $0.append(description.type.rawValue) }
            try await Application.apply(description, to: peer, over: socket)
          }
        } catch {
          Issue.record(error)
        }
      }
    }

    static func send(_ peer: PeerConnection, over socket: WebSocket) async throws {
      try await peer.waitForGatheringComplete(timeout: .seconds(120))
      let own = try #require(try await peer.localDescription)
      let call = JSONText.object([("sdp", .text(own.sdp)), ("room", .text("1234"))])
      try await socket.send(
        .text(JSONText.object([("event", .text(own.type.rawValue)), ("call", call)]).text))
    }

    private static func description(in text: String) throws -> SessionDescription {
      let message = try JSONValue(parsing: text)
      let type = try #require(message["event"]?.text.flatMap { SDPType(rawValue: $0) })
      #expect(message["call"]?["room"]?.text == "1234")
      return SessionDescription(
        type: type, sdp: try #require(message["call"]?["sdp"]?.text))
    }

    private static func apply(
      _ description: SessionDescription, to peer: PeerConnection, over socket: WebSocket
    ) async throws {
      try await peer.setRemoteDescription(description)
      guard description.type == .offer else { return }
      try await peer.setLocalDescription()
      try await send(peer, over: socket)
    }

    /// Follows the server's descriptions until the socket closes; for each description, returns in
    /// which sections the server sends.
    static func follow(
      _ client: PeerConnection, over socket: WebSocket
    ) async throws -> [[Bool]] {
      var directions: [[Bool]] = []
      while case .text(let text)? = await socket.receive() {
        let description = try Application.description(in: text)
        directions.append(
          try SDPDocument(parsing: description.sdp).sections.map {
            $0.direction?.sends ?? true
          })
        try await Application.apply(description, to: client, over: socket)
      }
      return directions
    }
  }

  @Test func aCodecThatTheClientLacksIsNamedAndTheCallRelayed() async throws {
    let stage = try await Stage { plan in
      for index in plan.sections.indices {
        for place in plan.sections[index].formats.indices
        where plan.sections[index].formats[place].isMedia {
          plan.sections[index].formats[place].name = "h265"
        }
      }
    }
    defer { stage.remove() }
    try await stage.rig.answerer.addTrack(.video, source: Self.pattern)
    try await stage.client.addTransceiver(.video, direction: .recvonly)
    try await stage.rig.call(stage.client)
    await RelayRig.receive(videoFrames: 3, blocks: 0, of: stage.client)
    #expect(stage.standIn.outcome == nil)
    #expect(stage.standIn.refused.first?.contains("H265") == true, "\(stage.standIn.refused)")
    try await stage.rig.finish()
    try await stage.clients.finish()
  }
}
