import Live
import Tape

/// What came of the calls of a recorder, which it says at its end.
struct CallTally {
  /// After how many calls memory is given back where there is always another one.
  private static let callsPerTrim = 100

  private var report = RecordingReport()
  private var endedCount = 0
  /// The peers of the shared take whose calls are over.
  private var peers: [RecordingReport.Peer] = []
  /// What the last of them sent, in words.
  private var lastMedia = "nobody called"
  private var failure: String?

  /// Whether so many calls have ended that memory is to be given back.
  var isTrimDue: Bool { endedCount.isMultiple(of: CallTally.callsPerTrim) }

  /// What the shared take is said to hold.
  var shared: (peers: [RecordingReport.Peer], media: String) {
    (peers, endedCount > 1 ? "\(endedCount) calls" : lastMedia)
  }

  /// What is said when nobody called: how many took part in rooms.
  mutating func note(guests: Int) {
    guard endedCount == 0 else { return }
    lastMedia = "\(guests) \(guests == 1 ? "participant" : "participants") in rooms"
  }

  /// Handles what a call in the shared take sent.
  mutating func note(_ peer: RecordingReport.Peer, media: String) {
    // A recorder that runs for weeks lists the first of its peers, and the take has all of them.
    if peers.count < RecordingReport.takesMaximum { peers.append(peer) }
    lastMedia = media
  }

  mutating func countEnd() { endedCount += 1 }

  /// Handles a take that is complete.
  mutating func add(_ summary: TakeSummary, _ peers: [RecordingReport.Peer], media: String) {
    report.add(summary, peers, media: media)
  }

  /// Handles the failure to complete one; the last is told.
  mutating func fail(_ error: any Error) {
    failure = "\(error)"
  }

  /// What is said at the end.
  func conclude() throws(TapeError) -> RecordingReport {
    if let failure { throw TapeError(path: "", place: "", reason: failure, kind: .failed) }
    return report
  }
}
