import JSEP
import Lab
import Media
import Peer
import SCTP
package import Tape
import Wire

/// The usual kinds of calls without faults.
package enum GoodKind: String, CaseIterable, Sendable {
  case discontinuous, sharedScreen, hold, recvonly, restart, glare, twoSpeakers, muted, lateJoin
  case dataOnly, cameraOff
}

/// Makes calls without faults.
package struct GoodCall {
  private let kind: GoodKind
  private let chance: Chance
  private var setup: CallSetup
  private let seed: UInt64

  package static func make(_ kind: GoodKind, seed: UInt64, path: String) throws(TapeError) {
    let good = GoodCall(kind, seed)
    let driven = try DrivenCall(path: path, seed: seed, setup: good.setup, chance: good.chance)
    good.run(driven)
    try driven.finish()
  }

  private init(_ kind: GoodKind, _ seed: UInt64) {
    (self.kind, self.seed) = (kind, seed)
    chance = Chance(seed, "good \(kind.rawValue)")
    setup = CallSetup(chance)
    setup.recorded = [nil, 0, 1][chance.below(3)]
    // Even a good path sometimes loses a packet.
    for link in 0..<2 { setup.links[link].lossPerMille = UInt64(chance.below(3)) }
    switch kind {
    case .discontinuous, .twoSpeakers:
      setup.cameras = [false, false]
      setup.isConversation = kind == .twoSpeakers
    case .sharedScreen: setup.cameras = [false, false]
    case .recvonly:
      setup.cameras[setup.offerer] = false
      setup.microphones[setup.offerer] = false
    case .dataOnly:
      (setup.cameras, setup.microphones) = ([false, false], [false, false])
      setup.hasData = true
    default: break
    }
  }

  private func run(_ driven: DrivenCall) {
    let seconds = chance.within(12...20)
    let (call, offerer) = (driven.call, setup.offerer)
    switch kind {
    case .discontinuous:
      driven.microphones = [nil, nil]
      for peer in 0..<2 {
        call.call(peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .application))
      }
      driven.begin()
      talk(driven, seconds: seconds)
    case .sharedScreen: share(driven, seconds: seconds)
    case .recvonly:
      for kind in [MediaKind.audio, .video] {
        call.call(
          offerer, .addTransceiver(kind: kind, direction: .recvonly, streamIDs: [], source: nil))
      }
      driven.begin()
    case .dataOnly:
      for number in 0..<40 {
        driven.at(1_000 + number * 200) {
          let bytes = [UInt8](repeating: 7, count: 40 + number * 9)
          $0.call.send(offerer, DataMessage(channel: 0, isBinary: true, bytes: bytes))
        }
      }
      driven.begin()
    case .lateJoin:
      let camera = driven.cameras[1 - offerer]
      driven.cameras[1 - offerer] = nil
      driven.begin()
      driven.at(chance.within(4_000...7_000)) { $0.join(1 - offerer, camera) }
    default:
      driven.begin()
      plan(driven)
    }
    driven.run(until: seconds * 1_000)
  }

  /// Schedules the events in a call that started as usual.
  private func plan(_ driven: DrivenCall) {
    let peer = chance.below(2)
    let from = chance.within(3_000...5_000)
    let to = from + chance.within(3_000...6_000)
    switch kind {
    case .hold:
      for (at, direction) in [(from, TransceiverDirection.inactive), (to, .sendrecv)] {
        driven.at(at) { driven in
          for track in driven.transceivers[peer].values.sorted() {
            driven.call.call(peer, .setDirection(transceiver: track, direction))
          }
          driven.negotiate(from: peer)
        }
      }
    case .restart:
      for at in [from, to] {
        driven.at(at) {
          $0.call.call(peer, .restartICE)
          $0.negotiate(from: peer)
        }
      }
    case .glare:
      driven.at(from) { driven in
        let call = driven.call
        for side in 0..<2 { call.call(side, .setLocalDescription(nil)) }
        guard case .description(let offer) = call.call(1 - peer, .localDescription) else { return }
        // The polite side rolls its offer back.
        call.call(peer, .setRemoteDescription(offer))
        call.call(peer, .setLocalDescription(nil))
        guard case .description(let answer) = call.call(peer, .localDescription) else { return }
        call.call(1 - peer, .setRemoteDescription(answer))
      }
    case .muted:
      for (at, isEnabled) in [(from, false), (to, true)] {
        driven.at(at) {
          // A muted participant is silent.
          $0.microphones[peer]?.isResting = !isEnabled
          $0.setEnabled(.audio, of: peer, isEnabled)
          $0.setEnabled(.video, of: peer, isEnabled)
        }
      }
    case .cameraOff:
      for (at, source) in [(from, nil), (to, MediaSource.application)] {
        driven.at(at) { driven in
          guard let track = driven.transceivers[peer][.video] else { return }
          driven.call.call(peer, .replaceSource(transceiver: track, source))
        }
      }
    default: break
    }
  }

  /// Lets the two participants speak alternately; the listener sends only one block in twenty, as
  /// with DTX.
  private func talk(_ driven: DrivenCall, seconds: Int) {
    var voices = [Microphone(chance), Microphone(chance)]
    var speaker = chance.below(2)
    var left = chance.within(60...160)
    for block in 0..<(seconds * 50) {
      driven.run(until: block * 20 + 20)
      for peer in 0..<2 where peer == speaker || block % 20 == 0 {
        let audio = voices[peer].next(isSpeaking: peer == speaker)
        driven.call.step(peer, .captured(transceiver: 1, .audio(audio)))
      }
      left -= 1
      if left == 0 { (speaker, left) = (1 - speaker, chance.within(60...160)) }
    }
  }

  /// Lets the offerer share a screen whose picture seldom changes.
  private func share(_ driven: DrivenCall, seconds: Int) {
    let peer = setup.offerer
    let reply = driven.call.call(
      peer, .addTrack(kind: .video, streamIDs: ["screen"], source: .application))
    guard case .transceiver(let screen) = reply else { return }
    driven.call.call(peer, .setContentHint(transceiver: screen.id, .text))
    driven.begin()
    var at = 300
    var number = 0
    while at < seconds * 1_000 {
      let grey = UInt8(truncatingIfNeeded: 60 + number * 37)
      driven.at(at) { driven in
        let samples = [UInt8](repeating: grey, count: 160 * 120 * 3 / 2)
        let frame = I420Buffer(width: 160, height: 120, samples: samples)
        driven.call.step(peer, .captured(transceiver: screen.id, .videoFrame(frame)))
      }
      number += 1
      at += number < 15 ? 100 : chance.within(400...3_500)
    }
  }
}

extension DrivenCall {
  /// Lets a peer switch its camera on for the first time.
  func join(_ peer: Int, _ camera: Camera?) {
    cameras[peer] = camera
    addTrack(.video, to: peer)
    negotiate(from: peer)
  }
}
