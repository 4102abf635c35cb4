import ICE
import JSEP
import Lab
import Peer
import Wire

// Further faults of signaling and servers.
extension FaultyCall {
  /// Prepares a fault in the descriptions or credentials that both ends exchange; returns false if
  /// the planned fault is of another kind.
  mutating func prepareAgreements() -> Bool {
    let plan = plan
    switch plan.kind {
    case .wrongRoles:
      length = chance.within(9_000...16_000)
      let isClient = chance.isOne(in: 2)
      words = "both are \(isClient ? "client" : "server") of DTLS"
      // The answer chooses the DTLS role that the offer leaves open (RFC 8842 section 5); the
      // middlebox changes the choice for one end.
      setup.edit = { place, sdp in
        if place == 0 { return isClient ? FaultyCall.role(sdp, "passive") : sdp }
        return FaultyCall.role(sdp, isClient ? "passive" : "active")
      }
    case .wrongMapping:
      length = chance.within(9_000...14_000)
      words = "the numbers of VP8 and VP9 are exchanged for one end"
      setup.edit = { _, sdp in FaultyCall.exchanged(sdp, "VP8/90000", "VP9/90000") }
      setup.cameras = [true, true]
    case .wrongPassword:
      length = chance.within(9_000...24_000)
      words = "ice-pwd other than its peer's"
      let number = setup.offerer == plan.culprit ? 0 : 1
      setup.edit = { place, sdp in place == number ? FaultyCall.otherPassword(sdp) : sdp }
    case .candidatesLost:
      length = chance.within(9_000...24_000)
      words = "no candidate of either reaches the other"
      setup.edit = { _, sdp in FaultyCall.without("a=candidate:", sdp) }
    case .relayExpires, .serverSilent: prepareServer()
    default: return false
    }
    return true
  }

  private mutating func prepareServer() {
    guard let address = SocketAddress("203.0.113.1:3478") else { return }
    let plan = plan
    var configuration = ICEServerConfiguration(urls: ["turn:203.0.113.1:3478"])
    (configuration.username, configuration.credential) = ("user", "password")
    setup.configurations[plan.culprit].iceServers = [configuration]
    setup.configurations[plan.culprit].iceTransportPolicy = .relay
    setup.gathering = .milliseconds(800)
    guard plan.kind == .relayExpires else {
      words = "a TURN server that answers nothing"
      length = chance.within(14_000...34_000)
      return
    }
    var server = VirtualTURNServer(address: address)
    server.lifetimeSeconds = UInt32(chance.within(10...16))
    setup.server = server
    words = "the server knows another password from \(plan.from) ms on"
    length = plan.from + plan.length + 16_000
    arrange = { $0.at(plan.from) { $0.call.network.server?.password = "another" } }
  }

  private static func edited(_ sdp: String, _ edit: (Substring) -> String?) -> String {
    sdp.split(separator: "\r\n", omittingEmptySubsequences: false).compactMap(edit)
      .joined(separator: "\r\n")
  }

  private static func role(_ sdp: String, _ role: String) -> String {
    edited(sdp) { $0.hasPrefix("a=setup:") ? "a=setup:\(role)" : String($0) }
  }

  private static func otherPassword(_ sdp: String) -> String {
    edited(sdp) { line in
      guard line.hasPrefix("a=ice-pwd:") else { return String(line) }
      return line.dropLast() + (line.hasSuffix("a") ? "b" : "a")
    }
  }

  private static func without(_ head: String, _ sdp: String) -> String {
    edited(sdp) { $0.hasPrefix(head) ? nil : String($0) }
  }

  /// Returns the description with two codecs' payload types exchanged.
  private static func exchanged(_ sdp: String, _ one: String, _ other: String) -> String {
    edited(sdp) { line in
      guard line.hasPrefix("a=rtpmap:") else { return String(line) }
      if line.hasSuffix(" \(one)") { return line.dropLast(one.count) + other }
      if line.hasSuffix(" \(other)") { return line.dropLast(other.count) + one }
      return String(line)
    }
  }
}
