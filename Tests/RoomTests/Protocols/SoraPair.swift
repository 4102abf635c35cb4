import SDP
import Wire

@testable import Room

/// A client and its server, which exchange messages over the WebSocket.
struct SoraPair {
  var bench: SignalingBench<SoraMachine>
  var server = SoraServer()
  var requests: [ConnectionRequest] = []
  var events: [SignalingEvent] = []

  init(_ options: [String: String] = [:]) {
    bench = SignalingBench(
      SignalingConfiguration(
        protocolName: "sora", urls: ["wss://sora.example/signaling"], options: options))
  }

  /// Delivers messages in both directions until there are none.
  mutating func talk() {
    var outputs = bench.drain()
    while !outputs.isEmpty {
      for output in outputs {
        switch output {
        case .transport(_, .send(.text(let text))):
          guard let value = try? JSONValue(parsing: text) else { continue }
          deliver(server.receive(value))
        case .connection(_, let request): requests.append(request)
        case .event(let event): events.append(event)
        default: break
        }
      }
      outputs = bench.drain()
    }
  }

  /// Delivers server messages over the WebSocket.
  mutating func deliver(_ messages: [JSONValue]) {
    for message in messages { bench.receive(message.json) }
  }

  mutating func drainRequests() -> [ConnectionRequest] {
    defer { requests = [] }
    return requests
  }

  mutating func drainEvents() -> [SignalingEvent] {
    defer { events = [] }
    return events
  }

  /// Removes the events and returns them without the server's raw notifications.
  mutating func drainOtherEvents() -> [SignalingEvent] {
    drainEvents().filter { if case .notification = $0 { false } else { true } }
  }

  // MARK: Pairs in different stages

  static let answer = SessionDescription(type: .answer, sdp: "answer")
  static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio)

  /// Returns a client that sends audio, in a channel with another participant.
  static func joined(_ options: [String: String] = [:]) -> SoraPair {
    var pair = SoraPair(options)
    _ = pair.server.arrive("OTHER")
    pair.bench.want(.join(RoomJoin(room: "sora", token: "t")))
    pair.bench.open()
    pair.talk()
    pair.bench.want(.publish(PublicationRequest(action: ActionID(1), media: [audio])))
    pair.talk()
    pair.bench.report(
      1, .description(answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.talk()
    return pair
  }

  static let channels: JSONValue = .list([
    .members(("label", "signaling"), ("compress", true)),
    .members(("label", "notify"), ("compress", true)),
    .members(("label", "stats"), ("compress", false)),
    .members(
      ("label", "#chat"), ("compress", true),
      ("header", .list([.members(("type", "sender_connection_id"))]))),
  ])

  static func switched() -> SoraPair {
    var pair = SoraPair(["data_channel_signaling": "true", "data_channels": "[]"])
    pair.server.offerMembers = [.init("data_channels", channels)]
    pair.bench.want(.join(RoomJoin(room: "sora", role: .down)))
    pair.bench.open()
    pair.talk()
    pair.bench.report(1, .description(answer, media: []))
    pair.deliver([.members(("type", "switched"), ("ignore_disconnect_websocket", true))])
    pair.talk()
    _ = (pair.drainRequests(), pair.drainEvents())
    return pair
  }

  static func compressed(_ value: JSONValue) -> SignalingFrame {
    .binary(Zlib.compressed(Array(value.json.utf8)))
  }
}
