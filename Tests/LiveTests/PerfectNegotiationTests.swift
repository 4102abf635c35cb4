import JSEP
import Live
import Media
import Peer
import SDP
import Secure
import Testing
import Wire

/// One side of W3C's perfect negotiation, which handles events from its connection and messages
/// from its peer one at a time.
private final class Negotiator: Sendable {
  enum Message: Sendable {
    case event(PeerConnectionEvent)
    case description(SessionDescription)
    case candidate(CandidateInit?)
  }

  let connection: PeerConnection
  let isPolite: Bool
  let inbox: AsyncStream<Message>
  let post: AsyncStream<Message>.Continuation

  init(_ connection: PeerConnection, isPolite: Bool) {
    self.connection = connection
    self.isPolite = isPolite
    (inbox, post) = AsyncStream.makeStream(of: Message.self)
  }

  /// Negotiates until its connection is closed; returns how many offers collided.
  func run(with peer: Negotiator) async throws -> Int {
    let events = connection.events
    let forwarding = Task { [post] in
      for await event in events { post.yield(.event(event)) }
      post.finish()
    }
    var crossed = 0
    var ignoresOffer = false
    for await message in inbox {
      switch message {
      case .event(.negotiationNeeded):
        guard connection.signalingState == .stable else { continue }
        try await describe(to: peer)
      case .event(.iceCandidate(let candidate)): peer.post.yield(.candidate(candidate))
      case .event: break
      case .description(let description):
        let collides = description.type == .offer && connection.signalingState != .stable
        if collides { crossed += 1 }
        ignoresOffer = collides && !isPolite
        guard !ignoresOffer else { continue }
        try await connection.setRemoteDescription(description)
        if description.type == .offer { try await describe(to: peer) }
      case .candidate(let candidate):
        do {
          try await connection.addICECandidate(candidate)
        } catch {
          if !ignoresOffer { throw error }
        }
      }
    }
    await forwarding.value
    return crossed
  }

  private func describe(to peer: Negotiator) async throws {
    try await connection.setLocalDescription()
    if let description = try await connection.localDescription {
      peer.post.yield(.description(description))
    }
  }
}

@Suite(.timeLimit(.minutes(10)), .serialized) struct PerfectNegotiationTests {
  @Test func twoPeersThatOfferAtOnceEndInOneCall() async throws {
    let call = try LoopbackCall()
    let polite = Negotiator(call.caller, isPolite: true)
    let impolite = Negotiator(call.callee, isPolite: false)
    let running = [(polite, impolite), (impolite, polite)].map { own, peer in
      Task { try await own.run(with: peer) }
    }
    for peer in [call.caller, call.callee] {
      try await peer.addStream(
        MediaStreamInit(
          id: "stream of \(peer.label)".replacing(" ", with: "-"),
          tracks: [
            .init(id: "a", kind: .audio, source: LoopbackCallTests.tone),
            .init(id: "v", kind: .video, source: LoopbackCallTests.pattern),
          ]))
    }
    for peer in [call.caller, call.callee] { try await peer.waitUntilEstablished() }
    await LoopbackCall.receive(videoFrames: 3, blocks: 10, of: call.caller)
    await LoopbackCall.receive(videoFrames: 3, blocks: 10, of: call.callee)
    #expect(try await call.caller.streams.remote.map(\.id) == ["stream-of-callee"])
    #expect(try await call.callee.streams.remote.map(\.id) == ["stream-of-caller"])
    #expect(try await call.caller.transceivers.map(\.currentDirection) == [.sendrecv, .sendrecv])
    for peer in [call.caller, call.callee] { await peer.close() }
    for task in running { _ = try await task.value }
    try await call.session.finish()
  }

  @Test func sendersAreSetInARunningCall() async throws {
    let call = try LoopbackCall()
    let video = try await call.caller.addTrack(.video, source: LoopbackCallTests.pattern)
    try await call.caller.setCodecPreferences(
      [RTPCodec(mimeType: "video/VP8", clockRate: 90_000)], of: video.id)
    #expect(try await call.caller.canTrickleICECandidates == nil)
    try await call.connect()
    #expect(try await call.caller.canTrickleICECandidates == true)
    var parameters = try await call.caller.getParameters(of: video.id)
    #expect(parameters.codecs.map(\.codec.mimeType) == ["video/VP8"])
    parameters.encodings[0].scaleResolutionDownBy = 4
    try await call.caller.setParameters(parameters, of: video.id)
    let error = await #expect(throws: PeerError.self) {
      try await call.caller.setParameters(parameters, of: video.id)
    }
    #expect(error?.name == "InvalidStateError")
    let (sizes, continuation) = AsyncStream.makeStream(of: Int.self)
    let subscription = call.callee.onMedia { media in
      if case .videoFrame(let videoFrame) = media.content { continuation.yield(videoFrame.width) }
    }
    for await width in sizes where width == 40 { break }
    withExtendedLifetime(subscription) {}
    #expect(try await call.callee.description(.currentRemote)?.type == .offer)
    #expect(try await call.callee.remoteDescription == call.callee.description(.currentRemote))
    try await call.session.finish()
  }

  @Test(arguments: CertificateAlgorithm.allCases)
  func aCertificateIsShownByEveryConnectionThatUsesIt(algorithm: CertificateAlgorithm) async throws
  {
    let certificate = PeerCertificate.generate(algorithm)
    let fingerprint = try #require(certificate.fingerprint)
    var configuration = PeerConfiguration()
    configuration.certificates = [certificate]
    let session = try Session()
    for label in ["one", "two"] {
      let peer = session.makePeer(label: label, configuration: configuration)
      try await peer.addTransceiver(.audio)
      let offer = try await peer.createOffer()
      #expect(offer.sdp.contains("a=fingerprint:sha-256 \(fingerprint.value)\r\n"))
    }
    try await session.finish()
  }
}
