package import Live
package import MediaFiles
import Synchronization
package import Wire

/// What was recorded: a line for each take, or one JSON object.
public struct RecordingReport: Encodable, Sendable {
  /// A take that was written.
  public struct Take: Encodable, Sendable {
    /// The file.
    public package(set) var path: String
    /// Its steps.
    public var steps: Int
    /// Datagrams that were sent and received.
    public var packets: Int
    /// The size of the file.
    public var bytes: Int
    /// The peers in it.
    public var peers: [Peer]

    package init(path: String, steps: Int, packets: Int, bytes: Int, peers: [Peer]) {
      self.path = path
      self.steps = steps
      self.packets = packets
      self.bytes = bytes
      self.peers = peers
    }
  }

  /// Frames that a peer of a take sent and received; absent where nobody counted them.
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

  /// The takes, of many the last ones.
  public private(set) var takes: [Take] = []
  /// How many takes came before those that are listed.
  public private(set) var earlierTakes = 0
  package var sendFailures: [Failure] = []

  /// What went each way, in words, in the order of the takes.
  private var media: [String] = []

  /// How many takes are listed: a recorder that runs for weeks remembers no more of them.
  package static let takesMaximum = 1_000

  /// The lines for people.
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

  /// Adds a take that is complete, with the peers that were recorded.
  ///
  /// - Parameter media: what went each way, in words.
  package mutating func add(_ summary: TakeSummary, _ peers: [Peer], media: String) {
    add(
      Take(
        path: summary.path, steps: summary.steps, packets: summary.packets, bytes: summary.bytes,
        peers: peers), media: media)
  }

  /// Adds a take.
  ///
  /// - Parameter media: what went each way, in words.
  package mutating func add(_ take: Take, media: String) {
    takes.append(take)
    self.media.append(media)
    // In large steps, because the beginning of a list is taken away by moving all the rest.
    guard takes.count == 2 * RecordingReport.takesMaximum else { return }
    earlierTakes += RecordingReport.takesMaximum
    takes.removeFirst(RecordingReport.takesMaximum)
    self.media.removeFirst(RecordingReport.takesMaximum)
  }

  /// Gives the only take the name that it has when it is complete.
  package mutating func rename(_ path: String) {
    for index in takes.indices { takes[index].path = path }
  }
}

/// What went wrong with files while they were sent: told when it happens, and kept for the end.
///
/// A file that goes bad ends neither the call nor the recording. The peer goes on with what is
/// left, and sees the last video frame until the end.
package final class SendFailures: Sendable {
  private let say: @Sendable (String) -> Void
  private let errors = Mutex<[MediaFileError]>([])

  /// - Parameter say: gets each sentence when it happens.
  package init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

  /// What went wrong so far.
  package var all: [MediaFileError] { errors.withLock { $0 } }

  /// Says in one sentence that a file that carries a kind of media is sent no further.
  package func report(_ error: MediaFileError, _ kind: MediaKind) {
    errors.withLock { $0.append(error) }
    let media = kind == .audio ? "audio" : "video"
    say("--send \(error.description); the recording goes on without the \(media) of the file")
  }

  /// Says something that changes nothing in one sentence.
  package func warn(_ sentence: String) { say("warning: \(sentence)") }
}
