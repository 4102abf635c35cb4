import Lab
import Testing
import Wire

@testable import ICE

struct RestartTests {
  /// Whether the answering side receives the new credentials before its own restart or after it.
  enum Order: CaseIterable {
    case credentialsFirst, restartFirst
  }

  private func restart(_ meeting: VirtualMeeting, _ a: MeetingEnd, _ b: MeetingEnd, _ order: Order)
  {
    let fresh = meeting.chance
    a.step(.restart(ICECredentials(from: fresh)))
    a.gather()
    // Candidates of the new generation may be in transit while the answer is made.
    meeting.run(for: .milliseconds(20))
    if order == .credentialsFirst { b.learnPeer() }
    b.step(.restart(ICECredentials(from: fresh)))
    if order == .restartFirst { b.learnPeer() }
    b.gather()
    for candidate in a.candidates.suffix(a.addresses.count) { b.step(.remoteCandidate(candidate)) }
    b.step(.remoteEndOfCandidates)
    meeting.after(.milliseconds(300)) { a.learnPeer() }
  }

  @Test(arguments: Order.allCases)
  func aRestartKeepsTheOldPathUntilTheNewOneWorks(order: Order) throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    let old = try #require(a.agent.selectedPair)
    let oldFragment = a.agent.localCredentials.usernameFragment
    restart(meeting, a, b, order)
    #expect(a.agent.connectionState == .connected)
    #expect(a.agent.localCredentials.usernameFragment != oldFragment)
    #expect(a.agent.selectedPair?.id == old.id)
    meeting.run(for: .milliseconds(200))
    #expect(a.selections.count == 1)
    #expect(!a.closed.contains(old.base))
    #expect(
      meeting.run(for: .seconds(2)) { _ in a.selections.count == 2 && b.selections.count == 2 })
    let new = try #require(a.agent.selectedPair)
    #expect(new.id != old.id && new.base != old.base)
    // The old socket stays open for packets in transit, and is closed afterwards.
    #expect(!a.closed.contains(old.base))
    meeting.run(for: .seconds(6))
    #expect(a.closed == [old.base])
    #expect(a.agent.pairs.count == 1 && b.agent.pairs.count == 1)
    #expect(a.agent.connectionState == .completed && b.agent.connectionState == .completed)
    #expect(a.states.map(\.state) == [.checking, .connected, .completed, .connected, .completed])
    meeting.run(for: .seconds(100))
    #expect(a.agent.connectionState == .completed && b.agent.connectionState == .completed)
    #expect(a.gatheringStates == [.gathering, .complete, .gathering, .complete])
  }

  @Test func aRestartRecoversAFailedCall() {
    let (meeting, a, b) = VirtualMeeting.connected()
    meeting.network.passes = { _, _ in false }
    meeting.run(for: .seconds(60))
    #expect(a.agent.connectionState == .failed)
    meeting.network.passes = { _, _ in true }
    restart(meeting, a, b, .credentialsFirst)
    #expect(meeting.run(for: .seconds(5)) { _ in a.isConnected && b.isConnected })
    #expect(a.states.map(\.state).suffix(3) == [.failed, .checking, .connected])
  }

  @Test func aRestartForgetsThatTheCallWasDisconnected() {
    let (meeting, a, b) = VirtualMeeting.connected()
    meeting.network.passes = { _, _ in false }
    meeting.run(for: .seconds(10))
    #expect(a.agent.connectionState == .disconnected)
    a.step(
      .restart(ICECredentials(usernameFragment: "abcdefgh", password: "0123456789abcdefghijkl")))
    #expect(a.agent.connectionState == .checking)
    _ = b
  }

  @Test func twoRestartsInARowEndWithOnePath() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    let old = try #require(a.agent.selectedPair)
    a.step(.restart(ICECredentials(from: meeting.chance)))
    a.gather()
    meeting.run(for: .milliseconds(50))
    #expect(a.agent.selectedPair?.id == old.id)
    restart(meeting, a, b, .credentialsFirst)
    #expect(
      meeting.run(for: .seconds(5)) { _ in a.selections.count == 2 && b.selections.count == 2 })
    meeting.run(for: .seconds(10))
    // Only the last generation's socket is left on each side.
    #expect(a.sockets.count == 1 && b.sockets.count == 1)
    #expect(a.agent.connectionState == .completed)
  }

  @Test func theOldGenerationAnswersUntilItRetires() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    a.step(.restart(ICECredentials(from: meeting.chance)))
    // The remote agent learns of the restart much later; its consent checks continue.
    meeting.run(for: .seconds(60))
    #expect(a.isConnected && b.isConnected)
    #expect(b.time(of: .disconnected) == nil)
    #expect(a.agent.counters == ICECounters())
  }

  @Test func candidatesOfAnotherGenerationAreIgnored() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    var stale = try #require(b.candidates.first)
    stale.port = 4444
    stale.extensions = [ICECandidate.Extension(name: "ufrag", value: "stale")]
    a.step(.remoteCandidate(stale))
    #expect(a.agent.counters.foreignFragment == 1)
    #expect(a.agent.pairs.count == 1)
    _ = meeting
  }

  @Test func aSocketOpenedTooLateIsClosed() throws {
    let meeting = VirtualMeeting.nearby(seed: 1)
    let a = meeting.addEnd(["192.0.2.1"])
    a.gather()
    a.step(.restart(ICECredentials(from: meeting.chance)))
    meeting.run(for: .milliseconds(10))
    #expect(a.closed.count == 1 && a.candidates.isEmpty)
    a.gather()
    a.step(.close)
    meeting.run(for: .milliseconds(10))
    #expect(a.closed.count == 2)
    #expect(a.states.map(\.state) == [.closed])
  }
}
