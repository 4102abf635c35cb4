import Capture
import Decryption
import Foundation
import Observer
import Testing
import Wire

/// Any bytes may be in a capture, in a key log, and in the packets of others.
///
/// Their inputs are a part of those that `AnyBytesTests` shares out: 50 in a thousand.
@Suite(.timeLimit(.minutes(10))) struct AnyBytesOnTheWireTests {
  private func count(_ perMille: Int) -> Int { AnyBytesTests.total * perMille / 1000 }

  private func tell(_ entrance: String, _ count: Int, _ taken: Int) {
    print("any bytes: \(entrance): \(count) inputs, \(taken) of them well-formed")
  }

  private static func sample(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return Array(try Data(contentsOf: folder.appending(path: "ObserverTests/Samples/\(name)")))
  }

  /// The beginnings of real captures, with the frames that fit.
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
      var reader = CaptureReader()
      var events = 0
      do {
        // In two parts, because it may come from a pipe.
        let cut = damage.below(bytes.count + 1)
        for part in [bytes[..<cut], bytes[cut...]] {
          reader.append(Array(part).span.bytes)
          while let event = try reader.next() {
            events += 1
            if case .datagram(let datagram) = event {
              _ = reader.bytes(datagram.payload).byteCount
            }
            if case .stream(let piece) = event { _ = reader.bytes(piece.payload).byteCount }
          }
        }
      } catch {
        if error.description.isEmpty { Issue.record("a refusal without a reason") }
      }
      if events > bytes.count { Issue.record("\(events) events in \(bytes.count) bytes") }
      taken += events > 0 ? 1 : 0
    }
    tell("captures", count, taken)
    #expect(taken > count / 10)
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
      _ = try? SRTPKey(parsing: text)
      _ = CryptoAttribute("1 AES_CM_128_HMAC_SHA1_80 inline:" + text)
    }
    tell("key logs", count, taken)
    #expect(taken > count / 10)
  }

  /// Whole calls with every packet damaged now and then, in an order that changes, under real keys.
  @Test func anyBytesMayBeSeenBetweenOthers() throws {
    var damage = Damage(seed: 13)
    let count = count(35)
    var told = 0
    let names = ["firefox-loop", "chromium-aiortc"]
    let calls = try names.map { name in
      (packets: try Self.packets("\(name).pcap"), keys: try Self.sample("\(name).keys"))
    }
    var done = 0
    var round = 0
    while done < count {
      let call = calls[round % calls.count]
      let payloads = call.packets.map(\.bytes)
      var settings = ObserverSettings()
      settings.waitingPacketsMaximum = 100
      var observer = Observer(settings)
      var outbox = Outbox<Observer.Output>()
      if round % 3 != 2 { observer.step(.keyLog(call.keys), at: .zero, into: &outbox) }
      var now = Instant.zero
      for index in call.packets.indices {
        var (tuple, bytes) = call.packets[index]
        if damage.below(3) == 0 { bytes = damage.damaged([bytes]) }
        if damage.below(20) == 0 { bytes = damage.damaged(payloads) }
        if damage.below(50) == 0 { tuple = tuple.reversed }
        if damage.below(50) == 0 { tuple.source.port ^= 1 }
        now += .milliseconds(Int64(damage.below(30)))
        if damage.below(10) == 0 {
          tuple.transport = .tcp
          observer.step(
            .stream(tuple, bytes, lost: damage.below(40) == 0 ? 9 : 0), at: now, into: &outbox)
        } else {
          observer.step(
            .datagram(tuple, bytes, isTruncated: damage.below(30) == 0), at: now, into: &outbox)
        }
        if let due = observer.deadline, due <= now {
          observer.step(.deadline, at: now, into: &outbox)
        }
        done += 1
        while let output = outbox.next() {
          if case .packet = output { told += 1 }
        }
        if observer.waitingPackets > 100 * 40 { Issue.record("too much waits") }
      }
      observer.step(.end, at: now, into: &outbox)
      round += 1
    }
    tell("packets of others", done, told)
    #expect(told > done / 10)
  }

  private static func packets(_ name: String) throws -> [(tuple: FiveTuple, bytes: [UInt8])] {
    var reader = CaptureReader()
    reader.append(try sample(name).span.bytes)
    var packets: [(tuple: FiveTuple, bytes: [UInt8])] = []
    while let event = try reader.next() {
      guard case .datagram(let datagram) = event else { continue }
      packets.append((datagram.tuple, [UInt8](reader.bytes(datagram.payload))))
    }
    return packets
  }
}
