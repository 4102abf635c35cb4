import Foundation
import ICE
import Lab
import Media
import Peer
import RTP
import SDP
import Signaling
import Testing
import Wire

@testable import SCTP

/// Every parser of untrusted input survives any bytes: no traps, no hangs, no reads out of bounds.
///
/// The tests use a million inputs by default; `RETAKE_MUTATIONS=N` sets another total, and
/// `RETAKE_MUTATIONS_EACH=N` the number for each parser (`make fuzz`).
@Suite(.timeLimit(.minutes(InputBudget.minutes))) struct AnyBytesTests {
  private func count(_ perMille: Int) -> Int { InputBudget.count(perMille) }

  private func tell(_ entrance: String, _ count: Int, _ taken: Int) {
    print("any bytes: \(entrance): \(count) inputs, \(taken) of them well-formed")
  }

  // MARK: Packets

  @Test func anyBytesMayBeSTUN() throws {
    var damage = Damage(seed: 1)
    let samples = Samples.datagrams(seed: 1, milliseconds: 200).map(\.datagram.bytes).filter {
      DatagramClass($0.span.bytes) == .stun
    }
    try #require(samples.count > 4)
    let count = count(246)
    let key = Array("password".utf8)
    var taken = 0
    for round in 0..<count {
      let bytes = damage.damaged(samples)
      guard STUNMessage.matches(bytes.span.bytes), let message = try? STUNMessage(bytes) else {
        continue
      }
      taken += 1
      for attribute in message.attributes where attribute.range.upperBound > bytes.count {
        Issue.record("an attribute ends at \(attribute.range.upperBound) of \(bytes.count)")
      }
      _ = (message.username, message.priority, message.mappedAddress, message.errorCode)
      _ = (message.iceControlling, message.unknownAttributes, message.notUnderstood)
      if round % 16 == 0 {
        _ = (message.verifiesIntegrity(key: key), message.hasValidFingerprint)
      }
    }
    tell("STUN", count, taken)
    #expect(taken > count / 50, "the damage must leave something to look at")
  }

  @Test func anyBytesMayBeRTP() throws {
    var damage = Damage(seed: 2)
    let samples = try Samples.clearPackets().rtp
    try #require(samples.count > 4)
    let count = count(315)
    var map = HeaderExtensionMap()
    (map.mid, map.audioLevel, map.absoluteSendTime, map.transportSequence) = (4, 1, 2, 3)
    var taken = 0
    for _ in 0..<count {
      let bytes = damage.damaged(samples)
      let span = bytes.span.bytes
      guard DatagramClass(span) == .rtp, let header = try? RTPHeader(parsing: span) else {
        continue
      }
      taken += 1
      let payload = header.payload
      guard payload.lowerBound >= RTPHeader.fixedLength, payload.upperBound <= bytes.count else {
        Issue.record("a payload lies at \(payload) of \(bytes.count) bytes")
        continue
      }
      let extensions = HeaderExtensions(parsing: span, header: header, map: map)
      if let mid = extensions.mid, mid.upperBound > bytes.count {
        Issue.record("an extension lies at \(mid) of \(bytes.count) bytes")
      }
      _ = RTX.unwrap(span, header: header)
      _ = OpusPacket(Array(bytes[payload]))
      for codec in Codec.all { check(codec, Array(bytes[payload])) }
    }
    tell("RTP", count, taken)
    #expect(taken > count / 10)
  }

  /// Parses a payload in `codec`'s format, and packetizes the result again.
  private func check(_ codec: Codec, _ payload: [UInt8]) {
    let name = codec.name.rawValue
    _ = codec.look?(payload.span.bytes)
    switch codec.payload.read(payload.span.bytes)?.content {
    case .slice(let range) where range.upperBound > payload.count:
      Issue.record("a slice of \(name) ends at \(range.upperBound)")
    // The result may be longer than the payload, because start codes are longer than the lengths
    // that they replace.
    case .bytes(let made) where made.count > 4 + 2 * payload.count:
      Issue.record("\(payload.count) bytes of \(name) became \(made.count)")
    default: break
    }
    guard let made = codec.payload.join?([payload[...], payload[...]]) else { return }
    if made.count > 4 + 4 * payload.count {
      Issue.record("\(payload.count) bytes of \(name) twice became \(made.count)")
    }
    let frame = EncodedFrame(
      kind: codec.kind, codec: codec.name, mediaTime: 0, bytes: made, isKey: false)
    for share in PayloadShare.all(of: frame, pictureID: 0, limit: 200)
    where share.prefix.length + share.range.count > 200 || share.range.upperBound > made.count {
      Issue.record("a share of \(name) has \(share.range) of \(made.count) bytes")
    }
  }

  @Test func anyBytesMayBeRTCP() throws {
    var damage = Damage(seed: 3)
    let samples = try Samples.clearPackets().rtcp
    try #require(samples.count > 4)
    let count = count(265)
    var taken = 0
    for _ in 0..<count {
      let bytes = damage.damaged(samples)
      let compound = RTCPCompound(parsing: bytes.span.bytes)
      // Every packet needs at least four bytes. If a parser reported more packets than fit into the
      // input, a small input could use much memory.
      if compound.packets.count + compound.malformedCount > bytes.count / 4 + 1 {
        Issue.record("\(compound.packets.count) packets in \(bytes.count) bytes")
      }
      taken += compound.packets.isEmpty ? 0 : 1
    }
    tell("RTCP", count, taken)
    #expect(taken > count / 10)
  }

  /// Sends damaged packets to associations in every state.
  ///
  /// The packets come from the association's peer and get valid checksums and tags, because an
  /// association drops all others before it parses them.
  @Test func anyBytesMayBeSCTP() throws {
    var damage = Damage(seed: 7)
    let samples = Samples.associations()
    try #require(samples.packets.count > 50)
    let count = count(60)
    var taken = 0
    let states = Samples.states(of: samples.association, at: samples.now)
    let phases = states.map(\.handshake.phase)
    #expect(
      phases == [
        .cookieWait, .cookieEchoed, .established, .established, .shutdownPending, .shutdownSent,
        .shutdownReceived, .shutdownAcknowledgementSent,
      ])
    var association = samples.association
    var now = samples.now
    var outbox = Outbox<SCTPAssociation.Output>()
    for round in 0..<count {
      var bytes = damage.damaged(samples.packets)
      // Most packets get this association's ports and tag; all others are dropped unread.
      if bytes.count >= 12, damage.below(8) != 0 {
        bytes.replaceSubrange(0..<8, with: samples.packets[1][0..<8])
      }
      if bytes.count >= 12 {
        bytes.replaceSubrange(8..<12, with: [0, 0, 0, 0])
        let sum = CRC32C.checksum(of: bytes.span.bytes)
        for offset in 0..<4 { bytes[8 + offset] = UInt8(truncatingIfNeeded: sum >> (8 * offset)) }
      }
      let dropped = association.statistics.dropped
      now = now + .milliseconds(1)
      association.step(.packet(bytes), at: now, into: &outbox)
      if let due = association.deadline, due <= now {
        association.step(.deadline, at: now, into: &outbox)
      }
      taken += association.statistics.dropped == dropped ? 1 : 0
      var packets = 0
      while let output = outbox.next() {
        if case .packet(let packet) = output {
          packets += 1
          if packet.count > 1160 { Issue.record("a packet of \(packet.count) bytes") }
        }
      }
      if packets > 1000 { Issue.record("\(packets) packets answer one") }
      if !Samples.isBounded(association) { Issue.record("the memory grows") }
      // A peer may end an association: start a new one, so that every state has its turn.
      if association.state == .closed || round % 200 == 199 {
        association = states[round / 200 % states.count]
        now = samples.now
      }
    }
    tell("SCTP", count, taken)
    #expect(taken > count / 50)
  }

  // MARK: Text

  @Test func anyBytesMayBeADescription() throws {
    var damage = Damage(seed: 4)
    // The first lines contain every kind of line; the signaling test below parses full
    // descriptions.
    let samples = try Samples.descriptions().map { Array($0.prefix(700)) }
    let count = count(10)
    var taken = 0
    for _ in 0..<count {
      let text = String(decoding: damage.damaged(samples), as: UTF8.self)
      do {
        _ = try SDPDocument(parsing: text)
        taken += 1
      } catch {
        if error.reason.isEmpty { Issue.record("a refusal without a reason") }
      }
    }
    tell("SDP", count, taken)
    #expect(taken > count / 50)
  }

  @Test func anyBytesMayBeAFragment() async throws {
    var damage = Damage(seed: 7)
    let routes = SessionRoutes(sessions: ParsingSessions())
    let text = """
      a=ice-ufrag:EsAw\r
      a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r
      m=audio 9 RTP/AVP 0\r
      a=mid:0\r
      a=candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host\r
      a=end-of-candidates\r

      """
    let fields = [("Content-Type", "application/trickle-ice-sdpfrag"), ("If-Match", "*")]
    let count = count(5)
    var taken = 0
    for _ in 0..<count {
      let request = HTTPRequest(
        method: "PATCH", target: "/whip/1", headers: fields.map { (name: $0.0, value: $0.1) },
        body: damage.damaged([Array(text.utf8)]))
      let status = await routes.respond(to: request)?.status
      if status != 200, status != 204, status != 400 {
        Issue.record("status \(status ?? 0) for a fragment")
      }
      taken += status == 400 ? 0 : 1
    }
    tell("ICE fragments", count, taken)
    #expect(taken > count / 50)
  }

  @Test func anyBytesMayBeSignaled() async throws {
    var damage = Damage(seed: 5)
    let routes = SignalingRoutes(calls: ParsingCalls(), page: "")
    let description = String(decoding: try Samples.descriptions()[0].prefix(400), as: UTF8.self)
    let bodies = try [
      ["type": "offer", "sdp": description],
      ["type": "answer", "sdp": description, "id": "call-1"],
      ["id": "call-1", "candidate": "candidate:1 1 udp 2113937151 192.0.2.1 5000 typ host"],
      ["id": "call-1"],
    ].map { Array(try JSONEncoder().encode($0)) }
    let targets = ["/offer", "/answer", "/candidate", "/bye", "/stats?id=call-1", "/call/call%2d1"]
      .map { Array($0.utf8) }
    let count = count(15)
    var taken = 0
    for _ in 0..<count {
      let target = damage.below(4) == 0 ? damage.damaged(targets) : targets[damage.below(4)]
      let request = HTTPRequest(
        method: damage.below(8) == 0 ? "DELETE" : "POST",
        target: String(decoding: target, as: UTF8.self), body: damage.damaged(bodies))
      let response = await routes.respond(to: request)
      if ![200, 400, 404, 405, 409].contains(response.status) {
        Issue.record("status \(response.status) for \(request.path)")
      }
      taken += response.status == 200 ? 1 : 0
    }
    tell("HTTP signaling", count, taken)
    #expect(taken > count / 50)
  }

  // MARK: Full stack

  /// Sends damaged datagrams of a call, DTLS included, to its stack in every phase.
  @Test func anyBytesMayReachAPeer() throws {
    var damage = Damage(seed: 6)
    let count = count(20)
    let rounds = 8
    for round in 0..<rounds {
      let seed = UInt64(round) + 10
      let datagrams = Samples.datagrams(seed: seed, milliseconds: 120)
      let samples = datagrams.map(\.datagram.bytes)
      let path = try #require(datagrams.first { $0.peer == 1 }).datagram
      let call = Samples.call(seed: seed)
      // In the first round, the peers have no descriptions.
      if round > 0 { #expect(call.negotiate() == nil) }
      for index in 0..<count / rounds {
        let bytes = damage.damaged(samples)
        let datagram = Datagram(local: path.local, remote: path.remote, bytes: bytes)
        call.step(1, .datagram(datagram, arrival: call.now))
        if index % 64 == 0 { call.run(for: .milliseconds(Int64(round))) }
      }
      guard case .stats = call.call(1, .getStats()) else {
        Issue.record("the peer answers no more")
        continue
      }
    }
    tell("whole stack", count, count)
  }
}

