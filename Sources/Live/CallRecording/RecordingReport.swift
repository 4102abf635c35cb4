package import Live
package import MediaFiles
import Synchronization
package import Wire

/// A recording's result: a line for each take, or one JSON object.
public struct RecordingReport: Encodable, Sendable {
  /// A completed take with its size and peers.
  public struct Take: Encodable, Sendable {
    /// The file's path.
    public package(set) var path: String
    /// The number of recorded steps.
    public var steps: Int
    /// The number of datagrams sent and received.
    public var packets: Int
    /// The file's size in bytes.
    public var bytes: Int
    /// The recorded peers.
    public var peers: [Peer]

    package init(path: String, steps: Int, packets: Int, bytes: Int, peers: [Peer]) {
      self.path = path
      self.steps = steps
      self.packets = packets
      self.bytes = bytes
      self.peers = peers
    }
  }

  /// The numbers of a peer's sent and received audio blocks and video frames; nil for numbers that
  /// were not counted.
  public struct Peer: Encodable, Sendable {
    /// The peer's name in the take.
    public var label: String
    /// The number of audio blocks sent.
    public var audioSent: Int?
    /// The number of video frames sent.
    public var videoSent: Int?
    /// The number of audio blocks played, concealed ones included.
    public var audioReceived: Int?
    /// The number of video frames received.
    public var videoReceived: Int?

    package init(_ connection: PeerConnection) {
      let counters = connection.counters
      label = connection.label
      audioSent = counters.audioSent
      videoSent = counters.videoFramesSent
      audioReceived = counters.audioReceived
      videoReceived = counters.videoFramesReceived
    }

    /// Creates a peer with nothing but a count of received video frames.
    package init(label: String, videoReceived: Int) {
      self.label = label
      self.videoReceived = videoReceived
    }
  }

  /// A file that could not be sent completely.
  package struct Failure: Encodable, Sendable {
    var file: String
    var reason: String
    var cause: String
    /// The number of the frame that failed, counted from 1; nil for audio.
    var videoFrame: Int?
    var byteOffset: Int?

    package init(_ error: MediaFileError) {
      file = error.path
      reason = error.reason
      cause = error.cause.rawValue
      videoFrame = error.videoFrame
      byteOffset = error.byteOffset
    }
  }

  /// The written takes; if there are many, only the latest ones.
  public private(set) var takes: [Take] = []
  /// The number of older takes that are no longer listed in `takes`.
  public private(set) var earlierTakes = 0
  package var sendFailures: [Failure] = []
  /// Whether a session retained its last seconds instead of recording a take.
  package private(set) var isOfRing = false

  /// Descriptions of sent and received media, one per take.
  private var media: [String] = []

  /// The number of takes to keep in the list: once it holds twice as many, the older half is
  /// dropped.
  package static let takesMaximum = 1_000

  /// The report as printed lines.
  public var lines: [String] {
    let list = zip(takes, media).map { take, media in
      "\(take.path): \(counted(take.steps, "step")), \(counted(take.packets, "packet")), "
        + "\(byteText(take.bytes)); "
        + media
    }
    guard earlierTakes > 0 else { return list }
    return ["\(counted(earlierTakes, "take")) before these"] + list
  }

  private enum CodingKeys: CodingKey {
    case takes, earlierTakes, sendFailures
  }

  package init() {}

  /// Adds a completed take and its recorded peers.
  ///
  /// - Parameter media: a description of the sent and received frames.
  package mutating func add(_ summary: TakeSummary, _ peers: [Peer], media: String) {
    if let parts = summary.parts {
      isOfRing = true
      for part in parts { add(part, [], media: part.words) }
      return
    }
    add(
      Take(
        path: summary.path, steps: summary.steps, packets: summary.packets, bytes: summary.bytes,
        peers: peers), media: media)
  }

  /// Adds a take, and drops the oldest ones if the list has become too long.
  ///
  /// - Parameter media: a description of the sent and received frames.
  package mutating func add(_ take: Take, media: String) {
    takes.append(take)
    self.media.append(media)
    // Remove takes rarely and many at once, because removing an array's first elements moves all
    // others.
    guard takes.count == 2 * RecordingReport.takesMaximum else { return }
    earlierTakes += RecordingReport.takesMaximum
    takes.removeFirst(RecordingReport.takesMaximum)
    self.media.removeFirst(RecordingReport.takesMaximum)
  }

  /// Sets the path of the only take once it has its final name.
  package mutating func rename(_ path: String) {
    for index in takes.indices { takes[index].path = path }
  }
}

/// Collects failures to send files: each is reported as it happens, and all are listed at the end.
///
/// A failed file ends neither the call nor the recording. Media of the other kind continues, and
/// the peer sees the last video frame until the end.
package final class SendFailures: Sendable {
  private let say: @Sendable (String) -> Void
  private let errors = Mutex<[MediaFileError]>([])

  /// - Parameter say: receives each sentence as it happens.
  package init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

  package var all: [MediaFileError] { errors.withLock { $0 } }

  /// Reports that a file is no longer sent.
  package func report(_ error: MediaFileError, _ kind: MediaKind) {
    errors.withLock { $0.append(error) }
    let media = kind == .audio ? "audio" : "video"
    say("--send \(error.description); the recording continues without the \(media) of the file")
  }

  /// Prints a warning; the recording continues.
  package func warn(_ sentence: String) { say("warning: \(sentence)") }
}
