import Foundation
import Peer
import Room
import SDP
import Testing
import Wire

/// A room survives any server: messages arrive mutated, late, twice, in any order or never, while
/// the room sends requests and connections open and close.
///
/// These tests use 10 of every thousand inputs that `AnyBytesTests` distributes.
@Suite(.timeLimit(.minutes(InputBudget.minutes))) struct AnyBytesInRoomsTests {
  private func tell(_ entrance: String, _ count: Int, _ taken: Int) {
    print("any bytes: \(entrance): \(count) inputs, \(taken) of them with an effect")
  }

  private static var transcripts: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "RoomTests/Protocols/Transcripts")
  }

  /// Returns the frames in a real server's transcripts.
  private static func frames(_ name: String) throws -> [String] {
    let text = try String(
      contentsOf: transcripts.appending(path: name + ".jsonl"), encoding: .utf8)
    return try text.split(separator: "\n").compactMap { line in
      let step = try JSONValue(parsing: String(line))
      return step["input"]?["transport"]?["_1"]?["frame"]?["_0"]?["text"]?["_0"]?.text
    }
  }

  @Test func anyServerMayBeAJanus() throws {
    let count = InputBudget.count(4)
    var taken = 0
    for (plugin, name) in [
      ("videoroom", "videoroom-subscriber"), ("videoroom", "videoroom-publisher"),
      ("audiobridge", "audiobridge"), ("echotest", "echotest"),
    ] {
      var fuzz = RoomFuzz<JanusMachine>(
        seed: 21, texts: try Self.frames(name),
        options: ["plugin": plugin, "textroom": "1234"])
      fuzz.run(count / 4)
      taken += fuzz.effects
    }
    tell("Janus", count, taken)
    #expect(taken > count / 10)
  }

  @Test func anyServerMayBeARoom() {
    let count = InputBudget.count(2)
    var fuzz = RoomFuzz<RetakeRoomMachine>(seed: 22, texts: RoomSamples.room, options: [:])
    fuzz.run(count)
    tell("rooms", count, fuzz.effects)
    #expect(fuzz.effects > count / 10)
  }

  @Test func anyServerMayBeASora() {
    let count = InputBudget.count(2)
    var fuzz = RoomFuzz<SoraMachine>(
      seed: 23, texts: RoomSamples.sora, options: ["data_channels": "[]"])
    fuzz.run(count)
    tell("Sora", count, fuzz.effects)
    #expect(fuzz.effects > count / 10)
  }

  @Test func anyServerMayBeAnEndpoint() {
    let count = InputBudget.count(1)
    var whip = RoomFuzz<WHIPMachine>(seed: 24, texts: RoomSamples.bodies, options: [:])
    whip.run(count / 2)
    var whep = RoomFuzz<WHEPMachine>(seed: 25, texts: RoomSamples.bodies, options: [:])
    whep.run(count / 2)
    tell("WHIP and WHEP", count, whip.effects + whep.effects)
    #expect(whip.effects + whep.effects > count / 20)
  }

  @Test func anyBytesMayBeARequestToARoom() {
    var damage = Damage(seed: 26)
    let count = InputBudget.count(1)
    let samples = RoomSamples.requests.map { Array($0.utf8) }
    var taken = 0
    for _ in 0..<count {
      let text = String(decoding: damage.damaged(samples), as: UTF8.self)
      do throws(JSONError) {
        let request = try RoomRequest(parsing: text)
        taken += 1
        // A parsed request, written and parsed again, must stay the same.
        let again = try RoomRequest(parsing: request.text)
        if again != request { Issue.record("\(request.text) is read in two ways") }
      } catch {
        if error.reason.isEmpty { Issue.record("a refusal without a reason") }
      }
    }
    tell("requests to rooms", count, taken)
    #expect(taken > count / 50)
  }
}

/// A room's state machine, connected to a server that may send anything.
private struct RoomFuzz<Protocol: SignalingMachine> {
  private static var episodeLength: Int { 250 }
  private var isOverHTTP: Bool { ["whip", "whep"].contains(Protocol.name) }

  private let texts: [[UInt8]]
  private let options: [String: String]
  private var damage: Damage
  private var machine: Protocol
  private var now = Instant.zero
  private var transport = TransportID(0)
  private var request = RequestID(0)
  private var connections: UInt32 = 0
  private var transaction: String?
  private var endings = 0
  private var actionCount: UInt32 = 0
  /// The room's pending actions.
  private var actions: [ActionID] = []
  /// How many inputs had an effect.
  private(set) var effects = 0

