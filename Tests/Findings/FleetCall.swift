import AudioSession
import FaultyCalls
import Foundation
import Lab
import Media
import Peer
import Room
import Tape
import Wire

/// Who made a take, and from what.
enum FleetKind: Hashable, CaseIterable {
  case bothEnds, oneEnd, device, room, observed, observedWithoutKeys
  case imported(OtherStack)

  static var allCases: [FleetKind] {
    [.bothEnds, .oneEnd, .device, .room, .observed, .observedWithoutKeys]
      + OtherStack.allCases.map(Self.imported)
  }

  /// Draws a kind, with these probabilities in per cent: both ends 25, one end 40, an end with its
  /// device 3, rooms 10, observed calls 12 (a third of them without keys), other stacks' files 10.
  static func drawn(_ chance: Chance) -> FleetKind {
    switch chance.below(100) {
    case ..<25: .bothEnds
    case ..<65: .oneEnd
    case ..<68: .device
    case ..<78: .room
    case ..<86: .observed
    case ..<90: .observedWithoutKeys
    default: .imported(OtherStack.allCases[chance.below(OtherStack.allCases.count)])
    }
  }

  var name: String {
    switch self {
    case .bothEnds: "both ends of a call"
    case .oneEnd: "one end of a call"
    case .device: "one end with its audio session"
    case .room: "a participant of a room"
    case .observed: "an observed call"
    case .observedWithoutKeys: "an observed call without its keys"
    case .imported(let stack): "another stack's file, \(stack.rawValue)"
    }
  }
}

/// A call of a fleet, whose kind, cameras, direction, quality and recorder are drawn at random.
struct FleetCall {
  let kind: FleetKind

  private static let dayNanoseconds: Int64 = 86_400_000_000_000

  private let number: Int
  private let seed: UInt64
  private let chance: Chance
  private var setup: CallSetup
  private var isRelayed = false

  init(_ number: Int, day: Int, seed: UInt64) {
    self.number = number
    self.seed = seed
    chance = Chance(seed &* 1_000_003 &+ UInt64(number), "fleet")
    kind = .drawn(chance)
    setup = CallSetup(chance)
    let isVideo = chance.isOne(in: 4)
    setup.cameras = [isVideo, isVideo && chance.isOne(in: 2)]
    setup.hasData = chance.isOne(in: 6)
    setup.recorded = kind == .bothEnds ? nil : chance.below(2)
    isRelayed = (kind == .bothEnds || kind == .oneEnd) && chance.isOne(in: 4)
    if isRelayed { relay() }
    // Two in five paths have loss; the newer build and one site have more of it.
    let site = ["berlin", "osaka", "lima", "cairo", "perth"][chance.below(5)]
    let build = "\(40 + day / 10)"
    var loss = chance.below(5) < 2 ? chance.within(5...120) : 0
    if site == "lima" { loss += chance.within(10...60) }
    for link in 0..<2 {
      setup.links[link].lossPerMille = UInt64(loss)
      setup.links[link].delay = .milliseconds(Int64(chance.within(8...180)))
    }
    setup.jitter = [chance.below(40), chance.below(40)]
    setup.label = String(format: "call %05d", number)
    setup.tags = [
      "site": site, "build": build, "network": ["wifi", "cellular", "ethernet"][chance.below(3)],
    ]
    let second = Int64(chance.within(0...86_000))
    setup.unixNanoseconds =
      labEpoch + Int64(day) * Self.dayNanoseconds + second * 1_000_000_000
  }

  private var callSeed: UInt64 { seed &* 31 &+ UInt64(number) }

  /// Restricts both peers to relayed candidates of a virtual TURN server.
  private mutating func relay() {
    guard let address = SocketAddress("203.0.113.1:3478") else { return }
    setup.server = VirtualTURNServer(address: address)
    let server = ICEServerConfiguration(
      urls: ["turn:203.0.113.1:3478"], username: "user", credential: "password")
    for peer in 0..<2 {
      setup.configurations[peer].iceServers = [server]
      setup.configurations[peer].iceTransportPolicy = .relay
    }
    setup.gathering = .milliseconds(800)
  }

