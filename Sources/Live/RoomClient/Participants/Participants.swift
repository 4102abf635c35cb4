import Room
import Synchronization
import Wire

/// Another participant of a room.
///
/// Who holds on to one keeps what it published, also after it has left.
public final class RemoteParticipant: Sendable {
  private struct State {
    var videos: [Int: RemoteVideo] = [:]
    var audios: [Int: RemoteAudio] = [:]
  }

  /// The identifier in the room.
  public let id: String
  /// The name for people; empty: none.
  public let name: String
  private let state = Mutex(State())

  init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  /// What it publishes as video, by number: a camera and a screen, for example.
  public var videos: [Int: RemoteVideo] { state.withLock { $0.videos } }
  /// What it publishes as audio, by number.
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

/// This side as a participant of a room.
public final class LocalParticipant: Sendable {
  private struct State {
    var id = ""
    var media: [LocalMedia] = []
  }
  private let state = Mutex(State())

  init() {}

  /// The identifier in the room; empty before the room is there.
  public var id: String { state.withLock { $0.id } }
  /// What is published.
  public var media: [LocalMedia] { state.withLock { $0.media } }

  /// The published videos by their numbers in the room.
  public var videos: [Int: LocalVideo] {
    let videos = media.compactMap(\.video).filter { $0.part.isPublished }
    return Dictionary(videos.map { ($0.id, $0) }) { first, _ in first }
  }
  /// The published audio by its numbers in the room.
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
