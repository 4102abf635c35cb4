import ICE
import JSEP
import SCTP
import Testing
import Wire

@testable import Peer

/// Tests how a connection's state is tracked, without a connection.
struct StateTests {
  private func establishment(seconds: UInt32, needsAllCandidates: Bool = true) -> Establishment {
    var configuration = PeerConfiguration()
    configuration.establishmentTimeoutMilliseconds = seconds * 1000
    configuration.establishmentNeedsAllCandidates = needsAllCandidates
    return Establishment(configuration)
  }

  private func states(
    _ signaling: SignalingState, _ ice: ICEConnectionState = .new,
    _ gathering: ICEGatheringState = .new
  ) -> ConnectionStates {
    var states = ConnectionStates()
    _ = states.move(to: signaling)
    _ = states.move(to: ice)
    _ = states.move(to: gathering)
    return states
  }

  @Test func movingToTheCurrentStateIsNoTransition() {
    var states = ConnectionStates()
    #expect(states.move(to: ICEConnectionState.new) == nil)
    let moved = StateTransition(machine: "sctp", from: "new", to: "connecting")
    #expect(states.move(to: SCTPState.connecting) == moved)
    #expect(states.sctp == .connecting)
    #expect(states.move(to: SCTPState.connecting) == nil)
  }

  @Test func aCallIsEstablishedOnceEverythingIsConnected() {
    var call = establishment(seconds: 30)
    #expect(call.follow(states(.stable), isClosed: false, at: .zero).isEmpty)
    let begun = call.follow(states(.haveLocalOffer), isClosed: false, at: .zero)
    #expect(begun == [.establishing])
    #expect(call.deadline == .zero + .seconds(30))
    let almost = states(.stable, .connected, .gathering)
    #expect(call.follow(almost, isClosed: false, at: .zero).isEmpty)
    let all = states(.stable, .connected, .complete)
    #expect(call.follow(all, isClosed: false, at: .zero) == [.established])
    #expect(call.deadline == nil)
    #expect(call.follow(states(.stable, .failed), isClosed: false, at: .zero).isEmpty)
    #expect(call.follow(all, isClosed: true, at: .zero) == [.closed])
    #expect(call.follow(all, isClosed: true, at: .zero).isEmpty)
  }

  @Test func aCallThatIsLateMayStillBeEstablished() {
    var call = establishment(seconds: 1, needsAllCandidates: false)
    _ = call.follow(states(.haveLocalOffer), isClosed: false, at: .zero)
    let late = Instant.zero + .seconds(1)
    #expect(call.follow(states(.stable, .checking), isClosed: false, at: late) == [.timedOut])
    #expect(call.deadline == nil)
    let up = states(.stable, .completed, .gathering)
    #expect(call.follow(up, isClosed: false, at: late) == [.established])
  }

  @Test func negotiationNeededIsReportedOncePerNeed() {
    var need = NegotiationNeed()
    var questions = 0
    func settle(isStable: Bool = true, _ answer: Bool) -> Bool {
      func ask() -> Bool {
        questions += 1
        return answer
      }
      return need.settle(isStable: isStable, isNeeded: ask())
    }
    #expect(!settle(isStable: false, true), "it waits for the stable state")
    #expect(settle(true))
    #expect(!settle(true))
    #expect(questions == 1, "nothing changed since")
    need.outdate()
    #expect(!settle(false))
    need.outdate()
    #expect(settle(true))
    #expect(questions == 3)
  }

  @Test func anEndedConnectionIsReportedOncePerReason() {
    var life = ConnectionLife(PeerConfiguration())
    let ends: [ConnectionEnd] = [.iceFailed, .iceFailed, .dtlsFailed, .application, .peer]
    #expect(ends.map { life.end($0) } == [true, false, true, true, false])
    var recovered = ConnectionLife(PeerConfiguration())
    _ = recovered.end(.iceFailed)
    recovered.revoke(.dtlsFailed)
    let isTold = recovered.end(.iceFailed)
    #expect(!isTold)
    recovered.revoke(.iceFailed)
    let isToldAgain = recovered.end(.iceFailed)
    #expect(isToldAgain)
  }

  @Test func aClosedConnectionNeedsNoNegotiation() {
    var life = ConnectionLife(PeerConfiguration())
    life.close()
    let isTold = life.settle(states(.stable), isNeeded: true)
    #expect(life.isClosed && !isTold)
    #expect(life.follow(states(.stable), at: .zero) == [.closed])
  }

  @Test func remoteStreamsAreReportedWhenTheyBeginAndEnd() {
    var remote = RemoteStreams()
    func changes(_ ids: String...) -> [String] {
      remote.follow(ids.map { MediaStreamInfo(id: $0, tracks: []) }).map { event in
        switch event {
        case .streamAdded(let stream): "+\(stream.id)"
        case .streamRemoved(let id): "-\(id)"
        default: "another event"
        }
      }
    }
    #expect(changes("a") == ["+a"])
    #expect(changes("a") == [])
    #expect(changes("b") == ["+b", "-a"])
  }
}
