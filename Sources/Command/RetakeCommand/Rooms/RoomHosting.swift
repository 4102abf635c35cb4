import ArgumentParser
import Live
import RoomClient
import Signaling
import Synchronization

/// Whether a recorder has rooms, and who may enter them.
struct RoomHostingOptions: ParsableArguments {
  @Flag(
    help: """
      Have rooms at /rooms, which retake record room enters: what each participant sends is \
      decoded and sent on to the others.
      """)
  var rooms = false

  @Option(
    name: .customLong("room-secret"),
    help: """
      With --rooms: let only those in who got a token at /rooms/token for this KEY:SECRET. \
      \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.pair("KEY:SECRET", separator: ":")))
  var roomSecret: String?

  @Option(
    help: """
      With --rooms: how many participants all rooms may have at once; further ones are refused \
      until one has left. Default: \(Self.usualGuests).
      """,
    transform: Taking.whole(1...100_000))
  var guests = Self.usualGuests

  private static let usualGuests = 50

  func validate() throws {
    guard rooms || roomSecret == nil else {
      throw ValidationError("--room-secret goes with --rooms: give both, or leave it out.")
    }
  }
}

/// The rooms of a recorder, from the moment when its session is there.
final class RoomHosting: Sendable {
  private let host = Mutex<RoomHost?>(nil)

  static let path = "/rooms"

  /// Where the rooms are entered.
  var route: WebSocketRoute {
    var limits = WebSocketLimits()
    // A description of all that one may publish, and more.
    limits.messageBytes = 256 << 10
    limits.unreadBytes = 256 << 10
    limits.unsentBytes = 1 << 20
    return WebSocketRoute(
      path: RoomHosting.path, subprotocols: RoomHost.subprotocols, limits: limits
    ) { [self] socket, _ in
      await host.withLock { $0 }?.serve(socket)
    }
  }

  /// Opens the rooms.
  func open(_ session: Session, _ options: RecordOptions, _ wanted: RoomHostingOptions) {
    var hosting = RoomHost.Options()
    hosting.connection = options.peerConfiguration
    hosting.secret = wanted.roomSecret
    hosting.guestsMaximum = wanted.guests
    let made = RoomHost(session: session, options: hosting)
    host.withLock { $0 = made }
  }

  /// Answers what is asked about the rooms over HTTP; nil for anything else.
  func respond(to request: HTTPRequest) async -> HTTPResponse? {
    guard request.path == RoomHosting.path + "/token", request.method == "POST" else { return nil }
    return await host.withLock { $0 }?.token(request.body)
  }

  /// Ends the rooms, and gives how many took part.
  func close() async -> Int {
    guard let host = host.withLock({ $0 }) else { return 0 }
    await host.close()
    return await Int(host.guestCount)
  }
}
