import Wire

// Addresses that come and go while a session lasts.
extension ICEAgent {
  /// Gives up what is gone and takes what is new into use, as long as gathering has begun.
  mutating func learnInterfaces(_ addresses: [IPAddress]) {
    guard gatheringState != .new else { return }
    let gone = gathering.sockets.filter { !addresses.contains($0.asked) }
    gathering.sockets.removeAll { !addresses.contains($0.asked) }
    for socket in gone {
      guard let address = socket.address else { continue }
      lose(address)
      emit(.closeSocket(address))
    }
    // Connections have ports of their own.
    loseRelays { $0.isStream && !addresses.contains($0.base.ip) }
    checklist.fail { $0.isActive && !addresses.contains($0.base.ip) }
    gathering.candidates.removeAll {
      $0.candidate.tcpType == .active && !addresses.contains($0.base.ip)
    }
    openSockets(on: addresses)
  }
}
