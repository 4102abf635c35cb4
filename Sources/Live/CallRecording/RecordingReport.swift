package import Live
package import MediaFiles
import Synchronization
package import Wire

/// A recording's result: a line for each take, or one JSON object.
public struct RecordingReport: Encodable, Sendable {
  /// A take that was written.
  public struct Take: Encodable, Sendable {
    /// The file.
    public package(set) var path: String
    /// The number of recorded steps.
    public var steps: Int
    /// Datagrams that were sent and received.
    public var packets: Int
    /// The size of the file.
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

  /// Frames that a peer of a take sent and received; absent if they were not counted.
  public struct Peer: Encodable, Sendable {
    /// Its name in the take.
    public var label: String
    /// Packets of audio that it sent.
    public var audioSent: Int?
    /// Video frames that it sent.
    public var videoSent: Int?
    /// Packets of audio that it received.
    public var audioReceived: Int?
    /// Video frames that it received.
    public var videoReceived: Int?

    package init(_ connection: PeerConnection) {
      let counters = connection.counters
      label = connection.label
      audioSent = counters.audioSent
      videoSent = counters.videoFramesSent
      audioReceived = counters.audioReceived
      videoReceived = counters.videoFramesReceived
    }

    /// A peer whose received video frames alone were counted.
    package init(label: String, videoReceived: Int) {
      self.label = label
      self.videoReceived = videoReceived
    }
  }

  /// A file that could not be sent to its end.
  package struct Failure: Encodable, Sendable {
    var file: String
    var reason: String
    var cause: String
    /// From 1; absent for audio.
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

  /// The takes; if there are many, the last ones.
  public private(set) var takes: [Take] = []
  /// The number of takes before the listed ones.
  public private(set) var earlierTakes = 0
  package var sendFailures: [Failure] = []

  /// The frames of each direction in words, in the order of the takes.
  private var media: [String] = []

  /// How many takes are listed: a recorder that runs for weeks remembers no more of them.
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

  /// Adds a complete take and its recorded peers.
  ///
  /// - Parameter media: the frames of each direction, in words.
  package mutating func add(_ summary: TakeSummary, _ peers: [Peer], media: String) {
    add(
      Take(
        path: summary.path, steps: summary.steps, packets: summary.packets, bytes: summary.bytes,
        peers: peers), media: media)
  }

  /// Adds a take.
  ///
  /// - Parameter media: the frames of each direction, in words.
  package mutating func add(_ take: Take, media: String) {
    takes.append(take)
    self.media.append(media)
    // In large steps, because removing the first elements of an array moves all others.
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

/// Failures of files while they are sent: reported when they happen, and repeated at the end.
///
/// A file that fails ends neither the call nor the recording. The remaining media continue, and the
/// peer sees the last video frame until the end.
package final class SendFailures: Sendable {
  private let say: @Sendable (String) -> Void
  private let errors = Mutex<[MediaFileError]>([])

  /// - Parameter say: receives each sentence when it happens.
  package init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

  /// All failures so far.
  package var all: [MediaFileError] { errors.withLock { $0 } }

  /// Reports that a file of this kind of media is no longer sent.
  package func report(_ error: MediaFileError, _ kind: MediaKind) {
    errors.withLock { $0.append(error) }
    let media = kind == .audio ? "audio" : "video"
    say("--send \(error.description); the recording goes on without the \(media) of the file")
  }

  /// Reports something that does not affect the recording.
  package func warn(_ sentence: String) { say("warning: \(sentence)") }
}
