import Secure
import Wire

// DTLS: associations, their states, and the keys and SCTP packets that come of them.
extension Observer {
  /// Whether a datagram begins with a ClientHello or a fragment of one (RFC 6347 section 4.2).
  static func beginsAssociation(_ bytes: [UInt8]) -> Bool {
    bytes.count > 25 && bytes[0] == 22 && bytes[1] == 0xfe && bytes[13] == 1
  }

  mutating func receiveDTLS(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    var found = table.find(tuple)
    if found == nil {
      // A ClientHello begins a call where checks were not captured, if it offers SRTP.
      guard Self.beginsAssociation(bytes), !isTruncated else { return ignore() }
      let packet = CallGate.Admitted(
        tuple: tuple, bytes: bytes, isTruncated: false, at: now, ecn: mark)
      guard case .call(let packets) = helloTrials.consider(packet) else { return ignore() }
      found = placeUnannounced(tuple, isRelayed)
      if found != nil, packets.count > 1 { return receive(waited: packets, isRelayed: isRelayed) }
      if found == nil { return ignore() }
    }
    guard let (path, from) = found,
      count(bytes, on: path, from: from, isRelayed: isRelayed)
    else { return }
    let index = table.paths[path].transportIndex
    transports[index].noteBeginning()
    recordMedia(on: path, from: from, isMedia: false)
    guard !isTruncated else { return tell(.truncated, transport: index + 1) }
    settle(index, .protected)
    dtlsEvents.removeAll(keepingCapacity: true)
    transports[index].dtls.take(bytes, from: from, keys.log, into: &dtlsEvents)
    handleDTLSEvents(index, path)
  }

  /// Tells what DTLS brought.
  mutating func handleDTLSEvents(_ index: Int, _ path: Int) {
    var events: [DTLSFollower.Event] = []
    swap(&events, &dtlsEvents)
    for event in events {
      switch event {
      case .facts(let facts):
        emit(.handshake(transport: index + 1, facts))
        moveDTLS(index, facts.client, to: .connecting)
        if facts.serverRandom != nil { moveDTLS(index, 1 - facts.client, to: .connecting) }
        if let profile = facts.profile, SRTPSuite(profile) == nil {
          tell(.unsupported, transport: index + 1, detail: "SRTP profile \(profile.rawValue)")
        }
      case .connected:
        for end in 0..<2 { moveDTLS(index, end, to: .connected) }
      case .srtpKeys(let profile, let keys): install(profile, keys, index)
      case .data(let from, let bytes):
        emit(
          .packet(
            ObservedPacket(
              kind: .sctp, transport: index + 1, from: from,
              pair: table.paths[path].pair.number, at: now, bytes: bytes, isClear: true,
              wireSize: bytes.count)))
      case .alert(let end, let description): receiveAlert(description, index, end)
      }
    }
  }

  /// An alert: close_notify, or anything else, which ends the association (RFC 8446 section 6).
  private mutating func receiveAlert(_ description: UInt8?, _ index: Int, _ end: Int) {
    let state = transports[index].dtlsStates.state(after: description, of: end)
    moveDTLS(index, end, to: state)
    if state == .closed { emit(transports[index].checks.close(end), index) }
  }

  private mutating func moveDTLS(_ index: Int, _ end: Int, to state: DTLSTransportState) {
    guard let old = transports[index].dtlsStates.move(end, to: state) else { return }
    emit(
      .state(
        ObservedState(
          transport: index + 1, end: end, machine: "dtls", from: old.rawValue, to: state.rawValue))
    )
  }
}
