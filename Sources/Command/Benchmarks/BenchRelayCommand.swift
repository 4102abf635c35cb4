import ArgumentParser
import FoundationEssentials
import Glibc
import Live
import Peer
import RetakeCommand
import SDP
import Signaling
import Synchronization
import Tape
import Wire

/// Measures what a relay adds to the calls that go through it.
struct BenchRelayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "relay",
    abstract: "Measure the delay of packets through a relay that records, and many calls at once.",
    discussion: """
      Both ends of each call send packets of video, 1 Mbit/s each, through `retake record relay`, \
      in a process beside this one. The delay is from just before a packet is encrypted and sent \
      here to the kernel's receive stamp of what the relay sent on: a little more than from the \
      relay's receive stamp to its send. Of several runs the median counts.

      Example:
        retake-bench relay --calls 10 --runs 1
      """)

  @Option(
    help: "How many calls at once have their delay measured. Default: first 1, then 10.",
    transform: Taking.whole(1...200))
  var calls: [Int] = []

  @Option(
    help: "How many calls run at once for the loss and the memory, 0 for none. Default: 50.",
    transform: Taking.whole(0...200))
  var many = Self.usualMany

  @Option(
    help: "For how many seconds packets are sent for a delay. Default: \(Self.usualSeconds).",
    transform: Taking.seconds(1...600))
  var seconds = Double(Self.usualSeconds)

  @Option(
    help: "For how many seconds --many calls send. Default: \(Self.usualManySeconds).",
    transform: Taking.seconds(1...600))
  var manySeconds = Double(Self.usualManySeconds)

  @Option(
    help: "How many runs there are of each delay. Default: \(Self.usualRuns).",
    transform: Taking.whole(1...100))
  var runs = Self.usualRuns

  @Flag(help: "Print JSON for programs.")
  var json = false

  private static let usualMany = 50
  private static let usualSeconds = 8
  private static let usualManySeconds = 30
  private static let usualRuns = 5
  /// Goals for delays, in milliseconds, and for memory, in megabytes per call.
  private static let medianGoal = 1.0
  private static let tailGoal = 3.0
  private static let memoryGoal = 4.0

  func run() async throws {
    let folder = try BenchFolder()
    defer { folder.remove() }
    var table = try BenchTable(seconds: Int(seconds), show: json ? nil : { try Output.line($0) })
    for count in calls.isEmpty ? [1, 10] : calls {
      var results: [RelayLoad.Outcome] = []
      for _ in 0..<runs {
        results.append(try await RelayLoad.run(count, for: seconds, in: folder.url))
      }
      let what = "delay through a relay, \(counted(count, "call"))"
      try table.add(
        "\(what), median", RelayLoad.median(of: results.map { $0.delay(0.5) }),
        floor: Self.medianGoal, "ms", .atMost, 1)
      try table.add(
        "\(what), 99 %", RelayLoad.median(of: results.map { $0.delay(0.99) }),
        floor: Self.tailGoal, "ms", .atMost, 1)
      try add(results.reduce(0) { $0 + $1.lost }, of: count, to: &table)
    }
    if many > 0 { try await addMany(to: &table, folder.url) }
    try table.end()
  }

  private func add(_ lost: Int, of count: Int, to table: inout BenchTable) throws {
    try table.add(
      "packets lost, \(counted(count, "call"))", Double(lost), floor: 0, "", ratio: Double(lost),
      .atMost, 0)
  }

  private func addMany(to table: inout BenchTable, _ folder: URL) async throws {
    let one = try await RelayLoad.run(1, for: manySeconds / 3, in: folder)
    let all = try await RelayLoad.run(many, for: manySeconds, in: folder)
    try add(all.lost, of: many, to: &table)
    try table.add(
      "packets missing from the rows of both ends", Double(all.unseen), floor: 0, "",
      ratio: Double(all.unseen), .atMost, 0)
    try table.add(
      "delay through a relay, \(counted(many, "call")), median", all.delay(0.5),
      floor: Self.medianGoal, "ms", .atMost, 10)
    try table.add(
      "the relay's processor time, each second", all.processorSeconds / manySeconds, floor: 2, "s",
      .atMost, 1)
    guard many > 1 else { return }
    try table.add(
      "memory for each further call", (all.megabytes - one.megabytes) / Double(many - 1),
      floor: Self.memoryGoal, "MB", .atMost, 1)
  }
}

// MARK: - RelayLoad

/// Calls that send video packets both ways through a relay, which runs in a separate process.
///
/// The ends are legs in this process: they encrypt and decrypt, but do not negotiate.
private enum RelayLoad {
  struct Outcome {
    /// The delays in milliseconds, in ascending order.
    var delays: [Double]
    var lost: Int
    /// The number of packets that arrived too fast to be recorded in the relay's take.
    var unseen: Int
    /// The relay's peak memory in megabytes.
    var megabytes: Double
    var processorSeconds: Double

