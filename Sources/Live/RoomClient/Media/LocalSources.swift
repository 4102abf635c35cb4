import Live
import Room
import Synchronization

/// The tracks of local media, by number: what connections of a room put on themselves.
final class LocalSources: Sendable {
  /// The name of the one stream that all local media belongs to.
  let streamID: String
  private let tracks = Mutex<[LocalMediaID: any MediaStreamTrack]>([:])

  init(streamID: String) { self.streamID = streamID }

  func track(_ id: LocalMediaID) -> (any MediaStreamTrack)? { tracks.withLock { $0[id] } }

  func set(_ track: (any MediaStreamTrack)?, _ id: LocalMediaID) {
    tracks.withLock { $0[id] = track }
  }
}