  init(seed: UInt64, texts: [String], options: [String: String]) {
    self.texts = texts.map { Array($0.utf8) }
    self.options = options
    damage = Damage(seed: seed)
    machine = Self.machine(options)
  }

  private static func machine(_ options: [String: String]) -> Protocol {
    Protocol(
      SignalingConfiguration(
        protocolName: Protocol.name, urls: ["wss://one.example/", "wss://two.example/"],
        options: options), entropy: Entropy(seed: [7]))
  }

  mutating func run(_ count: Int) {
    var done = 0
    while done < count {
      begin()
      let length = min(1 + damage.below(2 * Self.episodeLength), count - done)
      // The server starts with valid messages; then it may send anything.
      for place in 0..<damage.below(min(texts.count, length)) {
        step(.transport(transport, .frame(.text(answering(texts[place])))))
        done += 1
      }
      while done < count, endings == 0, damage.below(Self.episodeLength) != 0 {
        step(input())
        done += 1
      }
      end()
    }
  }

  private mutating func begin() {
    machine = Self.machine(options)
    (now, endings, connections, transaction, actions) = (.zero, 0, 0, nil, [])
    let roles: [ConnectionRole] = [.both, .down, .up]
    step(.intent(.join(RoomJoin(room: "1234", role: roles[damage.below(3)]))))
    if damage.below(8) != 0 { step(.transport(transport, .opened(subprotocol: nil))) }
  }

  /// Leaves the room, and expects it to close in time whatever the server does.
  private mutating func end() {
    step(.intent(.leave))
    for _ in 0..<100 where endings == 0 {
      guard let due = machine.deadline else { break }
      now = max(now, due)
      step(.deadline)
    }
    if endings != 1 { Issue.record("\(Protocol.name): \(endings) endings; \(machine.status)") }
    if machine.deadline != nil { Issue.record("\(Protocol.name): a deadline after the end") }
    if !actions.isEmpty { Issue.record("\(Protocol.name): \(actions.count) actions unanswered") }
  }

  private mutating func step(_ input: SignalingInput) {
    var outbox = Outbox<SignalingOutput>()
    machine.step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    if !outputs.isEmpty { effects += 1 }
    if outputs.count > 3_000 { Issue.record("\(outputs.count) outputs of one step") }
    for output in outputs {
      if endings > 0, case .event = output { Issue.record("an event after the end: \(output)") }
      take(output)
    }
  }

  private mutating func take(_ output: SignalingOutput) {
    switch output {
    case .transport(let id, .open): transport = id
    case .transport(_, .send(.text(let text))):
      let value = try? JSONValue(parsing: text)
      transaction = (value?["transaction"] ?? value?["request"])?.identifier ?? transaction
    case .request(let id, _): request = id
    case .connection(let id, .open): connections = max(connections, id.number)
    case .event(.ended): endings += 1
    case .event(.result(let action, _)):
      guard let index = actions.firstIndex(of: action) else {
        Issue.record("\(Protocol.name): \(action) is answered twice")
        return
      }
      actions.remove(at: index)
    default: break
    }
  }

  // MARK: Inputs

  private mutating func input() -> SignalingInput {
    switch damage.below(20) {
    case 0..<9: return isOverHTTP ? http() : .transport(transport, .frame(frame()))
    case 9, 10: return http()
    case 11..<14: return .connection(ConnectionID(1 + UInt32(damage.below(3))), report())
    case 14..<17: return .intent(intent())
    case 17:
      if let due = machine.deadline {
        now = max(now, due)
        return .deadline
      }
      now += .seconds(Int64(damage.below(40)))
      return .deadline
    case 18: return .transport(transport, .opened(subprotocol: "x"))
    default: return loss()
    }
  }

  private mutating func loss() -> SignalingInput {
    let id = damage.below(4) == 0 ? TransportID(UInt32(damage.below(9))) : transport
    switch damage.below(4) {
    case 0: return .transport(id, .failed("gone"))
    case 1: return .transport(id, .closed(code: UInt16(damage.below(5000)), reason: "closed"))
    default: return .transport(id, .opened(subprotocol: nil))
    }
  }

