import Foundation
import Observer
import Tape
import Testing
import Wire

/// Feeds arbitrary bytes to the parsers of captures, key logs and observed packets.
///
/// These tests use 50 of every thousand inputs that `AnyBytesTests` distributes.
@Suite(.timeLimit(.minutes(InputBudget.minutes))) struct AnyBytesOnTheWireTests {
  private func count(_ perMille: Int) -> Int { InputBudget.count(perMille) }

  private func tell(_ entrance: String, _ count: Int, _ taken: Int) {
    print("any bytes: \(entrance): \(count) inputs, \(taken) of them well-formed")
  }

  private static func sample(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return Array(try Data(contentsOf: folder.appending(path: "ObserverTests/Samples/\(name)")))
  }

  /// Returns the beginnings of real captures, each cut off within a frame.
  private static func captures() throws -> [[UInt8]] {
    try [
      "firefox-loop.pcap", "chromium-rtpdump.pcapng", "chromium-aiortc.pcap",
      "chromium-noenc-VP8.pcap",
    ].map { Array(try sample($0).prefix(3000)) }
  }

  @Test func anyBytesMayBeACapture() throws {
    var damage = Damage(seed: 11)
    let samples = try Self.captures()
    let count = count(10)
    var taken = 0
    for _ in 0..<count {
      let bytes = damage.damaged(samples)
      // Reads the capture in two parts, because it may arrive through a pipe.
      let events = Self.read(bytes, cut: damage.below(bytes.count + 1))
      if events > bytes.count { Issue.record("\(events) events in \(bytes.count) bytes") }
      taken += events > 0 ? 1 : 0
    }
    tell("captures", count, taken)
    #expect(taken > count / 10)
  }

  /// Reads a capture as far as possible; returns how many events it contained.
  private static func read(_ bytes: [UInt8], cut: Int) -> Int {
    var reader = CaptureReader()
    var events = 0
    do {
      try read(Array(bytes[..<cut]), with: &reader, &events)
      try read(Array(bytes[cut...]), with: &reader, &events)
    } catch {
      if "\(error)".isEmpty { Issue.record("a refusal without a reason") }
    }
    return events
  }

  private static func read(
    _ part: [UInt8], with reader: inout CaptureReader, _ events: inout Int
  ) throws {
    reader.append(part.span.bytes)
    while let event = try reader.next() {
      events += 1
      touch(event, reader)
    }
  }

  /// Reads all bytes that an event refers to, so that a wrong range would trap.
  private static func touch(_ event: CaptureEvent, _ reader: CaptureReader) {
    switch event {
    case .datagram(let datagram): _ = [UInt8](reader.bytes(datagram.payload))
    case .stream(let piece): _ = [UInt8](reader.bytes(piece.payload))
    case .secrets(_, let place): _ = [UInt8](reader.bytes(place))
    case .comment, .dropped: break
    }
  }

  @Test func anyBytesMayBeAKeyLog() throws {
    var damage = Damage(seed: 12)
    let samples = [try Self.sample("firefox-loop.keys"), try Self.sample("chromium-aiortc.keys")]
    let count = count(5)
    var taken = 0
    for _ in 0..<count {
      var log = NSSKeyLog()
      let news = log.append(damage.damaged(samples)).count + log.finish().count
      taken += news > 0 ? 1 : 0
      let text = String(decoding: damage.damaged([samples[1].suffix(44).map { $0 }]), as: UTF8.self)
      do {
        let key = try SRTPKey(parsing: text)
        if key.suites.isEmpty { Issue.record("a key without a suite") }
      } catch {
        if "\(error)".isEmpty { Issue.record("a refusal without a reason") }
      }
      _ = CryptoAttribute("1 AES_CM_128_HMAC_SHA1_80 inline:" + text)
    }
    tell("key logs", count, taken)
    #expect(taken > count / 10)
  }

  /// Observes complete calls with their real keys; some packets are damaged, and the order varies.
  @Test func anyBytesMayBeObserved() throws {
    var damage = Damage(seed: 13)
    let count = count(35)
    var told = 0
    let calls = try ["firefox-loop", "chromium-aiortc"].map { name in
      (packets: try Self.packets("\(name).pcap"), keys: try Self.sample("\(name).keys"))
    }
    var done = 0
    var round = 0
    while done < count {
      let call = calls[round % calls.count]
      let keys = round % 3 == 2 ? [] : call.keys
      told += show(call.packets, keys: keys, &damage)
      done += call.packets.count
      round += 1
    }
    tell("packets of others", done, told)
    #expect(told > done / 10)
  }

  /// Feeds a damaged call to an observer; returns how many packets it reported.
  private func show(
    _ packets: [(tuple: FiveTuple, bytes: [UInt8])], keys: [UInt8], _ damage: inout Damage
  ) -> Int {
    let payloads = packets.map(\.bytes)
    var genesis = ObserverGenesis.ofToday
    genesis.waitingPacketsMaximum = 100
    // Decoders have their own fuzz tests, so most rounds skip them to save time.
    genesis.decodes = damage.below(8) == 0
    let observer = ObserverMachine()
    var outbox = Outbox<ObserverOutput>()
    observer.step(.genesis(genesis), at: .zero, into: &outbox)
    let log = String(decoding: keys, as: UTF8.self)
    observer.step(.call(.keyLog(log)), at: .zero, into: &outbox)
    var now = Instant.zero
    var told = 0
    for packet in packets {
      now += .milliseconds(Int64(damage.below(30)))
      observer.step(damaged(packet, payloads, &damage), at: now, into: &outbox)
      if let due = observer.deadline, due <= now {
        observer.step(.deadline, at: now, into: &outbox)
      }
      told += outbox.drain().count {
        if case .output(.packet) = $0.content { true } else { false }
      }
      if let state = observer.machineSnapshot as? ObserverSnapshot, state.waitingPackets > 100 * 40
      {
        Issue.record("too much waits")
      }
    }
    observer.step(.call(.end), at: now, into: &outbox)
    return told
  }

  private func damaged(
    _ packet: (tuple: FiveTuple, bytes: [UInt8]), _ payloads: [[UInt8]], _ damage: inout Damage
  ) -> ObserverInput {
    var (tuple, bytes) = packet
    if damage.below(3) == 0 { bytes = damage.damaged([bytes]) }
    if damage.below(20) == 0 { bytes = damage.damaged(payloads) }
    if damage.below(50) == 0 { tuple = tuple.reversed }
    if damage.below(50) == 0 { tuple.source.port ^= 1 }
    guard damage.below(10) == 0 else {
      let datagram = Datagram(local: tuple.source, remote: tuple.destination, bytes: bytes)
      let arrival = [.max, .min, 0, 1_000_000_000][damage.below(4)] as Int64
      return .datagram(
        datagram, isTruncated: damage.below(30) == 0, arrival: Instant(nanoseconds: arrival))
    }
    return .call(
      .segment(
        source: tuple.source.description, destination: tuple.destination.description,
        bytes: Data(bytes), lost: damage.below(40) == 0 ? 9 : 0, isEnd: false))
  }

  private static func packets(_ name: String) throws -> [(tuple: FiveTuple, bytes: [UInt8])] {
    let bytes = try sample(name)
    var reader = CaptureReader()
    reader.append(bytes.span.bytes)
    var packets: [(tuple: FiveTuple, bytes: [UInt8])] = []
    while let event = try reader.next() {
      guard case .datagram(let datagram) = event else { continue }
      packets.append((datagram.tuple, [UInt8](reader.bytes(datagram.payload))))
    }
    return packets
  }
}
