import Room
import Synchronization
import Wire

/// Another participant of a room.
///
/// The object keeps what it published after it has left.
public final class RemoteParticipant: Sendable {
  private struct State {
    var videos: [Int: RemoteVideo] = [:]
    var audios: [Int: RemoteAudio] = [:]
  }

  /// The identifier in the room.
  public let id: String
  /// The display name; empty for none.
  public let name: String
  private let state = Mutex(State())

  init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  /// Its published videos by number: a camera and a screen, for example.
  public var videos: [Int: RemoteVideo] { state.withLock { $0.videos } }
  /// Its published audio by number.
  public var audios: [Int: RemoteAudio] { state.withLock { $0.audios } }
  /// Whether one of its videos is subscribed to.
  public var isVideoSubscribed: Bool { videos.values.contains { $0.isSubscribed } }

  func add(_ video: RemoteVideo) { state.withLock { $0.videos[video.id] = video } }
  func add(_ audio: RemoteAudio) { state.withLock { $0.audios[audio.id] = audio } }
  func remove(_ id: Int) {
    state.withLock { state in
      state.videos[id] = nil
      state.audios[id] = nil
    }
  }
}

/// This client as a participant of a room.
public final class LocalParticipant: Sendable {
  private struct State {
    var id = ""
    var media: [LocalMedia] = []
  }
  private let state = Mutex(State())

  init() {}

  /// The identifier in the room; empty before joining.
  public var id: String { state.withLock { $0.id } }
  /// The published media.
  public var media: [LocalMedia] { state.withLock { $0.media } }

  /// The published videos by number in the room.
  public var videos: [Int: LocalVideo] {
    let videos = media.compactMap(\.video).filter { $0.part.isPublished }
    return Dictionary(videos.map { ($0.id, $0) }) { first, _ in first }
  }
  /// The published audio by number in the room.
  public var audios: [Int: LocalAudio] {
    let audios = media.compactMap(\.audio).filter { $0.part.isPublished }
    return Dictionary(audios.map { ($0.id, $0) }) { first, _ in first }
  }

  func setID(_ id: String) { state.withLock { $0.id = id } }
  func add(_ media: LocalMedia) { state.withLock { $0.media.append(media) } }
  func remove(_ media: LocalMedia) {
    state.withLock { state in state.media.removeAll { $0 === media } }
  }
}