  func make(_ path: String, with retake: String) throws {
    switch kind {
    case .room: return try meet(path)
    case .device: return try speakIntoDevice(path)
    default: break
    }
    let driven = try DrivenCall(path: path, seed: callSeed, setup: setup, chance: chance)
    driven.begin()
    driven.run(until: chance.within(1_500...3_500) + (isRelayed ? 1_600 : 0))
    try driven.finish()
    let options =
      ["--label", setup.label]
      + setup.tags.sorted { $0.key < $1.key }.flatMap { ["--tag", "\($0.key)=\($0.value)"] }
    switch kind {
    case .observed, .observedWithoutKeys:
      try WireSight.replace(
        path, with: retake, hasKeys: kind == .observed, options: options)
    case .imported(let stack): try stack.replace(path, with: retake, options: options)
    default: break
    }
  }

  // MARK: Rooms

  /// A meeting of three, one of whom joins later and may leave again.
  private func meet(_ path: String) throws {
    let isVideo = setup.cameras[0]
    let room = try VirtualRoomCall(
      path: path, seed: callSeed, links: setup.links, configuration: setup.configurations[0],
      signalingDelay: setup.links[0].delay, label: setup.label, tags: setup.tags,
      unixNanoseconds: setup.unixNanoseconds)
    let voice = LocalMediaInfo(id: LocalMediaID(1), kind: .audio)
    let camera = LocalMediaInfo(id: LocalMediaID(2), kind: .video)
    room.call(.publish(isVideo ? [voice, camera] : [voice]))
    let ben = VirtualRoomCall.Guest(
      id: "ben", name: "Ben",
      media: [RoomMedia(number: 40, kind: .audio)]
        + (isVideo ? [RoomMedia(number: 41, kind: .video)] : []))
    let carl = VirtualRoomCall.Guest(
      id: "carl", name: "Carl", media: [RoomMedia(number: 50, kind: .audio)])
    room.join("Anna", with: [ben])
    room.at(.milliseconds(1_200)) { room in
      let videos = room.snapshot.participants.flatMap(\.media).filter { $0.kind == .video }
      for video in videos where video.owner == ben.id { room.call(.subscribe(video.id)) }
    }
    room.at(.milliseconds(1_600)) { $0.enter(carl) }
    if setup.hasData {
      room.at(.milliseconds(2_000)) { room in
        room.call(.sendMessage(UserMessage(targets: [ben.id], text: "can you hear me?")))
        room.notify(.message(UserMessage(sender: ben.id, targets: ["me"], text: "yes")))
      }
    }
    if chance.isOne(in: 2) { room.at(.milliseconds(2_600)) { $0.leave(carl.id, .timedOut) } }
    room.run(until: .zero + .milliseconds(Int64(chance.within(3_000...4_500))))
    _ = try room.finish()
  }

  // MARK: Devices

  /// 60 ms, the duration that an audio session requests.
  private static let deviceFrames = 2_880

  /// A call whose microphone and loudspeaker belong to an audio session, which another application
  /// may interrupt.
  private func speakIntoDevice(_ path: String) throws {
    let recorded = try RecordedVirtualCall(
      path: path, seed: callSeed, links: setup.links, labels: ["alice", "bob"],
      label: setup.label, tags: setup.tags, configurations: setup.configurations, only: 0,
      unixNanoseconds: setup.unixNanoseconds)
    recorded.call.keepsHistory = false
    recorded.call.addMedia(audio: .application, from: [0])
    recorded.call.addMedia(audio: .tone(hertz: 440, pauseSeconds: 2), from: [1])
    recorded.call.negotiate()
    let line = VirtualAudioCall(
      recorded.audioSession(label: "device"), recorded.call, peer: 0, transceiver: 1)
    line.session.call(.openConnection(1, sends: true, receives: true))
    let isInterrupted = chance.isOne(in: 3)
    let tone = (0..<Self.deviceFrames).map { Int16($0 * 53 % 9_001 - 4_500) }
    for period in 0..<chance.within(25...55) {
      if isInterrupted, period == 14 { line.session.handle(.interruptionBegan) }
      if isInterrupted, period == 22 {
        line.session.handle(.interruptionEnded(shouldResume: true))
      }
      line.deliver(PCMChunk(samples: tone, sampleRate: 48_000))
      line.session.pull(6)
      if period % 16 == 15 { recorded.call.call(0, .getStats()) }
      line.run(for: .milliseconds(60))
    }
    line.session.call(.closeConnection(1))
    line.session.call(.readCounters)
    _ = try recorded.finish()
  }
}
