import ICE
import JSEP
import Lab
import Media
import Peer
import SDP
import Wire

// Faults that keep a call from connecting, or from carrying its media.
extension FaultyCall {
  /// Prepares a fault of the connection; returns false if the planned fault is of another kind.
  mutating func prepareConnection() -> Bool {
    let (plan, chance) = (plan, chance)
    switch plan.kind {
    case .turnRefused: prepareTURN()
    case .wrongFingerprint:
      words = "one byte of it"
      length = chance.within(9_000...14_000)
      // Changes the culprit's description, as the victim receives it.
      let number = setup.offerer == plan.culprit ? 0 : 1
      setup.edit = { place, sdp in place == number ? FaultyCall.otherFingerprint(sdp) : sdp }
    case .noPair:
      length = chance.within(12_000...34_000)
      words = "nothing passes between the peers"
      arrange = { $0.call.network.passes = { _, _ in false } }
    case .unresolvedName:
      length = chance.within(12_000...34_000)
      words = "names that nobody resolves"
      for peer in 0..<2 { setup.configurations[peer].iceAddressPrivacy = .names }
      arrange = { $0.call.resolvesNames = false }
    case .rejectedSection:
      length = chance.within(8_000...12_000)
      setup.offerer = plan.culprit
      setup.configurations[plan.culprit].codecs = ["opus", "VP8"]
      setup.configurations[plan.victim].codecs = ["opus", "VP9"]
      setup.cameras = [plan.culprit == 0, plan.culprit == 1]
      words = "no codec of the video in common"
    case .inactiveDirection:
      length = chance.within(9_000...13_000)
      setup.offerer = plan.culprit
      let kind = chance.isOne(in: 2) ? "audio" : "video"
      words = "\(kind) inactive in the answer"
      setup.edit = { place, sdp in
        place == 1 ? FaultyCall.turned(sdp, kind: kind, to: "inactive") : sdp
      }
    case .slowHandshake:
      let most = plan.scaled(1_400, 6_000)
      words = "no DTLS of one end for \(most) ms"
      length = most + chance.within(7_000...9_000)
      arrange = { driven in
        driven.box.treat = { sender, content, _, now in
          guard sender == plan.culprit, content == .dtls,
            now.nanoseconds < Int64(most) * 1_000_000
          else { return nil }
          driven.box.touched += 1
          return []
        }
      }
      isTouched = { $0.box.touched >= 2 }
    case .unansweredRestart:
      length = plan.from + chance.within(11_000...15_000)
      words = "an offer that restarts ICE without an answer"
      arrange = { driven in
        driven.at(plan.from) {
          $0.call.call(plan.culprit, .restartICE)
          $0.call.call(plan.culprit, .setLocalDescription(nil))
          $0.signalOffer(of: plan.culprit)
        }
      }
    case .noRepairs:
      let share = plan.scaled(40, 140)
      words = "\(share / 10) % of video, no NACK agreed on"
      setup.edit = { _, sdp in FaultyCall.withoutRepairs(sdp) }
      lose([.video], perMille: share, minimum: 12, share: 0)
    case .renegotiations:
      let count = plan.scaled(8, 24)
      words = "\(count) negotiations"
      arrange = { driven in
        for number in 0..<count {
          driven.at(plan.from + number * 300) { driven in
            if let track = driven.transceivers[plan.culprit][.audio] {
              let direction: TransceiverDirection = number % 2 == 0 ? .sendonly : .sendrecv
              driven.call.call(plan.culprit, .setDirection(transceiver: track, direction))
            }
            driven.negotiate(from: plan.culprit)
          }
        }
      }
    case .switchedOff: prepareSwitchedOff()
    default: return false
    }
    return true
  }

  /// Prepares a negotiation that switches off an end's media and that no later negotiation
  /// reverses.
  private mutating func prepareSwitchedOff() {
    let plan = plan
    let kind: MediaKind = chance.isOne(in: 2) ? .audio : .video
    let direction: TransceiverDirection = chance.isOne(in: 2) ? .inactive : .recvonly
    words = "\(kind) becomes \(direction)"
    length = plan.from + plan.length
    setup.cameras = [true, true]
    arrange = { driven in
      driven.at(plan.from) { driven in
        if let track = driven.transceivers[plan.culprit][kind] {
          driven.call.call(plan.culprit, .setDirection(transceiver: track, direction))
        }
        driven.negotiate(from: plan.culprit)
      }
    }
  }

  private mutating func prepareTURN() {
    guard let address = SocketAddress("203.0.113.1:3478") else { return }
    var server = VirtualTURNServer(address: address)
    var configuration = ICEServerConfiguration(urls: ["turn:203.0.113.1:3478"])
    (configuration.username, configuration.credential) = ("user", "password")
    switch chance.below(3) {
    case 0:
      words = "a wrong password"
      configuration.credential = "passwort"
    case 1:
      words = "quota reached"
      server.refusal = STUNErrorCode(code: 486, reason: "Allocation Quota Reached")
    default:
      words = "forbidden"
      server.refusal = .forbidden
    }
    setup.server = server
    setup.gathering = .milliseconds(800)
    setup.configurations[plan.culprit].iceServers = [configuration]
    setup.configurations[plan.culprit].iceTransportPolicy = .relay
    length = chance.within(12_000...34_000)
  }

  private static func lines(_ sdp: String) -> [Substring] {
    sdp.split(separator: "\r\n", omittingEmptySubsequences: false)
  }

  /// Returns the description with the last digit of its fingerprint changed.
  static func otherFingerprint(_ sdp: String) -> String {
    lines(sdp).map { line in
      guard line.hasPrefix("a=fingerprint:") else { return String(line) }
      return line.dropLast() + (line.hasSuffix("0") ? "1" : "0")
    }.joined(separator: "\r\n")
  }

  /// Returns the description with one media kind's direction changed.
  static func turned(_ sdp: String, kind: String, to direction: String) -> String {
    var isOf = false
    return lines(sdp).map { line in
      if line.hasPrefix("m=") { isOf = line.hasPrefix("m=\(kind) ") }
      let isDirection = ["a=sendrecv", "a=sendonly", "a=recvonly"].contains(line)
      return isOf && isDirection ? "a=\(direction)" : String(line)
    }.joined(separator: "\r\n")
  }

  /// Returns the description without the RTX formats and the generic NACK that requests them.
  static func withoutRepairs(_ sdp: String) -> String {
    lines(sdp).filter { line in
      !(line.hasPrefix("a=rtcp-fb:") && line.hasSuffix(" nack")) && !line.contains(" rtx/")
        && !line.contains("apt=")
    }.joined(separator: "\r\n")
  }
}

extension DrivenCall {
  /// Reports a peer's local offer to its signaling, which never delivers it.
  func signalOffer(of peer: Int) {
    guard case .description(let offer) = call.call(peer, .localDescription) else { return }
    call.step(
      peer,
      .signaling(
        SignalingMessage(
          isInbound: false, transport: "virtual", type: offer.type.rawValue, message: offer.sdp)))
  }
}
