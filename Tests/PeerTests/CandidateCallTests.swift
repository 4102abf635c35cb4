import Foundation
import JSEP
import Lab
import Media
import Peer
import SDP
import Stats
import Testing
import Wire

/// Tests W3C addIceCandidate (webrtc-pc section 4.4.1.6) while sections have separate transports,
/// and after they are bundled.
struct CandidateCallTests {
  private static func bare(_ sdp: String) -> String {
    sdp.split(separator: "\r\n", omittingEmptySubsequences: false).filter {
      !$0.hasPrefix("a=candidate") && !$0.hasPrefix("a=end-of-candidates")
    }.joined(separator: "\r\n")
  }

  /// Makes a call whose descriptions contain no candidates.
  private func call(_ edit: @escaping (String) -> String = { $0 }) -> VirtualCall {
    let call = VirtualCall(seed: 61)
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    #expect(call.negotiate { edit(CandidateCallTests.bare($0)) } == nil)
    return call
  }

  private static let text = "candidate:7 1 udp 2122260223 10.0.0.2 4711 typ host"

  private func remote(_ call: VirtualCall) -> [String] {
    guard case .description(let description) = call.call(0, .readDescription(.remote)) else {
      return []
    }
    return description.sdp.components(separatedBy: "\r\nm=")
  }

  private func fragment(_ call: VirtualCall) -> String? {
    remote(call).last?.split(separator: "\r\n").first { $0.hasPrefix("a=ice-ufrag:") }
      .map { String($0.dropFirst("a=ice-ufrag:".count)) }
  }

  private static let refusals: [(CandidateInit, String)] = [
    (CandidateInit(candidate: text), "TypeError"),
    (CandidateInit(candidate: text, sdpMid: "7"), "OperationError"),
    (CandidateInit(candidate: "", sdpMid: "7"), "OperationError"),
    (CandidateInit(candidate: text, sdpMLineIndex: 2), "OperationError"),
    (CandidateInit(candidate: text, sdpMLineIndex: -1), "OperationError"),
    (CandidateInit(candidate: text, sdpMid: "0", usernameFragment: "no"), "OperationError"),
    (CandidateInit(candidate: "", usernameFragment: "no"), "OperationError"),
    (CandidateInit(candidate: "candidate:7 1 udp", sdpMid: "0"), "OperationError"),
  ]

  @Test(arguments: refusals)
  func unusableCandidatesAreRefused(candidate: CandidateInit, name: String) {
    let call = call()
    let before = remote(call)
    #expect(call.call(0, .addICECandidate(candidate)).error?.name == name)
    #expect(remote(call) == before)
    #expect(call.state("ice-connection", of: 0) == nil)
  }

  @Test func candidatesNeedARemoteDescription() {
    let call = VirtualCall(seed: 62)
    let candidate = CandidateInit(candidate: CandidateCallTests.text, sdpMid: "0")
    #expect(call.call(0, .addICECandidate(candidate)).error?.name == "InvalidStateError")
    #expect(call.call(0, .addICECandidate(nil)).error?.name == "InvalidStateError")
  }

