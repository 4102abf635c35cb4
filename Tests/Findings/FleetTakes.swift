import FaultyCalls
import Foundation
import Lab
import Media
import Peer
import Wire

/// Makes the takes of a fleet: short calls of all kinds in virtual time, one folder a day over
/// thirty days, with the tags that a test farm would add.
///
/// Existing takes stay, so that an interrupted run continues where it stopped.
struct FleetTakes {
  let folder: String
  let seed: UInt64
  /// The program that makes takes from the wire.
  let retake: String

  private static let days = 30
  private static let dayNanoseconds: Int64 = 86_400_000_000_000
  /// One in this many calls becomes a take from the wire.
  private static let wireShare = 20

  /// Makes a shard's calls.
  func make(_ count: Int, shard: (number: Int, count: Int)) throws {
    let began = Date()
    var made = 0
    for number in 0..<count where number % shard.count == shard.number - 1 {
      let day = number % Self.days
      let name = String(format: "%02d", day + 1)
      let place = "\(folder)/day-\(name)"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let path = place + String(format: "/call-%05d.take", number)
      guard !FileManager.default.fileExists(atPath: path) else { continue }
      let unfinished = path + ".new"
      try? FileManager.default.removeItem(atPath: unfinished)
      try call(number, day: day, path: unfinished)
      try FileManager.default.moveItem(atPath: unfinished, toPath: path)
      made += 1
      if made.isMultiple(of: 100) { say("\(made) takes", began) }
    }
    say("\(made) takes in \(folder)", began)
  }

  private func say(_ text: String, _ began: Date) {
    print("\(text), \(Int(Date().timeIntervalSince(began))) s")
    fflush(nil)
  }

  /// Makes one call: its cameras, direction, quality and recorder are drawn.
  private func call(_ number: Int, day: Int, path: String) throws {
    let chance = Chance(seed &* 1_000_003 &+ UInt64(number), "fleet")
    var setup = CallSetup(chance)
    let isVideo = chance.isOne(in: 4)
    setup.cameras = [isVideo, isVideo && chance.isOne(in: 2)]
    setup.hasData = chance.isOne(in: 6)
    setup.recorded = [nil, 0, 1][chance.below(3)]
    let isRelayed = chance.isOne(in: 5)
    if isRelayed { relay(&setup) }
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
    let driven = try DrivenCall(
      path: path, seed: seed &* 31 &+ UInt64(number), setup: setup, chance: chance)
    driven.begin()
    driven.run(until: chance.within(1_500...3_500) + (isRelayed ? 1_600 : 0))
    try driven.finish()
    guard number % Self.wireShare == 7, setup.recorded != nil else { return }
    try WireSight.replace(
      path, with: retake,
      options: ["--label", setup.label]
        + setup.tags.sorted { $0.key < $1.key }.flatMap { ["--tag", "\($0.key)=\($0.value)"] })
  }

  /// Routes the call through a relay.
  private func relay(_ setup: inout CallSetup) {
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
}
