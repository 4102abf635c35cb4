package import Foundation
import JSEP
package import Live
import Media
import Peer
package import Room
import SDP
import Signaling
import Synchronization
package import Wire

/// A Sora server's channel on a free local port, modelled on Sora's documentation.
///
/// It requests video in three layers, with the middle layer disabled. It can receive audio, and can
/// send the voice of a connection `other`.
package final class SoraChannel: Sendable {
  package let clients: Session
  package let path: String
  private let server: HTTPServer
  private let hosting: Session
  private let folder: String
  /// The server's peer connection.
  package let peer: PeerConnection
  private let heard: Heard

  private final class Heard: Sendable {
    let connect = Mutex<JSONValue?>(nil)
    let socket = Mutex<WebSocket?>(nil)
  }

  /// - Parameter hertz: the tone of the voice; 0 for silence.
  package init(
    sendsVoice: Bool = false, receivesVoice: Bool = false, hertz: Int = 440
  ) async throws {
    folder = FileManager.default.temporaryDirectory.path + "/sora-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    path = folder + "/channel.take"
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    hosting = try Session(options)
    options.takePath = path
    clients = try Session(options)
    let peer = hosting.makePeer(label: "sora")
    let heard = Heard()
    let voice = sendsVoice ? MediaSource.tone(hertz: hertz, pauseSeconds: 0) : nil
    let route = WebSocketRoute(path: "/signaling") { socket, _ in
      heard.socket.withLock { $0 = socket }
      while case .text(let text)? = await socket.receive() {
        guard let message = try? JSONValue(parsing: text) else { continue }
        if message["type"]?.text == "connect" { heard.connect.withLock { $0 = message } }
        if let answer = try? await SoraChannel.answer(
          message, by: peer, voice: voice, receivesVoice: receivesVoice)
        {
          socket.post(.text(answer.json))
        }
      }
    }
    (self.peer, self.heard) = (peer, heard)
    server = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, identity: nil, sockets: [route]
    ) { _ in .refusal(404, "not here") }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Closes the WebSocket like a server that ends a connection.
  package func close(code: UInt16, reason: String) {
    heard.socket.withLock { $0 }?.post(close: WebSocketCloseCode(rawValue: code), reason: reason)
  }

  package var connectMessage: JSONValue? { heard.connect.withLock { $0 } }

  private static func answer(
    _ message: JSONValue, by peer: PeerConnection, voice: MediaSource?, receivesVoice: Bool
  ) async throws(PeerError) -> JSONValue? {
    switch message["type"]?.text {
    case "connect"?:
      try await peer.addTransceiver(.video, direction: .recvonly)
      if receivesVoice { try await peer.addTransceiver(.audio, direction: .recvonly) }
      if let voice {
        try await peer.addTransceiver(
          .audio, direction: .sendonly, source: voice,
          streamIDs: ["other"])
      }
      try await peer.setLocalDescription()
      return offer(try await peer.localDescription?.sdp ?? "")
    case "answer"?:
      try await peer.setRemoteDescription(
        SessionDescription(type: .answer, sdp: message["sdp"]?.text ?? ""))
      return .members(
        ("type", "notify"), ("event_type", "connection.created"), ("connection_id", "own"))
    case "candidate"?:
      try await peer.addICECandidate(
        CandidateInit(candidate: message["candidate"]?.text ?? "", sdpMLineIndex: 0))
      return nil
    default: return nil
    }
  }

  private static func offer(_ sdp: String) -> JSONValue {
    let rids = ["r0", "r1", "r2"]
    let lines =
      rids.map { "a=rid:\($0) recv" } + ["a=simulcast:recv \(rids.joined(separator: ";"))"]
    let encodings = zip(rids, [4, 2, 1] as [JSONValue]).map { rid, scale in
      JSONValue.members(
        ("rid", .text(rid)), ("active", .flag(rid != "r1")), ("scaleResolutionDownBy", scale))
    }
    let mid = sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=mid:") }?.dropFirst(6)
    return .members(
      ("type", "offer"), ("client_id", "client"), ("connection_id", "own"),
      ("sdp", .text(sdp + lines.map { $0 + "\r\n" }.joined())), ("encodings", .list(encodings)),
      ("mid", .members(("video", .text(String(mid ?? ""))))),
      ("config", .members(("iceServers", .list([])))))
  }

  /// The signaling URL.
  package var address: URL { URL(string: url) ?? URL(fileURLWithPath: "/") }

  private var url: String { "ws://127.0.0.1:\(server.port)/signaling" }

  package func configuration(_ role: SoraConfiguration.Role) -> SoraConfiguration {
    SoraConfiguration(
      url: url, channelId: "channel", role: role,
      multistreamEnabled: true)
  }

  /// Ends the channel and its server, and completes the take.
  package func end() async throws {
    await peer.close()
    _ = try await clients.finish()
    _ = try await hosting.finish()
    await server.shutdown()
  }
}
