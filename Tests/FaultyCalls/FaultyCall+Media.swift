import JSEP
import Lab
package import Media
import Peer
import SCTP
import SDP
package import Wire

// Faults in media before it is sent.
extension FaultyCall {
  /// Prepares a fault of a source, an encoder or the negotiated media; returns false if the planned
  /// fault is of another kind.
  mutating func prepareMedia() -> Bool {
    switch plan.kind {
    case .cameraStops, .cameraRepeats, .cameraBlack, .silentMicrophone, .clippedMicrophone,
      .mutedSpeaker:
      prepareSource()
    case .bandwidthLine, .maxBitrate, .layerEnds, .codecChanges: prepareEncoder()
    case .audioVideoApart:
      let (plan, delay) = (plan, plan.scaled(320, 900))
      words = "the picture comes \(delay) ms later"
      setup.isOneStream = false
      length = 18_000
      arrange = { driven in
        driven.box.treat = { sender, content, bytes, _ in
          sender == plan.culprit && (content == .video || content == .repair)
            ? [(bytes, .milliseconds(Int64(delay)))] : nil
        }
      }
    case .dataBehindLoss: prepareData()
    default: return false
    }
    return true
  }

  private mutating func prepareSource() {
    let (plan, chance) = (plan, chance)
    let isToTheEnd = chance.isOne(in: 2)
    if isToTheEnd { length = plan.from + plan.length }
    words = isToTheEnd ? "for \(plan.length) ms, to the end" : "for \(plan.length) ms"
    func camera(_ state: Camera.State) -> (DrivenCall) -> Void {
      { driven in
        driven.at(plan.from) { $0.cameras[plan.culprit]?.state = state }
        driven.at(plan.from + plan.length) { $0.cameras[plan.culprit]?.state = .good }
      }
    }
    switch plan.kind {
    case .cameraStops: arrange = camera(.stopped)
    case .cameraRepeats: arrange = camera(.stuck)
    case .cameraBlack: arrange = camera(.black)
    case .silentMicrophone:
      words = "from the beginning"
      length = plan.length
      arrange = { $0.microphones[plan.culprit]?.state = .silent }
    case .clippedMicrophone:
      let gain = plan.scaled(50, 200)
      words += ", \(gain / 10) times too loud"
      arrange = { driven in
        driven.microphones[plan.culprit] = Microphone(chance, gain: gain)
        driven.at(plan.from) {
          $0.microphones[plan.culprit]?.state = .clipped
          $0.box.seen = $0.blocksSpoken[plan.culprit]
        }
        driven.at(plan.from + plan.length) {
          $0.microphones[plan.culprit]?.state = .good
          $0.box.touched = $0.blocksSpoken[plan.culprit] - $0.box.seen
        }
      }
      if isToTheEnd { length += 1_000 }
      // Two seconds of speech.
      isTouched = { $0.box.touched >= 100 }
    default:
      arrange = { driven in
        driven.at(plan.from) {
          $0.setEnabled(.audio, of: plan.culprit, false)
          $0.box.seen = $0.blocksSpoken[plan.culprit]
        }
        driven.at(plan.from + plan.length) {
          $0.setEnabled(.audio, of: plan.culprit, true)
          $0.box.touched = $0.blocksSpoken[plan.culprit] - $0.box.seen
        }
      }
      if isToTheEnd { length += 1_000 }
      // A second of speech.
      isTouched = { $0.box.touched >= 50 }
    }
  }