/// Parses calls' requests and stores nothing.
private struct ParsingCalls: CallHandling {
  private func parse(_ sdp: String) throws(CallRefusal) {
    do throws(SDPError) {
      _ = try SDPDocument(parsing: sdp)
    } catch {
      throw CallRefusal(.badRequest, error.reason)
    }
  }

  func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription {
    try parse(sdp)
    return CallDescription(id: "call-1", sdp: sdp, type: "answer")
  }

  func follow(offer sdp: String, call id: String) async throws(CallRefusal) -> CallDescription {
    try await begin(offer: sdp)
  }

  func makeOffer() async throws(CallRefusal) -> CallDescription {
    CallDescription(id: "call-1", sdp: "", type: "offer")
  }

  func makeOffer(call id: String, changing changes: OfferChanges) async throws(CallRefusal)
    -> CallDescription
  {
    try await makeOffer()
  }

  func accept(answer sdp: String, call id: String) async throws(CallRefusal) { try parse(sdp) }

  func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal) {}

  func end(call id: String) async throws(CallRefusal) {
    if id != "call-1" { throw CallRefusal(.unknownCall, "there is no such call") }
  }

  func list() async -> CallList { CallList(limit: 1, calls: []) }
  func stats(call id: String?) async throws(CallRefusal) -> String { "{}" }
}

/// Answers every fragment with an ICE restart.
private struct ParsingSessions: SessionHandling {
  private static let description =
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
    + "a=mid:0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijkl\r\n"

  func open(_ kind: SessionProtocol, offer: String) async throws(CallRefusal) -> OpenedSession {
    throw CallRefusal(.busy, "only fragments are taken")
  }

  func apply(
    _ fragment: SDPFragment, text: String, to id: String, of kind: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession? {
    do throws(SDPError) {
      let document = try SDPDocument(parsing: Self.description)
      guard let restarted = document.restarted(by: fragment) else { return nil }
      let again = try SDPDocument(parsing: restarted.text)
      return RestartedSession(fragment: again.text, entityTag: "")
    } catch {
      throw CallRefusal(.failure, "a fragment makes a description that cannot be read: \(error)")
    }
  }

  func close(_ id: String, of kind: SessionProtocol) async throws(CallRefusal) {}
}
