import Dispatch
import Media
public import MediaFiles
import Peer
import Synchronization
public import Wire

/// Writes what a transceiver receives into a file, off the loop's thread.
///
/// Video becomes a YUV4MPEG2 file of a constant rate and the first frame's size, audio a WAV file;
/// both start with the first frame. A slow disk costs frames, never memory.
public final class FileSink: Sendable {
  private struct State {
    var waiting = 0
    var dropped = 0
    var subscription: MediaSubscription?
  }

  /// The most frames that wait for the disk.
  private static let waitingMaximum = 256

  private let queue = DispatchQueue(label: "retake.sink")
  private let writer: Mutex<any FrameWriting>
  private let state = Mutex(State())

  /// Creates a file for audio or video and writes what a connection receives from now on.
  /// - Parameters:
  ///   - transceiver: whose media; nil for all of the kind.
  ///   - framesPerSecond: the rate of a video file.
  public init(
    path: String, kind: MediaKind, from connection: PeerConnection, transceiver: UInt32? = nil,
    framesPerSecond: Int = 30
  ) throws(MediaFileError) {
    let file = try MediaFile(path, for: .writing)
    switch kind {
    case .audio: writer = Mutex(AudioWriter(file))
    case .video: writer = Mutex(VideoWriter(file, framesPerSecond: framesPerSecond))
    }
    let subscription = connection.onMedia { [weak self] media in
      if let transceiver, media.transceiver != transceiver { return }
      self?.write(media)
    }
    state.withLock { $0.subscription = subscription }
  }

  /// Queues media for the file; dropped and counted if the disk is too slow.
  func write(_ media: ReceivedMedia) {
    let isTaken = state.withLock { state in
      guard state.waiting < FileSink.waitingMaximum else {
        state.dropped += 1
        return false
      }
      state.waiting += 1
      return true
    }
    guard isTaken else { return }
    queue.async { [self] in
      writer.withLock { $0.write(media.content, at: media.at) }
      state.withLock { $0.waiting -= 1 }
    }
  }

  /// Stops writing and completes the file.
  /// - Returns: the number of frames written, and of received ones dropped.
  public func finish() async throws(MediaFileError) -> (written: Int, dropped: Int) {
    let dropped = state.withLock { state in
      state.subscription = nil
      return state.dropped
    }
    let written = await withCheckedContinuation { continuation in
      queue.async { [self] in
        continuation.resume(returning: writer.withLock { $0.finish() })
      }
    }
    return (try written.get(), dropped)
  }
}
