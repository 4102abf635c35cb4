import Live
import Room
import Synchronization

/// The tracks of local media, by number, for a room's connections.
final class LocalSources: Sendable {
  /// The identifier of the one stream of all local media.
  let streamID: String
  private let tracks = Mutex<[LocalMediaID: any MediaStreamTrack]>([:])

  init(streamID: String) { self.streamID = streamID }

  func track(_ id: LocalMediaID) -> (any MediaStreamTrack)? { tracks.withLock { $0[id] } }

  func set(_ track: (any MediaStreamTrack)?, _ id: LocalMediaID) {
    tracks.withLock { $0[id] = track }
  }
}
