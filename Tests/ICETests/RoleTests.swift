import Lab
import Testing
import Wire

@testable import ICE

/// Tests which agent chooses the pair, in role conflicts and with lite peers.
struct RoleTests {
  @Test func aConflictIsResolvedWhicheverEndChecksFirst() throws {
    for role in [ICERole.controlling, .controlled] {
      for seed in 0..<50 {
        let meeting = VirtualMeeting.nearby(seed: seed)
        meeting.link.lossPerMille = 100
        let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
        a.step(.role(role))
        b.step(.role(role))
        meeting.start(a, b)
        #expect(
          meeting.run(for: .seconds(5)) { _ in a.isConnected && b.isConnected }, "seed \(seed)")
        meeting.run(for: .seconds(5))
        #expect(a.agent.role != b.agent.role)
        // At least one side reports the change.
        #expect(a.roles.count + b.roles.count >= 1)
        let nominated = [a, b].map { $0.agent.pairs.filter(\.nominated).count }
        #expect(nominated.allSatisfy { $0 >= 1 }, "seed \(seed)")
      }
    }
  }

  /// Makes a lite agent (RFC 8445 section 2.5): it answers checks and never sends any.
  private func litePeer(
    _ meeting: VirtualMeeting, at address: SocketAddress, _ credentials: ICECredentials
  ) -> () -> Int {
    var nominations = 0
    meeting.network.responders[address] = { source, bytes in
      guard let request = try? STUNMessage(bytes), request.messageClass == .request,
        request.verifiesIntegrity(key: Array(credentials.password.utf8))
      else { return nil }
      #expect(request.iceControlling != nil && request.iceControlled == nil)
      if request.usesCandidate { nominations += 1 }
      var writer = STUNWriter(.success, transactionID: request.transactionID)
      writer.xorMappedAddress(source)
      return writer.finish(key: Array(credentials.password.utf8))
    }
    return { nominations }
  }

  @Test(arguments: [ICERole.controlling, .controlled])
  func aLitePeerIsAlwaysControlled(role: ICERole) throws {
    let meeting = VirtualMeeting.nearby(seed: 4)
    let node = meeting.addEnd(["192.0.2.1"])
    let address = try #require(SocketAddress("192.0.2.9:5000"))
    let credentials = ICECredentials(usernameFragment: "lite", password: "lite-password-lite-word")
    let nominations = litePeer(meeting, at: address, credentials)
    node.step(.role(role))
    node.step(.remoteCredentials(credentials, lite: true))
    node.gather()
    node.step(
      .remoteCandidate(
        ICECandidate(
          foundation: "1", priority: 2_130_706_431, host: .address(address.ip),
          port: address.port, kind: .host)))
    node.step(.remoteEndOfCandidates)
    #expect(meeting.run(for: .seconds(2)) { _ in node.isConnected })
    meeting.run(for: .seconds(60))
    #expect(node.agent.role == .controlling)
    #expect(node.states.map(\.state) == [.checking, .connected, .completed])
    #expect(nominations() >= 1)
    #expect(node.agent.selectedPair?.nominated == true)
    // Consent is requested, and expires without answers.
    meeting.network.responders[address] = { _, _ in nil }
    meeting.run(for: .seconds(40))
    #expect(node.states.map(\.state).suffix(2) == [.disconnected, .failed])
    // After a restart, a path that works again is used.
    let fresh = ICECredentials(usernameFragment: "new1", password: "new-password-of-the-lite")
    _ = litePeer(meeting, at: address, fresh)
    node.step(.restart(ICECredentials(usernameFragment: "mine", password: "my-own-password-anew")))
    node.step(.remoteCredentials(fresh, lite: true))
    node.gather()
    node.step(
      .remoteCandidate(
        ICECandidate(
          foundation: "1", priority: 2_130_706_431, host: .address(address.ip),
          port: address.port, kind: .host)))
    #expect(meeting.run(for: .seconds(2)) { _ in node.isConnected })
  }
}
