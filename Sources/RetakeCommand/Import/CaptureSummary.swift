import Observer
import Peer
import Tape
import Wire

/// What came of a capture.
struct CaptureSummary: Encodable {
  var take: String
  var calls = 0
  var streams = 0
  var steps = 0
  /// The size of the take.
  var bytes = 0
  var datagrams = 0
  /// Packets that were of no call, and are not kept.
  var ofNoCall: UInt64 = 0
  /// Frames that the capturing system lost.
  var dropped: UInt64 = 0
  /// RTP and RTCP packets of calls, and how many of them are in the clear.
  var packets = 0
  var packetsInClear = 0
  /// Video frames and packets of audio that the ends received and that were put together.
  var mediaFrames = 0
  var frames: UInt64 = 0
  var duplicates: UInt64 = 0
  /// What could not be seen, each kind once.
  var notSeen: [String] = []
  /// What may be tried for more to be seen, each hint once.
  var hints: [String] = []

  init(take: String) { self.take = take }

  /// Counts a packet of a call.
  mutating func countPacket(isClear: Bool) {
    packets += 1
    if isClear { packetsInClear += 1 }
  }

  /// Counts what an observer told that is no packet.
  mutating func count(_ output: ObserverOutput) {
    switch output.content {
    case .followed(.event(.frame(let frame)), _):
      if !frame.bytes.isEmpty { mediaFrames += 1 }
    case .told(.call): calls += 1
    case .told(.stream(let stream)): streams = max(streams, stream.number)
    case .told(.coverage(let row)):
      let what = row.kind.rawValue
      guard row.kind != .deduced else { break }
      if !notSeen.contains(what) { notSeen.append(what) }
      if let hint = CaptureSummary.hint(row.kind, row.detail), !hints.contains(hint) {
        hints.append(hint)
      }
    default: break
    }
  }

  /// The option that may help with what could not be seen.
  private static func hint(_ kind: CoverageKind, _ detail: String) -> String? {
    switch kind {
    case .noKeys where detail == Observer.clearHint:
      "nothing says whether the media is encrypted: " + Observer.clearHint
    case .unknownClock: detail
    default: nil
    }
  }

  /// The lines for people.
  var words: String {
    var lines = [
      "\(take): \(calls) calls, \(streams) streams, "
        + "\(packets) RTP and RTCP packets (\(packetsInClear) in the clear) of "
        + "\(datagrams) datagrams, \(mediaFrames) frames, \(steps) steps"
    ]
    if ofNoCall > 0 { lines[0] += ", \(ofNoCall) packets of no call left out" }
    if dropped > 0 { lines[0] += ", \(dropped) frames lost while capturing" }
    if !notSeen.isEmpty {
      lines.append("not seen: \(notSeen.joined(separator: ", ")); retake info tells more")
    }
    lines += hints
    return lines.joined(separator: "\n")
  }
}