  @Test func aCandidateIsAddedToTheRemoteDescription() throws {
    let call = call()
    let line = "\r\na=" + CandidateCallTests.text
    #expect(!remote(call).joined().contains(line))
    let present = try #require(fragment(call))
    let candidate = CandidateInit(
      candidate: CandidateCallTests.text, sdpMLineIndex: 0, usernameFragment: present)
    for _ in 0..<2 { #expect(call.call(0, .addICECandidate(candidate)).error == nil) }
    #expect(remote(call).map { $0.components(separatedBy: line).count - 1 } == [0, 1, 0])
    #expect(call.state("ice-connection", of: 0) == "checking")
    // The bundled section has no separate transport, so nothing happens.
    let along = CandidateInit(candidate: CandidateCallTests.text, sdpMid: "1")
    #expect(call.call(0, .addICECandidate(along)).error == nil)
    #expect(remote(call).map { $0.components(separatedBy: line).count - 1 } == [0, 1, 0])
  }

  @Test func endOfCandidatesOfABundledSectionIsIgnored() {
    let call = call()
    for end in [CandidateInit(candidate: "", sdpMid: "1"), .init(candidate: "", sdpMLineIndex: 1)] {
      #expect(call.call(0, .addICECandidate(end)).error == nil)
      #expect(call.state("ice-connection", of: 0) == nil)
    }
    // Once the transport's own end-of-candidates has arrived, the transport checks its candidates.
    #expect(call.call(0, .addICECandidate(CandidateInit(candidate: "", sdpMid: "0"))).error == nil)
    #expect(call.state("ice-connection", of: 0) == "checking")
  }

  @Test func endOfCandidatesOfOneTransportLeavesTheOthers() {
    let call = call { $0.replacing("a=group:BUNDLE 0 1\r\n", with: "") }
    #expect(call.call(0, .addICECandidate(CandidateInit(candidate: "", sdpMid: "1"))).error == nil)
    let states = transports(call).map { $0["iceState"] }
    #expect(states == [.text("new"), .text("checking")])
    #expect(call.call(0, .addICECandidate(nil)).error == nil)
    #expect(transports(call).map { $0["iceState"] } == [.text("checking"), .text("checking")])
  }

  private func transports(_ call: VirtualCall) -> [StatsObject] {
    guard case .stats(let report) = call.call(0, .getStats()) else { return [] }
    return report.objects.filter { $0.type == "transport" }
  }

  @Test func candidatesOfARejectedSectionAreIgnored() {
    let call = call()
    call.call(0, .stopTransceiver(2))
    #expect(call.negotiate(edit: CandidateCallTests.bare) == nil)
    let candidate = CandidateInit(
      candidate: CandidateCallTests.text, sdpMid: "1", usernameFragment: "gone")
    #expect(call.call(0, .addICECandidate(candidate)).error == nil)
  }

  @Test func endOfCandidatesIsReportedOnceOnlyTheBundleRemains() {
    var peer = SlowSockets()
    peer.begin()
    // Only the first transport's socket exists when the answer bundles.
    peer.bind(first: true)
    #expect(peer.ends == 0)
    peer.bundle()
    #expect(peer.ends == 1)
    // Sockets opened late for the other transports are closed without a report.
    peer.bind(first: false)
    #expect(peer.ends == 1 && peer.closed == 1)
  }
}

/// A peer that offers audio and video, whose sockets open when the test says so.
private struct SlowSockets {
  private let answerer = VirtualCall(seed: 63)
  private var peer = PeerMachine(codecs: LibraryCodecs())
  private var outbox = Outbox<PeerOutput>()
  private var asked: [UInt32] = []
  private var offer = SessionDescription(type: .offer, sdp: "")
  private(set) var ends = 0
  private(set) var closed = 0

  private mutating func step(_ input: PeerInput) {
    peer.step(input, at: .zero, into: &outbox)
    for output in outbox.drain() {
      switch output {
      case .request(.bindSocket(let id, _)): asked.append(id)
      case .request(.closeSocket): closed += 1
      case .event(.localCandidate(nil)): ends += 1
      case .reply(_, .description(let description)): offer = description
      default: break
      }
    }
  }

  mutating func begin() {
    let genesis = Genesis(
      seed: [UInt8](repeating: 7, count: Entropy.seedLength),
      wallClock: WallClock(unixNanosecondsAtZero: labEpoch), configuration: PeerConfiguration())
    step(.genesis(genesis))
    step(.interfaces([IPAddress(ipv4: 0x0a00_0001)]))
    for (id, kind) in [MediaKind.audio, .video].enumerated() {
      step(.call(id: UInt32(id), .addTrack(kind: kind, streamIDs: [], source: .application)))
    }
    step(.call(id: 3, .setLocalDescription(nil)))
    step(.call(id: 4, .localDescription))
    #expect(asked.count == 2)
  }

  mutating func bind(first: Bool) {
    let index = first ? 0 : 1
    step(
      .answer(
        .socketBound(
          id: asked[index],
          SocketAddress(IPAddress(ipv4: 0x0a00_0001), port: 5000 + UInt16(index)))))
  }

  mutating func bundle() {
    answerer.call(0, .setRemoteDescription(offer))
    answerer.call(0, .setLocalDescription(nil))
    guard case .description(let answer) = answerer.call(0, .localDescription) else { return }
    step(.call(id: 5, .setRemoteDescription(answer)))
  }
}
