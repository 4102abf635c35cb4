import FoundationEssentials
import Live
import MediaFiles
import Tape
import Wire

/// What a recording command prints at its end: a line for each take, or one JSON object.
struct RecordingReport: Encodable {
  /// A take that was written.
  struct Take: Encodable {
    var path: String
    var steps: Int
    /// Datagrams that were sent and received.
    var packets: Int
    /// The size of the file.
    var bytes: Int
    var peers: [Peer]
  }

  /// Frames that a peer of a take sent and received; absent where nobody counted them.
  struct Peer: Encodable {
    var label: String
    var audioSent: Int?
    var videoSent: Int?
    var audioReceived: Int?
    var videoReceived: Int?

    init(_ connection: PeerConnection) {
      let counters = connection.counters
      label = connection.label
      audioSent = counters.audioSent
      videoSent = counters.videoFramesSent
      audioReceived = counters.audioReceived
      videoReceived = counters.videoFramesReceived
    }

    /// A peer whose received video frames alone were counted.
    init(label: String, videoReceived: Int) {
      self.label = label
      self.videoReceived = videoReceived
    }
  }

  /// A file that could not be sent to its end.
  struct Failure: Encodable {
    var file: String
    var reason: String
    var cause: String
    /// From 1; absent for audio.
    var videoFrame: Int?
    var byteOffset: Int?

    init(_ error: MediaFileError) {
      file = error.path
      reason = error.reason
      cause = error.cause.rawValue
      videoFrame = error.videoFrame
      byteOffset = error.byteOffset
    }
  }

  /// The takes, of many the last ones.
  private(set) var takes: [Take] = []
  /// How many takes came before those that are listed.
  private(set) var earlierTakes = 0
  var sendFailures: [Failure] = []

  /// What went each way, in words, in the order of the takes.
  private var media: [String] = []

  /// How many takes are listed: a recorder that runs for weeks remembers no more of them.
  static let takesMaximum = 1_000

  /// The lines for people.
  var lines: [String] {
    let list = zip(takes, media).map { take, media in
      "\(take.path): \(counted(take.steps, "step")), \(counted(take.packets, "packet")), "
        + "\(byteText(take.bytes)); "
        + media
    }
    guard earlierTakes > 0 else { return list }
    return ["\(counted(earlierTakes, "take")) before these"] + list
  }

  enum CodingKeys: CodingKey {
    case takes, earlierTakes, sendFailures
  }

  /// Adds a take that is complete, with the peers that were recorded.
  ///
  /// - Parameter media: what went each way, in words.
  mutating func add(_ summary: TakeSummary, _ peers: [Peer], media: String) {
    add(
      Take(
        path: summary.path, steps: summary.steps, packets: summary.packets, bytes: summary.bytes,
        peers: peers), media: media)
  }

  /// Adds a take.
  ///
  /// - Parameter media: what went each way, in words.
  mutating func add(_ take: Take, media: String) {
    takes.append(take)
    self.media.append(media)
    // In large steps, because the beginning of a list is taken away by moving all the rest.
    guard takes.count == 2 * RecordingReport.takesMaximum else { return }
    earlierTakes += RecordingReport.takesMaximum
    takes.removeFirst(RecordingReport.takesMaximum)
    self.media.removeFirst(RecordingReport.takesMaximum)
  }

  /// Gives the only take the name that it has when it is complete.
  mutating func rename(_ path: String) {
    for index in takes.indices { takes[index].path = path }
  }

  /// Prints the report with what went wrong with files, and ends the command with the status that
  /// belongs to the first of them, if there was one.
  ///
  /// What went wrong was said when it happened, so that it is not said again to people.
  mutating func conclude(with failures: SendFailures, json: Bool) throws {
    let failed = failures.all
    sendFailures = failed.map { Failure($0) }
    try show(json: json)
    if let first = failed.first { throw CommandFailure(first.status, "") }
  }

  /// Prints the report.
  func show(json: Bool) throws(CommandFailure) {
    guard json else {
      return try Output.line(
        lines.isEmpty ? "nobody called; nothing was recorded" : lines.joined(separator: "\n"))
    }
    try Output.json(CanonicalJSON.text(self), in: .record)
  }
}
