import Export
import Page
import Peer
import Replay
import Stats
import Tape
import Wire

/// What was inside of protected packets around a time, found by a replay of the take.
struct ClearPackets: Sendable {
  /// One of them, by who sent it to whom and when.
  private struct Sight: Sendable {
    var source: String
    var destination: String
    var at: Int64
    var kind: String
    var bytes: [UInt8]
  }

  let path: String
  /// What is kept, in nanoseconds since the take began.
  let span: ClosedRange<Int64>
  private let sights: [Sight]

  /// How much on both sides of a packet is kept for the next question.
  private static let margin: Int64 = 2_000_000_000
  private static let byteMaximum = 64 << 20

  /// Replays the take to its end, and keeps what came by around a time.
  init(path: String, around at: Int64) throws(TapeError) {
    self.path = path
    let span = (at &- Self.margin)...(at &+ Self.margin)
    self.span = span
    let found = Found()
    _ = try FollowedReplay(take: path, only: nil).run(progress: { _, _ in }) {
      sight, source, destination, time in
      guard case .clear(let bytes, let kind) = sight, span.contains(time.nanoseconds),
        found.byteCount + bytes.count <= Self.byteMaximum
      else { return }
      found.byteCount += bytes.count
      found.sights.append(
        Sight(
          source: "\(source)", destination: "\(destination)", at: time.nanoseconds,
          kind: "\(kind)", bytes: bytes))
    }
    sights = found.sights
  }

  /// What a packet held, as a JSON array of kinds, fields, and bytes in hexadecimal.
  func json(of place: PagePackets.Place) -> String {
    let objects = sights.filter {
      $0.at == place.at && $0.source == place.source && $0.destination == place.destination
    }.map { sight in
      JSONText.object([
        ("kind", .text(sight.kind)), ("bytes", .text(hexadecimal(sight.bytes))),
        ("layers", PacketFields(sight.bytes, kind: sight.kind, isClear: true).json),
      ]).text
    }
    return "[" + objects.joined(separator: ",") + "]"
  }

  private final class Found {
    var sights: [Sight] = []
    var byteCount = 0
  }
}
