import JSEP
package import Lab
import Media
package import Peer
import SCTP
package import Tape
package import Wire

/// The settings that a call starts with.
package struct CallSetup {
  package var configurations = [PeerConfiguration(), PeerConfiguration()]
  package var links = [LinkSettings(), LinkSettings()]
  /// The maximum jitter of each peer's path, in milliseconds; packets stay in order.
  package var jitter = [0, 0]
  /// Which peers have a microphone, and which a camera.
  package var microphones = [true, true]
  package var cameras = [true, true]
  package var hasData = false
  /// Whether a peer's audio and video share a stream, in which case receivers synchronize them.
  package var isOneStream = true
  /// The peer that makes the offer.
  package var offerer = 0
  /// How signaling changes a description: the offer (0), then the answer (1).
  package var edit: (_ number: Int, _ sdp: String) -> String = { _, sdp in sdp }
  package var gathering = Interval.zero
  package var server: VirtualTURNServer?
  /// The peer behind a NAT; nil if there is none.
  package var hidden: Int?
  /// The recorded end; nil for both.
  package var recorded: Int?
  /// Whether the participants take turns speaking; else both are silent.
  package var isConversation = true
  /// The layers that the offerer sends instead of a single video; empty for a single video.
  package var encodings: [RTPEncoding] = []
  /// The take's label and tags, and the call's start time.
  package var label = ""
  package var tags: [String: String] = [:]
  package var unixNanoseconds = labEpoch

  package init(_ chance: Chance) {
    for index in 0..<2 {
      links[index].delay = .milliseconds(Int64(chance.within(8...55)))
      jitter[index] = chance.below(5)
      configurations[index].notices = PeerNotice.all
      // Sets the same values that a session sets for its peers.
      configurations[index].awaitsSlowPaths = true
      configurations[index].ignoresUnusedTransports = true
    }
    offerer = chance.below(2)
  }
}

