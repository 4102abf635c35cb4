import Foundation
import Lab
import Media
import Peer
import Queries
import Tape
import Testing
import Wire

struct MergeTests {
  /// Records a call with both ends in one take, with the given loss and delay of the caller's
  /// packets.
  private func record(
    _ folder: TakeFolder, lossPerMille: UInt64 = 0, jitter: Interval = .zero, seconds: Int64 = 3,
    calleeHertz: Int = 440
  ) throws -> String {
    let path = folder.file("call.take")
    var link = LinkSettings()
    link.delay = .milliseconds(30)
    var worse = link
    worse.lossPerMille = lossPerMille
    worse.jitter = jitter
    let recorded = try RecordedVirtualCall(
      path: path, seed: 12, links: [worse, link], labels: ["caller", "callee"])
    recorded.call.addMedia(from: [0])
    recorded.call.addMedia(audio: .tone(hertz: calleeHertz, pauseSeconds: 0), from: [1])
    recorded.call.negotiate()
    recorded.run(for: .seconds(seconds))
    _ = try recorded.finish()
    return path
  }

  /// Makes a copy with another clock: `ahead` in nanoseconds, and `faster` in millionths.
  private func copy(_ path: String, _ folder: TakeFolder, ahead: Int64, faster: Int64) throws
    -> String
  {
    let copy = folder.file("other.take")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try folder.alter(
      copy, "UPDATE packet_store SET at_ns = at_ns + at_ns * \(faster) / 1000000 + \(ahead)")
    return copy
  }

  private func isNear(_ value: Double?, _ wanted: Double, within: Double = 0.001) -> Bool {
    value.map { ($0 - wanted).magnitude <= within } ?? false
  }

  @Test func twoPeersOfOneTakeHaveOneClock() throws {
    let folder = try TakeFolder()
    let path = try record(folder)
    let merged = try MergedTakes(first: path, peer: 1, second: path, peer: 2)
    #expect(merged.offsetNanoseconds == 0 && merged.driftPartsPerMillion == nil)
    #expect(isNear(merged.uncertaintyMilliseconds, 30))
    for way in merged.ways {
      #expect(way.sent == way.received && way.sent > 140)
      #expect(isNear(way.leastMilliseconds, 30) && isNear(way.mostMilliseconds, 30))
      #expect(way.seconds.map(\.second) == [0, 1, 2, 3].prefix(way.seconds.count).map { $0 })
    }
  }

  /// A room server forwards the same frames in different datagrams, including those that no codec
  /// of this build encodes or decodes.
  @Test(arguments: [true, false])
  func takesOfARoomAreLaidOnOneClockByTheirFrames(hasCodec: Bool) throws {
    let folder = try TakeFolder()
    // Frames with the same content in both directions cannot be matched, so the callee sends
    // another tone.
    let path = try record(folder, calleeHertz: 660)
    let other = folder.file("other.take")
    try FileManager.default.copyItem(atPath: path, toPath: other)
    #expect(throws: MergedTakes.Refusal.self) { try MergedTakes(first: path, second: other) }
    let room = MachineKind.room.rawValue
    for take in [path, other] {
      try folder.alter(
        take, "INSERT INTO actor_store VALUES (1, 9, 0, \(room), 'room', '{}', x'')")
      guard !hasCodec else { continue }
      try folder.alter(
        take,
        """
        UPDATE format SET outcome = iif(direction = 'out', 'passed on', 'not decoded')
        WHERE outcome IN ('encoded', 'decoded')
        """)
    }
    try folder.alter(other, "UPDATE frame_store SET at_ns = at_ns + 70000000")
    let merged = try MergedTakes(first: path, second: other)
    #expect(merged.offsetNanoseconds == -70_000_000)
    // The playout is later than the arrival.
    #expect(merged.ways.allSatisfy { $0.received > 20 && $0.leastMilliseconds >= 30 })
  }

  @Test func theOffsetOfTheClocksIsFound() throws {
    let folder = try TakeFolder()
    let path = try record(folder, lossPerMille: 100, jitter: .milliseconds(40))
    let other = try copy(path, folder, ahead: 5_000_000_000, faster: 0)
    let merged = try MergedTakes(first: path, peer: 1, second: other, peer: 2)
    // The fastest of some hundred datagrams is up to a millisecond behind the path's delay.
    let offset = Double(merged.offsetNanoseconds) / 1e6
    #expect(isNear(offset, -5_000, within: 0.6), "\(offset)")
    let there = merged.ways[0]
    #expect(there.lostPercent > 5 && there.lostPercent < 16, "\(there.lostPercent)")
    #expect(isNear(there.medianMilliseconds, 50, within: 5))
    #expect(there.mostMilliseconds < 71 && there.percentile95Milliseconds > 62)
    #expect(merged.ways[1].lostPercent == 0)
    #expect(isNear(merged.ways[1].medianMilliseconds, 30, within: 0.7))
    #expect(merged.description.contains("begins -5"))
    #expect(merged.json.contains("\"medianMilliseconds\""))
  }

  @Test func aClockThatRunsFasterIsFound() throws {
    let folder = try TakeFolder()
    let path = try record(folder, seconds: 45)
    let other = try copy(path, folder, ahead: 0, faster: 200)
    let merged = try MergedTakes(first: path, peer: 1, second: other, peer: 2)
    #expect(isNear(merged.driftPartsPerMillion, 200, within: 5))
    for way in merged.ways {
      #expect(isNear(way.medianMilliseconds, 30, within: 1))
      #expect(way.mostMilliseconds - way.leastMilliseconds < 3)
    }
  }

  @Test func takesOfDifferentCallsAreRefused() throws {
    let folder = try TakeFolder()
    let path = try record(folder, seconds: 1)
    let refusal = #expect(throws: MergedTakes.Refusal.self) {
      _ = try MergedTakes(first: path, peer: 1, second: path, peer: 1)
    }
    guard case .nothingInCommon(let reason)? = refusal else {
      Issue.record("\(String(describing: refusal))")
      return
    }
    #expect(reason.contains("two ends of one call"))
    let several = #expect(throws: MergedTakes.Refusal.self) {
      _ = try MergedTakes(first: path, second: path)
    }
    guard case .unreadable(let error)? = several else {
      Issue.record("\(String(describing: several))")
      return
    }
    #expect(error.reason.contains("1 caller, 2 callee"))
  }
}
