import Live
import Media
import Wire

final class FileFeeds: Sendable {
  func start(_ path: String, kind: MediaKind, on transceiver: UInt32, of connection: PeerConnection)
    throws
  {
    throw CommandFailure(.usage, "\(path): files")
  }
}
