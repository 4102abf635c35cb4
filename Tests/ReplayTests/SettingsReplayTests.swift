import Foundation
import JSEP
import Lab
import Media
import Peer
import SDP
import Stats
import Tape
import Testing
import Wire

@testable import Replay

/// Settings changed on a running connection: servers, bit rates, removed candidates.
struct SettingsReplayTests {
  private func stats(_ call: VirtualCall, _ type: String) -> [StatsObject] {
    guard case .stats(let report) = call.call(0, .getStats()) else { return [] }
    return report.objects.filter { $0.type == type }
  }

  private func inTake(_ body: (RecordedVirtualCall) throws -> Void) throws {
    let folder = try MachineFolder()
    let path = folder.file("call.take")
    let recording = try RecordedVirtualCall(
      path: path, seed: 41, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"])
    try body(recording)
    _ = try recording.finish()
    let report = try replay(path)
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  @Test func otherServersAreUsedFromTheNextGatheringOn() throws {
    try inTake { recording in
      let call = recording.call
      let address = try #require(SocketAddress("203.0.113.1:3478"))
      call.network.server = VirtualTURNServer(address: address)
      call.addMedia()
      #expect(call.negotiate() == nil)
      recording.run(for: .seconds(1))
      let server = ICEServerConfiguration(
        urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user", credential: "password")
      let bad = ICEServerConfiguration(urls: ["http://a.example"])
      #expect(
        call.call(0, .setConfiguration(iceServers: [bad], iceTransportPolicy: .all)).error?.name
          == "SyntaxError")
      #expect(
        call.call(0, .setConfiguration(iceServers: [server], iceTransportPolicy: .relay)).error
          == nil)
      recording.run(for: .milliseconds(500))
      #expect(kinds(call) == ["host"])
      call.call(0, .restartICE)
      #expect(call.negotiate(gatheringTime: .milliseconds(200)) == nil)
      recording.run(for: .seconds(2))
      #expect(kinds(call) == ["relay"])
      #expect(call.state("connection", of: 0) == "connected")
    }
  }

  /// Returns the kinds of the local candidates in the current description.
  private func kinds(_ call: VirtualCall) -> Set<Substring> {
    guard case .description(let description) = call.call(0, .localDescription) else { return [] }
    let candidates = description.sdp.split(separator: "\r\n").filter {
      $0.hasPrefix("a=candidate:")
    }
    return Set(candidates.compactMap { $0.firstMatch(of: #/ typ (\w+)/#)?.1 })
  }

  @Test func bitRatesAreLimitedWhileACallRuns() throws {
    try inTake { recording in
      let call = recording.call
      let pattern = MediaSource.pattern(width: 160, height: 120, framesPerSecond: 10)
      call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: pattern))
      #expect(call.negotiate() == nil)
      recording.run(for: .seconds(1))
      func limit(_ minimum: UInt64?, _ current: UInt64?, _ maximum: UInt64?) -> String? {
        let request = PeerCall.limitBitrate(minimum: minimum, current: current, maximum: maximum)
        return call.call(0, request).error?.name
      }
      #expect(limit(nil, nil, 100_000) == nil)
      recording.run(for: .seconds(1))
      #expect(target(call) <= 100_000)
      #expect(limit(300_000, nil, nil) == "RangeError")
      #expect(limit(nil, 200_000, nil) == "RangeError")
      #expect(limit(nil, 1_500_000, 2_000_000) == nil)
      recording.run(for: .milliseconds(300))
      #expect(target(call) > 1_000_000)
      #expect(limit(1_900_000, nil, nil) == nil)
      recording.run(for: .milliseconds(300))
      #expect(target(call) >= 1_800_000)
    }
  }

  /// Returns the video encoder's target in bits per second; 0 if it is not in the stats.
  private func target(_ call: VirtualCall) -> Double {
    guard case .number(let target)? = stats(call, "outbound-rtp").first?["targetBitrate"] else {
      return 0
    }
    return target
  }

  private static let text = "candidate:7 1 udp 2122260223 10.0.0.9 4711 typ host"

  @Test func removedCandidatesAreForgotten() throws {
    try inTake { recording in
      let call = recording.call
      call.addMedia()
      #expect(call.negotiate() == nil)
      let candidate = CandidateInit(candidate: Self.text, sdpMid: "0")
      #expect(!describes(call))
      #expect(call.call(0, .addICECandidate(candidate)).error == nil)
      call.run(for: .milliseconds(100))
      #expect(describes(call) && pairs(call) == ["in-progress"])
      #expect(call.call(0, .removeICECandidates([candidate])).error == nil)
      #expect(!describes(call) && pairs(call) == ["failed"])
      // The removed candidate is forgotten, so it can be added again, and removed again before it
      // is checked.
      #expect(call.call(0, .addICECandidate(candidate)).error == nil)
      #expect(describes(call))
      #expect(call.call(0, .removeICECandidates([candidate])).error == nil)
      recording.run(for: .seconds(1))
      #expect(call.state("connection", of: 0) == "connected")
      let nowhere = CandidateInit(candidate: Self.text, sdpMid: "7")
      #expect(call.call(0, .removeICECandidates([nowhere])).error?.name == "OperationError")
    }
  }

  private func describes(_ call: VirtualCall) -> Bool {
    guard case .description(let description) = call.call(0, .readDescription(.remote)) else {
      return false
    }
    return description.sdp.contains("a=" + Self.text + "\r\n")
  }

  /// Returns the states of the pairs with the remote candidate that has port 4711.
  private func pairs(_ call: VirtualCall) -> [String] {
    let ids = stats(call, "remote-candidate").filter { $0["port"] == .integer(4711) }.map(\.id)
    return stats(call, "candidate-pair").compactMap { pair in
      guard case .text(let remote)? = pair["remoteCandidateId"], ids.contains(remote),
        case .text(let state)? = pair["state"]
      else { return nil }
      return state
    }
  }
}
