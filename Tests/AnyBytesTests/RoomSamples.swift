import Peer
import Room
import SDP
import Wire

/// Messages of room servers, as starting points for mutations.
enum RoomSamples {
  private static let sdp =
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
    + "c=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=msid:ben track\r\na=ice-ufrag:abcd\r\n"
    + "a=ice-pwd:0123456789abcdefghijkl\r\n"

  private static let member = RoomMember(
    id: "ben", displayName: "Ben",
    media: [
      RoomMedia(number: 1, kind: .audio),
      RoomMedia(number: 2, kind: .video, profiles: [.low, .high]),
    ])

  private static let joined = RoomNotice.joined(
    participant: "ann", session: "s", isResumed: false, members: [member],
    ICEServers([ICEServerConfiguration(urls: ["stun:s.example"])]))

  /// Messages of Retake's own room server; the join reply appears several times, because everything
  /// else waits for it.
  static let room: [String] =
    ([
      joined, joined, joined,
      .joined(
        participant: "ann", session: "s", isResumed: true, members: [], ICEServers()),
      .answer(sdp: sdp), .offer(sdp: sdp, media: [RoomPlace(number: 1, mid: "0")]),
      .candidate(.down, CandidateInit(candidate: "candidate:1")), .candidate(.up, nil),
      .result(request: 1, nil), .result(request: 1, RoomFault(.noSuchMedia, "nobody")),
      .local([RoomLocalNumber(local: 1, number: 9)]),
      .entered(RoomMember(id: "cid", media: member.media)), .left(participant: "ben", .left),
      .published(participant: "ben", member.media), .unpublished(participant: "ben", [1]),
      .changed(participant: "ben", member.media[0]), .talking(participant: "ben", true, level: -9),
      .muted(local: 1, true), .layers(mid: "0", [SendLayer(rid: "l")]),
      .message(UserMessage(sender: "ben", text: "hi")),
      .error(RoomFault(.serviceError, "hm"), isCritical: false),
      .ended(RoomEnding(.kicked)), .moved(url: "wss://three.example/"),
    ] as [RoomNotice]).map(\.text)

  /// Requests that participants send to a room server.
  static let requests: [String] =
    ([
      .join(RoomJoin(room: "r", metadata: "{}"), resumes: "s"),
      .offer(request: 1, sdp: sdp, media: [RoomLocalMedia(mid: "0", local: 1, kind: .audio)]),
      .answer(sdp: sdp), .candidate(.up, CandidateInit(candidate: "candidate:1", sdpMid: "0")),
      .stop(request: 2), .update(member.media[1]), .subscribe(request: 3, [1, 2]),
      .profile(request: 4, media: 2, .low), .pause(request: 5, media: 2, isPaused: true),
      .message(request: 6, UserMessage(targets: ["ben"], text: "hi")), .renew(token: "t"), .leave,
      .message(
        request: 7, UserMessage(targets: Array(repeating: "ben", count: 256), text: "hi")),
      .message(
        request: 8,
        UserMessage(
          targets: ["\u{1b}]0;t\u{7}", String(repeating: "i", count: 250)],
          text: "\u{9b}31m\u{202e}\u{2028}")),
      .join(
        RoomJoin(
          room: "r", displayName: "\u{1b}[2J", participant: String(repeating: "i", count: 256)),
        resumes: nil),
    ] as [RoomRequest]).map(\.text)

  private static let offer = JSONValue.members(
    ("type", "offer"), ("sdp", .text(sdp)), ("connection_id", "own"), ("session_id", "s"),
    ("config", .members(("iceServers", .list([.members(("urls", .list(["turn:t.example"])))])))),
    ("mid", .members(("audio", "0"), ("video", "1"))),
    ("encodings", .list([.members(("rid", "r0"), ("maxBitrate", 1000))])),
    (
      "data_channels",
      .list([
        .members(("label", "signaling"), ("compress", true)),
        .members(("label", "stats")), .members(("label", "notify")),
        .members(("label", "#chat"), ("compress", true)),
      ])
    ))

  /// Messages of a Sora server.
  static let sora: [String] =
    ([
      offer, offer, offer, .members(("type", "re-offer"), ("sdp", .text(sdp))),
      .members(("type", "update"), ("sdp", .text(sdp))),
      .members(("type", "ping"), ("stats", true)),
      .members(
        ("type", "notify"), ("event_type", "connection.created"), ("connection_id", "ben"),
        ("data", .list([.members(("connection_id", "cid"))]))),
      .members(
        ("type", "notify"), ("event_type", "connection.destroyed"), ("connection_id", "ben")),
      .members(
        ("type", "notify"), ("event_type", "spotlight.focused"), ("connection_id", "ben")),
      .members(("type", "push"), ("data", .members(("a", 1)))),
      .members(("type", "switched"), ("ignore_disconnect_websocket", true)),
      .members(("type", "redirect"), ("location", "wss://three.example/")),
      .members(("type", "close"), ("code", 1000), ("reason", "bye")),
      .members(("type", "req-stats")),
    ] as [JSONValue]).map(\.json)

  /// Bodies of HTTP responses.
  static let bodies = [
    sdp, "", #"{"detail":"no"}"#,
    "a=ice-ufrag:wxyz\r\na=ice-pwd:0123456789abcdefghijkl\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n",
  ]
}
