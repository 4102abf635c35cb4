extension SignalingProtocols {
  /// All supported room protocols.
  package static var all: SignalingProtocols {
    var protocols = SignalingProtocols()
    protocols.add(JanusMachine.self)
    protocols.add(RetakeRoomMachine.self)
    protocols.add(SoraMachine.self)
    protocols.add(WHIPMachine.self)
    protocols.add(WHEPMachine.self)
    return protocols
  }
}