    /// Returns the delay in milliseconds that the given share of packets (0 to 1) does not exceed.
    func delay(_ share: Double) -> Double {
      guard !delays.isEmpty else { return .infinity }
      return delays[min(delays.count - 1, Int(Double(delays.count) * share))]
    }
  }

  /// How long packets may take to arrive after the last one was sent.
  private static let grace = Duration.milliseconds(500)

  static func median(of values: [Double]) -> Double { values.sorted()[values.count / 2] }

  static func run(_ count: Int, for seconds: Double, in folder: URL) async throws -> Outcome {
    let take = folder.appendingPathComponent("relay.take").path
    try? FileManager.default.removeItem(atPath: take)
    let watch = PacketWatch()
    let ends = try await RelayEnds(watch)
    let relay = try Child(
      BenchCommand.retake,
      [
        "record", "relay", "--listen", "127.0.0.1:0", "--upstream", ends.server.url, "--bind",
        "127.0.0.1", "--calls", "\(count)", "--json", "--out", take,
      ])
    let said = try relay.waitForErrors("give it to the application")
    // The line is: `The relay to http://... is http://127.0.0.1:PORT: give it to the application
    // instead.`
    guard let start = said.split(separator: " is http://127.0.0.1:").dropFirst().first,
      let port = Int(start.prefix { $0.isNumber })
    else { throw CommandFailure(.inputOutput, "record relay names no address: \(said)") }
    for _ in 0..<count { try await ends.call(through: "http://127.0.0.1:\(port)") }
    let used = relay.processorSeconds
    let legs = await ends.legs
    let sent = await send(to: legs, for: seconds)
    try await Task.sleep(for: grace)
    var outcome = Outcome(
      delays: watch.delays, lost: 0, unseen: 0, megabytes: relay.peakMegabytes,
      processorSeconds: relay.processorSeconds - used)
    outcome.lost = sent - outcome.delays.count
    _ = try relay.interrupt()
    let words = relay.errors.split(separator: "\n").first {
      $0.contains("came too fast for the rows")
    }
    outcome.unseen = words.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
    if relay.errors.contains("too slow") {
      throw CommandFailure(.inputOutput, "record relay lost its take: \(relay.errors)")
    }
    try await ends.finish()
    return outcome
  }

  /// Sends 1 Mbit/s from every leg, evenly spaced; returns the number of packets sent.
  private static func send(to legs: [PeerConnection], for seconds: Double) async -> Int {
    await withCheckedContinuation { continuation in
      startWorker(named: "traffic") {
        let traffic = VideoTraffic()
        let rate = VideoTraffic.packetsPerSecond * Double(legs.count)
        let all = Int(rate * seconds)
        let begin = ContinuousClock.now
        var sent = 0
        while sent < all {
          let due = min(all, Int(begin.duration(to: .now).seconds * rate) + 1)
          while sent < due {
            let flow = sent % legs.count
            let bytes = traffic.packet(sent / legs.count, of: flow)
            legs[flow].send(RelayedPacket(kind: .rtp, transport: 0, bytes: bytes))
            sent += 1
          }
          let wait = begin.duration(to: .now).seconds - Double(sent) / rate
          usleep(UInt32(max(100, -wait * 1e6)))
        }
        continuation.resume(returning: sent)
      }
    }
  }
}

// MARK: - RelayEnds

/// The two ends of each call, and the server that answers the offers.
private actor RelayEnds {
  nonisolated let server: HTTPServer
  private let session: Session
  private let far: FarLegs
  private(set) var legs: [PeerConnection] = []

  init(_ watch: PacketWatch) async throws {
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    options.statsInterval = nil
    options.sink = watch
    let session = try Session(options)
    let far = FarLegs()
    server = try await HTTPServer.listen(host: "127.0.0.1", port: 0) { request in
      do {
        let body = String(decoding: request.body, as: UTF8.self)
        guard let offer = try JSONValue(parsing: body)["sdp"]?.text else {
          return .refusal(400, "no offer")
        }
        let leg = RelayEnds.leg(of: session, "far")
        try await leg.setRemoteDescription(SessionDescription(type: .offer, sdp: offer))
        let shown = try await leg.show(
          SessionDescription(type: .answer, sdp: VideoTraffic.description))
        await far.add(leg)
        return HTTPResponse(json: RelayEnds.message("answer", shown.sdp))
      } catch {
        return .refusal(500, "\(error)")
      }
    }
    self.session = session
    self.far = far
  }

  /// Retains the legs that answered, because a leg closes when it is released.
  private actor FarLegs {
    private(set) var all: [PeerConnection] = []
    func add(_ leg: PeerConnection) { all.append(leg) }
  }

  private static func leg(of session: Session, _ label: String) -> PeerConnection {
    session.makeLeg(
      label: label, role: "bench", configuration: PeerConfiguration(), onState: { _ in },
      forward: { _, _ in })
  }

  private static func message(_ type: String, _ sdp: String) -> String {
    JSONText.object([("type", .text(type)), ("sdp", .text(sdp))]).text
  }

  /// Makes a call through a relay; returns once both ends are connected to it.
  func call(through relay: String) async throws {
    let near = RelayEnds.leg(of: session, "near")
    let offer = try await near.show(
      SessionDescription(type: .offer, sdp: VideoTraffic.description))
    let response = try await HTTPClient().post(
      relay + "/call", json: RelayEnds.message("offer", offer.sdp))
    guard response.status == 200, let answer = try JSONValue(parsing: response.text)["sdp"]?.text
    else { throw CommandFailure(.difference, "no call through the relay: \(response.text)") }
    try await near.setRemoteDescription(SessionDescription(type: .answer, sdp: answer))
    guard let far = await far.all.last else { return }
    try await near.waitUntilConnected()
    try await far.waitUntilConnected()
    legs += [near, far]
  }

  func finish() async throws {
    try await session.finish()
    await server.shutdown()
  }
}

