import SDP
import Testing
import Wire

@testable import JSEP

struct StateTests {
  static func side(in state: SignalingState) throws -> Side {
    var side = Side("a")
    var other = Side("b")
    _ = try side.add(.audio)
    _ = try other.add(.audio)
    switch state {
    case .stable: break
    case .haveLocalOffer: _ = try side.offer()
    case .haveRemoteOffer: try side.apply(try other.offer())
    case .haveLocalPranswer:
      try side.apply(try other.offer())
      _ = try side.answer(.pranswer)
    case .haveRemotePranswer:
      try other.apply(try side.offer())
      try side.apply(try other.answer(.pranswer))
    case .closed: _ = side.negotiation.close()
    }
    #expect(side.negotiation.signalingState == state)
    return side
  }

  enum Call: String, CaseIterable {
    case createOffer, createAnswer, localOffer, localAnswer, localPranswer, localRollback
    case remoteOffer, remoteAnswer, remotePranswer, remoteRollback
  }

  /// The state that each call leads to; all other calls are rejected (W3C section 4.4.1).
  static let transitions: [SignalingState: [Call: SignalingState]] = [
    .stable: [
      .createOffer: .stable, .localOffer: .haveLocalOffer, .remoteOffer: .haveRemoteOffer,
    ],
    .haveLocalOffer: [
      .createOffer: .haveLocalOffer, .localOffer: .haveLocalOffer, .remoteAnswer: .stable,
      .remotePranswer: .haveRemotePranswer, .remoteOffer: .haveRemoteOffer,
      .localRollback: .stable, .remoteRollback: .stable,
    ],
    .haveRemoteOffer: [
      .createAnswer: .haveRemoteOffer, .localAnswer: .stable,
      .localPranswer: .haveLocalPranswer, .remoteOffer: .haveRemoteOffer,
      .localRollback: .stable, .remoteRollback: .stable,
    ],
    .haveLocalPranswer: [
      .createAnswer: .haveLocalPranswer, .localAnswer: .stable,
      .localPranswer: .haveLocalPranswer,
    ],
    .haveRemotePranswer: [
      .remoteAnswer: .stable, .remotePranswer: .haveRemotePranswer,
    ],
    .closed: [:],
  ]

  @Test(
    arguments: [
      SignalingState.stable, .haveLocalOffer, .haveRemoteOffer, .haveLocalPranswer,
      .haveRemotePranswer, .closed,
    ], Call.allCases)
  func callsAreAllowedByState(state: SignalingState, call: Call) throws {
    var side = try StateTests.side(in: state)
    let before = side.negotiation
    let expected = StateTests.transitions[state]?[call]
    do {
      try perform(call, on: &side)
      #expect(side.negotiation.signalingState == expected)
    } catch let error as JSEPError {
      #expect(expected == nil, "\(error)")
      #expect(error.kind == .invalidState)
      #expect(side.negotiation.signalingState == state)
      #expect(side.negotiation.transceivers == before.transceivers)
      #expect(side.negotiation.pendingRemote == before.pendingRemote)
    }
  }

  private func perform(_ call: Call, on side: inout Side) throws {
    var other = Side("c")
    _ = try other.add(.audio)
    switch call {
    case .createOffer: _ = try side.negotiation.createOffer(side.transport)
    case .createAnswer: _ = try side.negotiation.createAnswer(side.transport)
    case .localOffer:
      _ = try? side.negotiation.createOffer(side.transport)
      try set(.offer, on: &side)
    case .localAnswer, .localPranswer:
      _ = try? side.negotiation.createAnswer(side.transport)
      try set(call == .localAnswer ? .answer : .pranswer, on: &side)
    case .localRollback: try set(.rollback, on: &side)
    case .remoteRollback: try side.apply(.rollback, "")
    case .remoteOffer: try side.apply(try other.offer())
    case .remoteAnswer, .remotePranswer:
      var answerer = Side("b")
      if let offer = side.negotiation.pendingLocal, offer.type == .offer {
        try answerer.apply(offer)
      } else {
        try answerer.apply(try other.offer())
      }
      try side.apply(try answerer.answer(call == .remoteAnswer ? .answer : .pranswer))
    }
  }

  private func set(_ type: SDPType, on side: inout Side) throws {
    _ = try side.negotiation.setLocal(SessionDescription(type: type, sdp: ""))
  }

  @Test func onlyTheLastCreatedDescriptionMayBeSet() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    func kind(_ description: SessionDescription) -> JSEPError.Kind? {
      #expect(throws: JSEPError.self) { try side.negotiation.setLocal(description) }?.kind
    }
    #expect(kind(SessionDescription(type: .offer, sdp: "")) == .invalidModification)
    let old = try side.negotiation.createOffer(side.transport)
    _ = try side.add(.video)
    let new = try side.negotiation.createOffer(side.transport)
    #expect(kind(old) == .invalidModification)
    let changed = SessionDescription(type: .offer, sdp: new.sdp.with("VP8", "VP9"))
    #expect(kind(changed) == .invalidModification)
    // A description not created as an answer is rejected before the state is checked (W3C
    // setLocalDescription).
    #expect(kind(SessionDescription(type: .answer, sdp: new.sdp)) == .invalidModification)
    _ = try side.negotiation.setLocal(new)
    #expect(side.negotiation.pendingLocal == new)
    // Until an answer arrives, the offer is the last created one and may be set again.
    #expect(try side.negotiation.setLocal(new) == [.localDescriptionSet])
    #expect(side.negotiation.pendingLocal == new && side.transceiver(1)?.mid == "0")
    var other = Side("b")
    try other.apply(new)
    try side.apply(try other.answer())
    #expect(kind(new) == .invalidModification)
  }

  @Test func anOfferInTheWrongStateReportsTheState() throws {
    var side = Side("a")
    var other = Side("b")
    _ = try other.add(.audio)
    let offer = try side.negotiation.createOffer(side.transport)
    try side.apply(try other.offer())
    let error = #expect(throws: JSEPError.self) { try side.negotiation.setLocal(offer) }
    #expect(error?.kind == .invalidState)
  }

  @Test func aProvisionalAnswerFixesTheTransportButNotTheMedia() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    try answerer.apply(try offerer.offer())
    try offerer.apply(try answerer.answer(.pranswer))
    #expect(offerer.negotiation.remoteTransport?.localIsDTLSClient == true)
    #expect(answerer.negotiation.remoteTransport?.localIsDTLSClient == false)
    #expect(offerer.agreed == ["0 audio sendonly"])
    #expect(answerer.agreed == ["0 audio recvonly"])
    #expect(offerer.negotiation.currentLocal == nil)
    try answerer.negotiation.setDirection(.sendrecv, of: 1)
    try offerer.apply(try answerer.answer())
    #expect(offerer.agreed == ["0 audio sendrecv"])
    #expect(offerer.negotiation.pendingLocal == nil && offerer.negotiation.pendingRemote == nil)
    #expect(answerer.negotiation.currentLocal?.type == .answer)
  }
}