  /// Returns a server message, intact or damaged, for the last request or for another.
  private mutating func text() -> String {
    let isWhole = damage.below(3) != 0
    let bytes = isWhole ? texts[damage.below(texts.count)] : damage.damaged(texts)
    return damage.below(4) == 0 ? String(decoding: bytes, as: UTF8.self) : answering(bytes)
  }

  /// Returns a message that refers to the last request, and so answers it.
  private func answering(_ bytes: [UInt8]) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let transaction else { return text }
    return text.replacingValue(of: "transaction", with: "\"\(transaction)\"")
      .replacingValue(of: "request", with: transaction)
  }

  private mutating func frame() -> SignalingFrame {
    damage.below(40) == 0 ? .binary(Array(text().utf8)) : .text(text())
  }

  private mutating func http() -> SignalingInput {
    let id = damage.below(4) == 0 ? RequestID(UInt32(damage.below(9))) : request
    guard damage.below(8) != 0 else { return .response(id, .failed("no answer")) }
    let statuses = [200, 201, 204, 307, 308, 401, 404, 405, 406, 412, 503]
    var fields = [
      HTTPField("Location", "/session/1"), HTTPField("ETag", "\"1\""),
      HTTPField("Content-Type", "application/sdp"), HTTPField("Retry-After", "1"),
      HTTPField("Link", "<stun:a.example>; rel=\"ice-server\""),
    ]
    if damage.below(3) == 0 {
      let index = damage.below(fields.count)
      let value = damage.damaged([Array(fields[index].value.utf8)])
      fields[index].value = String(decoding: value, as: UTF8.self)
    }
    return .response(
      id,
      .answered(
        status: statuses[damage.below(statuses.count)], fields: fields, body: Array(text().utf8)))
  }

  private mutating func report() -> ConnectionReport {
    let sdp = String(decoding: texts[damage.below(texts.count)], as: UTF8.self)
    let place = LocalMediaPlace(
      media: LocalMediaID(UInt32(damage.below(3))), mid: String(damage.below(3)))
    switch damage.below(10) {
    case 0, 1: return .description(SessionDescription(type: .offer, sdp: sdp), media: [place])
    case 2, 3: return .description(SessionDescription(type: .answer, sdp: sdp), media: [place])
    case 4: return .refused(PeerError(name: "OperationError", message: "no"))
    case 5: return .candidate(damage.below(3) == 0 ? nil : CandidateInit(candidate: "candidate:1"))
    case 6: return .state(damage.below(2) == 0 ? .failed : .connected)
    case 7: return .channelOpened(label: "JanusDataChannel")
    case 8: return .channelMessage(label: channelLabel(), frame())
    default: return .stats(ActionID(UInt32(damage.below(4))), "[]")
    }
  }

  private mutating func channelLabel() -> String {
    ["JanusDataChannel", "signaling", "notify", "stats", "#chat"][damage.below(5)]
  }

  private mutating func intent() -> RoomIntent {
    actionCount += 1
    let action = ActionID(actionCount)
    let media = MediaID(UInt32(damage.below(6)))
    let own = LocalMediaInfo(id: LocalMediaID(UInt32(damage.below(3))), kind: .audio)
    switch damage.below(12) {
    case 0: return .updateLocal(own)
    case 1: return .restartICE(ConnectionID(1 + UInt32(damage.below(3))))
    case 2: return damage.below(3) == 0 ? .networkChanged : .renewToken("t")
    default: break
    }
    actions.append(action)
    switch damage.below(7) {
    case 0: return .unpublish(action, [own.id])
    case 1, 2: return .subscribe(action, [media])
    case 3: return .unsubscribe(action, [media])
    case 4: return .setProfile(action, media, .low)
    case 5: return .setPaused(action, media, true)
    default:
      return damage.below(2) == 0
        ? .publish(PublicationRequest(action: action, media: [own]))
        : .sendMessage(action, UserMessage(text: "hello"))
    }
  }
}

extension String {
  /// Returns the text with the first member called `name` set to another value.
  fileprivate func replacingValue(of name: String, with value: String) -> String {
    guard let place = firstRange(of: "\"\(name)\":") else { return self }
    let rest = self[place.upperBound...]
    let end = rest.firstIndex { $0 == "," || $0 == "}" } ?? rest.endIndex
    return self[..<place.upperBound] + value + rest[end...]
  }
}
