import Lab
import Media
import Peer
import Stats
import Testing
import Wire

struct AlignmentTests {
  private func inbound(_ call: VirtualCall, _ kind: String) throws -> StatsObject {
    guard case .stats(let report) = call.call(1, .getStats()) else {
      throw ProblemInTest("getStats returned no report")
    }
    return try #require(
      report.objects.first { $0.type == "inbound-rtp" && $0["kind"] == .text(kind) })
  }

  private struct ProblemInTest: Error {
    init(_ reason: String) { self.reason = reason }
    var reason: String
  }

  private func number(_ object: StatsObject, _ name: String) throws -> Double {
    switch object[name] {
    case .number(let value): return value
    case .integer(let value): return Double(value)
    default: throw ProblemInTest("there is no \(name)")
    }
  }

  /// Returns how far audio is ahead of video at the receiver, in milliseconds.
  ///
  /// This is the difference between the sender's times of the audio and the video being played,
  /// averaged over some instants.
  private func advance(_ call: VirtualCall) throws -> Double {
    var sum = 0.0
    for _ in 0..<20 {
      call.run(for: .milliseconds(53))
      sum +=
        try number(inbound(call, "audio"), "estimatedPlayoutTimestamp")
        - number(inbound(call, "video"), "estimatedPlayoutTimestamp")
    }
    return sum / 20
  }

  private func call(streams: [String], jitter: Interval) -> VirtualCall {
    var link = LinkSettings()
    link.delay = .milliseconds(30)
    link.jitter = jitter
    let call = VirtualCall(seed: 77, links: [link, link])
    call.call(
      0,
      .addTrack(kind: .audio, streamIDs: [streams[0]], source: .tone(hertz: 440, pauseSeconds: 0)))
    call.call(
      0,
      .addTrack(
        kind: .video, streamIDs: [streams[1]],
        source: .pattern(width: 160, height: 120, framesPerSecond: 30)))
    call.negotiate()
    call.run(for: .seconds(12))
    return call
  }

  @Test(arguments: [0, 15, 60] as [Int64])
  func audioAndVideoFramesOfAStreamArePlayedTogether(jitter: Int64) throws {
    let together = call(streams: ["s", "s"], jitter: .milliseconds(jitter))
    let apart = call(streams: ["s", "t"], jitter: .milliseconds(jitter))
    // Both values are uncertain by half a video frame and half a block of audio.
    let (aligned, alone) = (try advance(together), try advance(apart))
    #expect(aligned.magnitude < 12, "\(aligned) ms, and \(alone) ms without alignment")
    // Unaligned audio waits longer, because its jitter buffer has the larger minimum delay.
    if jitter == 0 { #expect(alone < -15, "\(alone) ms") }
  }

  @Test func onlyTheEarlierTrackIsDelayed() throws {
    let call = call(streams: ["s", "s"], jitter: .zero)
    func extra(_ kind: String) throws -> Double {
      let object = try inbound(call, kind)
      return try number(object, "jitterBufferTargetDelay")
        - number(object, "jitterBufferMinimumDelay")
    }
    #expect(try extra("audio") == 0)
    #expect(try extra("video") > 1)
  }
}
