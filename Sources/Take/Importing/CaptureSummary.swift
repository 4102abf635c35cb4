import Observer
import Peer
import Tape
import Wire

/// A summary of an imported capture.
public struct CaptureSummary: Encodable, Hashable, Sendable {
  /// The path of the take.
  public package(set) var take: String
  /// The number of calls in the take.
  public internal(set) var calls = 0
  /// The number of RTP streams.
  public internal(set) var streams = 0
  /// The number of steps in the take.
  public internal(set) var steps = 0
  /// The take's size in bytes.
  public internal(set) var bytes = 0
  /// The number of datagrams, whether they belong to calls or not.
  public internal(set) var datagrams = 0
  /// The number of packets that belong to no call; the take does not contain them.
  public internal(set) var ofNoCall: UInt64 = 0
  /// The number of frames that the capturing system lost.
  public internal(set) var dropped: UInt64 = 0
  /// The number of RTP and RTCP packets in calls.
  public internal(set) var packets = 0
  /// The number of unencrypted RTP and RTCP packets in calls.
  public internal(set) var packetsInClear = 0
  /// The number of complete video frames and audio packets that the ends received.
  public internal(set) var mediaFrames = 0
  /// The number of link-layer frames in the capture.
  public internal(set) var frames: UInt64 = 0
  /// The number of link-layer frames that are duplicates.
  public internal(set) var duplicates: UInt64 = 0
  /// Parts of the calls that could not be observed, each kind once.
  public internal(set) var notSeen: [String] = []
  /// Inputs that turned out to be useless, one sentence each.
  public package(set) var notes: [String] = []
  /// Hints on how to observe more, each once.
  public internal(set) var hints: [String] = []

  init(take: String) { self.take = take }

  mutating func countPacket(isClear: Bool) {
    packets += 1
    if isClear { packetsInClear += 1 }
  }

  /// Counts an output that is not a packet.
  mutating func count(_ output: ObserverOutput) {
    switch output.content {
    case .followed(.event(.frame(let frame)), _):
      if !frame.bytes.isEmpty { mediaFrames += 1 }
    case .output(.call): calls += 1
    case .output(.stream(let stream)): streams = max(streams, stream.number)
    case .output(.coverage(let row)):
      let what = row.kind.rawValue
      guard row.kind != .deduced else { break }
      if !notSeen.contains(what) {
        notSeen.append(what)
        if row.kind == .unusedKey { notes.append(CaptureSummary.unusedKeys(row.count)) }
      }
      if let hint = CaptureSummary.hint(row.kind, row.detail), !hints.contains(hint) {
        hints.append(hint)
      }
    default: break
    }
  }

  static func unusedKeys(_ count: UInt64) -> String {
    "\(count == 1 ? "the SRTP key opens" : "\(count) SRTP keys open") no packet of the capture: "
      + "--srtp-key needs the sender's master key followed by its salt"
  }

  package static func noSecrets(_ name: String) -> String {
    "\(name) has no key log line (a label, the client random, a secret): start the browser with "
      + "SSLKEYLOGFILE=keys.log before the call, and give that file with --keys"
  }

  static func noFittingSecret(_ logs: [String]) -> String {
    noFittingSecret(
      UInt64(logs.reduce(0) { $0 + $1.split(whereSeparator: \.isNewline).count }))
  }

  static func noFittingSecret(_ count: UInt64) -> String {
    "the key log belongs to other calls: "
      + (count == 1 ? "its one secret matches no" : "none of its \(count) secrets matches a")
      + " DTLS handshake in the capture; both must be from the same call, and the capture must "
      + "contain its beginning"
  }

  /// Returns a hint on how to overcome an obstacle; nil if there is none.
  private static func hint(_ kind: CoverageKind, _ detail: String) -> String? {
    switch kind {
    case .noKeys where detail == Observer.clearHint:
      "nothing says whether the media is encrypted: " + Observer.clearHint
    case .unknownClock: detail
    default: nil
    }
  }

  /// The summary as lines to print.
  public var words: String {
    var lines = [
      "\(take): \(counted(calls, "call")), \(counted(streams, "stream")), "
        + "\(counted(packets, "RTP and RTCP packet")) (\(packetsInClear) in the clear) of "
        + "\(counted(datagrams, "datagram")), \(counted(mediaFrames, "frame")) of audio and "
        + "video, \(counted(steps, "step"))"
    ]
    if ofNoCall > 0 { lines[0] += ", \(counted(ofNoCall, "packet")) of no call left out" }
    if dropped > 0 { lines[0] += ", \(counted(dropped, "frame")) lost while capturing" }
    if !notSeen.isEmpty {
      let info = ShellText.command("retake", "info", take)
      lines.append(
        "not seen: \(notSeen.joined(separator: ", ")); \(info) explains it and names the option "
          + "that helps")
    }
    lines += notes
    lines += hints
    return lines.joined(separator: "\n")
  }
}

/// A summary of a capture with several calls.
public struct CallsReport: Encodable, Hashable, Sendable {
  /// The summary of each call's take.
  public internal(set) var takes: [CaptureSummary] = []
  /// The number of packets that belong to no call; no take contains them.
  public package(set) var ofNoCall: UInt64 = 0
  /// Inputs that were useless for every call, one sentence each.
  public internal(set) var notes: [String] = []

  /// The report as lines to print.
  public var words: String {
    let lines = takes.map(\.words)
    let rest = ofNoCall > 0 ? ["\(counted(ofNoCall, "packet")) of no call left out"] : []
    return (lines + rest + notes).joined(separator: "\n")
  }
}
