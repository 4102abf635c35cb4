package import Live
import RoomClient
import Signaling
import Wire

/// A server with Retake's own rooms on a free local port.
package final class HostedRooms: Sendable {
  private let host: RoomHost
  private let server: HTTPServer
  private let session: Session

  /// - Parameter secret: the credentials that clients need to get tokens, as `key:secret`; nil if
  ///   there are none.
  package init(secret: String? = nil) async throws {
    session = try Session(Self.options)
    var hosted = RoomHost.Options()
    hosted.secret = secret
    // All socket tests run in parallel; on a busy machine a join can take far longer than 10 s.
    hosted.joinSeconds = 120
    let host = RoomHost(session: session, options: hosted)
    self.host = host
    let route = WebSocketRoute(path: "/rooms", subprotocols: RoomHost.subprotocols) { socket, _ in
      await host.serve(socket)
    }
    server = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, identity: nil, sockets: [route]
    ) { request in
      request.path == "/rooms/token" ? await host.token(request.body) : .refusal(404, "not here")
    }
  }

  /// Options for sessions on loopback only.
  package static var options: Session.Options {
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    options.statsInterval = nil
    return options
  }

  /// The URL for entering rooms.
  package var url: String { "ws://127.0.0.1:\(server.port)/rooms" }

  /// The URL for getting tokens.
  package var tokens: String { "http://127.0.0.1:\(server.port)/rooms/token" }

  package func end() async throws {
    await host.close()
    try await session.finish()
    await server.shutdown()
  }
}