/// A recorded call of two simulated participants, with microphones, cameras and statistics every
/// second.
package final class DrivenCall {
  package let recorded: RecordedVirtualCall
  package let box: Middlebox
  package let setup: CallSetup
  package let chance: Chance
  package var call: VirtualCall { recorded.call }
  package var microphones: [Microphone?] = []
  package var cameras: [Camera?] = []
  /// How slow each microphone's clock is, in millionths.
  package var clockSkew = [0, 0]
  /// The number of blocks in a thousand that each microphone loses.
  package var lostBlocks = [0, 0]
  /// The transceivers with which each peer sends.
  package private(set) var transceivers: [[MediaKind: UInt32]] = [[:], [:]]
  package private(set) var blocksSpoken = [0, 0]
  /// Why the negotiation failed.
  package private(set) var refusal: PeerError?

  private var nextAudio: [Instant]
  private var nextVideo: [Instant]
  private var nextStats = Instant.zero
  private var nextTurn = Instant.zero
  private var speaker: Int?
  private var actions: [(at: Instant, act: (DrivenCall) -> Void)] = []

  package init(path: String, seed: UInt64, setup: CallSetup, chance: Chance) throws(TapeError) {
    self.setup = setup
    self.chance = chance
    recorded = try RecordedVirtualCall(
      path: path, seed: seed, links: setup.links, labels: ["alice", "bob"],
      label: setup.label, tags: setup.tags, configurations: setup.configurations,
      only: setup.recorded, unixNanoseconds: setup.unixNanoseconds)
    let box = Middlebox(
      addresses: [IPAddress(ipv4: 0x0a00_0001), IPAddress(ipv4: 0x0a00_0002)],
      chance: Chance(seed, "box"))
    box.jitter = setup.jitter
    self.box = box
    nextAudio = [.zero, .zero]
    nextVideo = [.zero, .zero]
    recorded.call.keepsHistory = false
    recorded.call.network.server = setup.server
    if let hidden = setup.hidden {
      let inside = IPAddress(ipv4: 0x0a00_0001 + UInt32(hidden))
      let nat = VirtualNAT(.fullCone, address: IPAddress(ipv4: 0xc633_6409))
      recorded.call.network.hide(hidden, at: [inside], behind: nat)
    }
    recorded.call.network.box = { box.carry(from: $0, to: $1, $2, at: $3) }
    recorded.call.onEvent = { peer, event in box.learn(event, of: peer) }
    for peer in 0..<2 {
      microphones.append(setup.microphones[peer] ? Microphone(chance, gain: 60) : nil)
      cameras.append(setup.cameras[peer] ? Camera(chance) : nil)
    }
  }

  /// Adds the tracks that the setup describes, negotiates them, and starts the devices.
  package func begin() {
    let order = [setup.offerer, 1 - setup.offerer]
    for peer in order {
      if setup.hasData, peer == setup.offerer {
        call.call(peer, .createDataChannel(DataChannelInit(label: "chat")))
      }
      if microphones[peer] != nil { add(.audio, to: peer, stream: "voice") }
      if !setup.encodings.isEmpty, peer == setup.offerer {
        let id = call.addLayers(
          setup.encodings, .pattern(width: 320, height: 180, framesPerSecond: 15), from: peer)
        transceivers[peer][.video] = id
        cameras[peer] = nil
      }
      if cameras[peer] != nil {
        add(.video, to: peer, stream: setup.isOneStream ? "voice" : "camera")
      }
    }
    negotiate()
    (nextAudio, nextVideo) = ([call.now, call.now], [call.now, call.now])
    nextTurn = call.now
  }

  /// Adds an application's track to what a peer sends.
  package func addTrack(_ kind: MediaKind, to peer: Int) {
    add(kind, to: peer, stream: "voice")
    (nextAudio[peer], nextVideo[peer]) = (max(nextAudio[peer], call.now), call.now)
  }

  private func add(_ kind: MediaKind, to peer: Int, stream: String) {
    let reply = call.call(peer, .addTrack(kind: kind, streamIDs: [stream], source: .application))
    if case .transceiver(let transceiver) = reply { transceivers[peer][kind] = transceiver.id }
  }

  /// Exchanges an offer and its answer; the setup's `edit` changes both in transit.
  package func negotiate(from offerer: Int? = nil) {
    var number = 0
    let edit = setup.edit
    let from = offerer ?? setup.offerer
    refusal = call.negotiate(from: from, to: 1 - from, gatheringTime: setup.gathering) { sdp in
      defer { number += 1 }
      return edit(number, sdp)
    }
  }

  /// Schedules an action at a time in milliseconds since the call began.
  package func at(_ milliseconds: Int, _ act: @escaping (DrivenCall) -> Void) {
    let at = Instant.zero + .milliseconds(Int64(milliseconds))
    actions.insert((at, act), at: actions.firstIndex { $0.at > at } ?? actions.endIndex)
  }

  /// Runs the call up to a time in milliseconds since it began.
  package func run(until milliseconds: Int) {
    let end = Instant.zero + .milliseconds(Int64(milliseconds))
    while call.now < end {
      var next = min(end, nextStats)
      if let action = actions.first { next = min(next, action.at) }
      for peer in 0..<2 {
        if microphones[peer] != nil { next = min(next, due(nextAudio[peer], of: peer)) }
        if cameras[peer] != nil { next = min(next, due(nextVideo[peer], of: peer)) }
      }
      call.run(until: max(call.now, next))
      while let action = actions.first, action.at <= call.now {
        actions.removeFirst()
        action.act(self)
      }
      turn()
      for peer in 0..<2 where call.stalledUntil(peer) == nil {
        capture(peer)
        if nextStats <= call.now { call.call(peer, .getStats()) }
      }
      if nextStats <= call.now { nextStats = nextStats + .seconds(1) }
    }
  }

  /// Returns the earliest time, from `ideal` on, at which the peer's process is not stalled.
  private func due(_ ideal: Instant, of peer: Int) -> Instant {
    max(ideal, call.stalledUntil(peer) ?? ideal)
  }

  private func turn() {
    guard setup.isConversation, call.now >= nextTurn else { return }
    speaker = speaker == nil ? chance.below(2) : 1 - (speaker ?? 0)
    nextTurn = call.now + .milliseconds(Int64(chance.within(1_500...3_500)))
  }

  private func capture(_ peer: Int) {
    // After a stall, a device delivers at once the audio that it buffered, at most half a second.
    nextAudio[peer] = max(nextAudio[peer], call.now - .milliseconds(500))
    while microphones[peer] != nil, nextAudio[peer] <= call.now {
      let block = microphones[peer]?.next(isSpeaking: speaker == peer)
      if speaker == peer { blocksSpoken[peer] += 1 }
      let isLost = lostBlocks[peer] > 0 && chance.happens(perMille: lostBlocks[peer])
      if let block, !isLost, let track = transceivers[peer][.audio] {
        call.step(peer, .captured(transceiver: track, .audio(block)))
      }
      nextAudio[peer] =
        nextAudio[peer] + Interval(nanoseconds: 20_000_000 + Int64(20 * clockSkew[peer]))
    }
    while let rate = cameras[peer]?.rate, nextVideo[peer] <= call.now {
      // A device does not buffer frames, so only the last frame is captured.
      let isLast = nextVideo[peer] + Interval(nanoseconds: 1_000_000_000 / Int64(rate)) > call.now
      if isLast, let frame = cameras[peer]?.next(), let track = transceivers[peer][.video] {
        call.step(peer, .captured(transceiver: track, .videoFrame(frame)))
      }
      nextVideo[peer] = nextVideo[peer] + Interval(nanoseconds: 1_000_000_000 / Int64(rate))
    }
  }

  /// Completes the take, after any stalled process has continued.
  package func finish() throws(TapeError) {
    for peer in 0..<2 {
      if let until = call.stalledUntil(peer) { call.run(until: until + .milliseconds(1)) }
    }
    _ = try recorded.finish()
  }
}