  private mutating func prepareEncoder() {
    let (plan, chance) = (plan, chance)
    let rate = plan.scaled(110, 40)
    switch plan.kind {
    case .bandwidthLine:
      words = "b=AS:\(rate) of the receiver"
      // Changes the description that the culprit receives.
      let number = setup.offerer == plan.culprit ? 1 : 0
      setup.edit = { place, sdp in
        place == number ? FaultyCall.limited(sdp, kilobits: rate) : sdp
      }
      length = chance.within(12_000...18_000)
    case .maxBitrate:
      words = "maxBitrate of \(rate) kbit/s"
      arrange = { driven in
        driven.at(plan.from) { $0.limit(.video, of: plan.culprit, to: UInt64(rate) * 1_000) }
      }
    case .layerEnds:
      words = "the largest of three"
      setup.encodings = [
        RTPEncoding(rid: "q", scaleResolutionDownBy: 4),
        RTPEncoding(rid: "h", scaleResolutionDownBy: 2), RTPEncoding(rid: "f"),
      ]
      setup.offerer = plan.culprit
      setup.cameras = [plan.culprit == 0, plan.culprit == 1]
      let takes = VirtualCall.accepting("q;h;f")
      setup.edit = { place, sdp in place == 1 ? takes(sdp) : sdp }
      arrange = { driven in
        driven.at(plan.from) { driven in
          driven.change(.video, of: plan.culprit) { $0[2].active = false }
        }
      }
    default:
      words = "from VP8 to VP9"
      arrange = { driven in
        driven.at(plan.from) { $0.prefer("VP9", of: plan.culprit) }
      }
    }
  }

  private mutating func prepareData() {
    let (plan, chance) = (plan, chance)
    let share = plan.scaled(120, 350)
    words = "messages over a path that loses \(share / 10) %"
    setup.hasData = true
    setup.cameras = [false, false]
    setup.microphones = [false, false]
    setup.offerer = plan.culprit
    arrange = { driven in
      driven.call.network.links[plan.culprit].lossPerMille = 0
      driven.at(plan.from) {
        $0.call.network.links[plan.culprit].lossPerMille = UInt64(share)
      }
      driven.at(plan.from + plan.length) { $0.call.network.links[plan.culprit].lossPerMille = 0 }
      for number in 0..<((plan.from + plan.length) / 60) {
        driven.at(1_000 + number * 60) {
          let bytes = [UInt8](repeating: UInt8(number & 255), count: chance.within(100...1_100))
          $0.call.send(plan.culprit, DataMessage(channel: 0, isBinary: true, bytes: bytes))
        }
      }
    }
    isTouched = { $0.call.network.lost >= 12 }
  }

  /// Returns the description with a limit for video (RFC 8866 section 5.8).
  static func limited(_ sdp: String, kilobits: Int) -> String {
    var isVideo = false
    return sdp.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
      if line.hasPrefix("m=") { isVideo = line.hasPrefix("m=video ") }
      return isVideo && line.hasPrefix("c=") ? "\(line)\r\nb=AS:\(kilobits)" : String(line)
    }.joined(separator: "\r\n")
  }
}

extension DrivenCall {
  package func setEnabled(_ kind: MediaKind, of peer: Int, _ isEnabled: Bool) {
    guard let track = transceivers[peer][kind] else { return }
    call.call(
      peer, .setEnabled(transceiver: track, isInbound: false, isEnabled: isEnabled))
  }

  /// Limits a track's bit rate, as its application may.
  package func limit(_ kind: MediaKind, of peer: Int, to bitsPerSecond: UInt64) {
    change(kind, of: peer) { $0[0].maxBitrate = bitsPerSecond }
  }

  /// Replaces the source of the peer's sent track; nil removes the track.
  package func replace(_ kind: MediaKind, of peer: Int, by source: MediaSource?) {
    guard let track = transceivers[peer][kind] else { return }
    call.call(peer, .replaceSource(transceiver: track, source))
  }

  package func hint(_ hint: ContentHint, of peer: Int) {
    guard let track = transceivers[peer][.video] else { return }
    call.call(peer, .setContentHint(transceiver: track, hint))
  }

  /// Makes a peer offer a single video codec, with its retransmissions.
  package func prefer(_ codec: String, of peer: Int) {
    guard let track = transceivers[peer][.video] else { return }
    let codecs = RTPCodec.capabilities(.video)
    let preferred =
      codecs.filter { $0.mimeType == "video/\(codec)" }
      + codecs.filter { $0.mimeType == "video/rtx" }
    call.call(peer, .setCodecPreferences(transceiver: track, preferred))
    negotiate(from: peer)
  }

  func change(_ kind: MediaKind, of peer: Int, _ change: (inout [RTPEncoding]) -> Void) {
    guard let track = transceivers[peer][kind],
      case .parameters(var parameters) = call.call(peer, .getParameters(transceiver: track))
    else { return }
    change(&parameters.encodings)
    call.call(peer, .setParameters(transceiver: track, parameters))
  }
}