// MARK: - VideoTraffic

/// Generates RTP packets with VP8 headers and random payloads.
private struct VideoTraffic {
  static let packetLength = 1200
  /// The packet rate of 1 Mbit/s.
  static let packetsPerSecond = 1e6 / Double(8 * packetLength)
  private static let packetsPerFrame = 4
  private static let keyFrameInterval = 250
  private let noise: [UInt8]

  static let description = """
    v=0
    o=- 1 1 IN IP4 127.0.0.1
    s=-
    t=0 0
    a=group:BUNDLE 0
    m=video 9 UDP/TLS/RTP/SAVPF 96
    c=IN IP4 0.0.0.0
    a=mid:0
    a=sendrecv
    a=rtcp-mux
    a=rtpmap:96 VP8/90000
    a=rtcp-fb:96 nack
    a=rtcp-fb:96 nack pli
    a=fingerprint:sha-256 \(Array(repeating: "00", count: 32).joined(separator: ":"))
    a=setup:actpass

    """.replacing("\n", with: "\r\n")

  init() {
    var state: UInt64 = 1
    noise = (0..<1 << 16).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  func packet(_ number: Int, of flow: Int) -> [UInt8] {
    let (frame, piece) = number.quotientAndRemainder(dividingBy: Self.packetsPerFrame)
    var bytes: [UInt8] = [0x80, 96 | (piece == Self.packetsPerFrame - 1 ? 0x80 : 0)]
    bytes.reserveCapacity(Self.packetLength)
    withUnsafeBytes(of: UInt16(truncatingIfNeeded: number).bigEndian) { bytes += $0 }
    let step = 90_000 * Double(Self.packetsPerFrame) / Self.packetsPerSecond
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: Int(Double(frame) * step)).bigEndian) {
      bytes += $0
    }
    withUnsafeBytes(of: UInt32(1000 + flow).bigEndian) { bytes += $0 }
    // The payload descriptor (RFC 7741 section 4.2), and the frame's header (RFC 6386 section 9.1).
    bytes.append(piece == 0 ? 0x10 : 0)
    if piece == 0 {
      let isKey = frame % Self.keyFrameInterval == 0
      bytes += isKey ? [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01] : [0x11, 0, 0]
    }
    let begin = (number &* 1237 &+ flow &* 37) % (noise.count - Self.packetLength)
    bytes += noise[begin..<begin + Self.packetLength - bytes.count]
    return bytes
  }
}

// MARK: - PacketWatch

/// Records when each packet left one end and reached the other.
private final class PacketWatch: PeerSink {
  private struct State {
    var sent: [UInt64: Instant] = [:]
    var delays: [Double] = []
    var peers: UInt32 = 0
  }

  private let state = Mutex(State())

  /// The delays so far in milliseconds, in ascending order.
  var delays: [Double] { state.withLock { $0.delays }.sorted() }

  func begin(_ wallClock: WallClock) {}
  func end(actor: UInt32) {}

  func addPeer(label: String, role: String) -> (actor: UInt32, peer: UInt32) {
    state.withLock { state in
      state.peers += 1
      return (state.peers, state.peers)
    }
  }

  func record(_ step: StepRecord) {
    switch step.peerInput {
    case .relayed(let packet):
      state.withLock { $0.sent[Self.key(packet.bytes)] = step.at }
    case .datagram(_, let arrival):
      for case .relayed(let packet) in step.peerOutputs where packet.kind == .rtp {
        state.withLock { state in
          guard let sent = state.sent.removeValue(forKey: Self.key(packet.bytes)) else { return }
          state.delays.append(Double(arrival.nanoseconds - sent.nanoseconds) / 1e6)
        }
      }
    default: break
    }
  }

  /// Returns an RTP packet's SSRC and sequence number as one key.
  private static func key(_ bytes: [UInt8]) -> UInt64 {
    let span = bytes.span.bytes
    return UInt64(span.uint32(at: 8)) << 16 | UInt64(span.uint16(at: 2))
  }

  func finish(_ path: String) async -> TakeSummary {
    TakeSummary(path: path, steps: 0, packets: 0, bytes: 0)
  }
}
