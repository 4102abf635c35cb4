import Foundation
import Observer
import Testing
import TsharkTables
import Wire

/// Compares the observer's statistics with tshark's for the same packets, if tshark is installed.
struct TsharkTests {
  private var samples: URL {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")
  }

  @Test(
    .enabled(if: TsharkStream.tool != nil, "tshark is not installed"),
    arguments: [
      "aiortc-offers-chromium", "chromium-aiortc", "chromium-firefox-cr-offers", "firefox-loop",
      "chromium-noenc-H264", "chromium-noenc-VP8",
    ])
  func packetAndLossCountsMatchTshark(name: String) throws {
    let hasKeys = !name.contains("noenc")
    let seen = try Watch.whole(name, hasKeys: hasKeys, hasDescriptions: hasKeys)
    let ports = try #require(seen.pairs.last).addresses.map(\.port)
    let file = samples.appending(path: "\(name).pcap").path
    let rows = try TsharkStream.streams(in: file, ports: ports)
    #expect(rows.count == seen.streams.count)
    for row in rows {
      let stream = try #require(
        seen.streams.first { $0.ssrc == row.ssrc })
      let numbers = try #require(seen.statistics[stream.number])
      // tshark misinterprets and misses one retransmission of this stream; libsrtp2 authenticates
      // it.
      let missed = row.ssrc == 0xe99e_4f2a ? 1 : 0
      #expect(row.packets + missed == Int(numbers.packets), "\(name) \(row.ssrc)")
      #expect(row.lost - missed == Int(numbers.lost), "\(name) \(row.ssrc)")
    }
  }

  private static let firstPort: UInt16 = 20_000

  /// Returns a sample's media as raw IP, with a payload type whose clock tshark knows without
  /// descriptions: 26 has 90 kHz, to which other clocks are converted.
  private func clocked(_ name: String, _ seen: Seen, _ ends: [SocketAddress]) throws -> [UInt8] {
    var file = RawCapture()
    var firstTimes: [UInt32: UInt32] = [:]
    var reader = CaptureReader()
    let sample = try Watch.sample("\(name).pcap")
    reader.append(sample.span.bytes)
    while let event = try reader.next() {
      guard case .datagram(let datagram) = event else { continue }
      let tuple = datagram.tuple
      var bytes = [UInt8](reader.bytes(datagram.payload))
      guard Set([tuple.source, tuple.destination]) == Set(ends),
        DatagramClass(bytes.span.bytes) == .rtp, bytes.count >= 12
      else { continue }
      let (time, ssrc) = (bytes.span.bytes.uint32(at: 4), bytes.span.bytes.uint32(at: 8))
      let stream = try #require(seen.streams.first { $0.ssrc == ssrc })
      // Retransmissions have the original packets' timestamps, so their jitter is meaningless.
      guard stream.repairs == nil, !stream.payloads.isEmpty,
        !stream.payloads.contains(where: { $0.codec == "rtx" })
      else { continue }
      let first = firstTimes[ssrc] ?? time
      firstTimes[ssrc] = first
      let elapsed = Int64(Int32(bitPattern: time &- first))
      let converted = UInt32(elapsed * 90_000 / max(Int64(stream.clockRate), 1) + (1 << 20))
      // The payload is replaced by zeros, because it is not what tshark expects for type 26.
      bytes = [0x80, 26] + bytes[2..<12] + [UInt8](repeating: 0, count: 100)
      for place in 0..<4 { bytes[4 + place] = UInt8(converted >> (24 - 8 * place) & 0xff) }
      // Each packet's stream has a separate path, because tshark extends the timestamps of all
      // sources on a path together.
      let port = Self.firstPort + 2 * UInt16(stream.number)
      file.add([port, port], from: 0, bytes, at: datagram.unixNanoseconds)
    }
    return file.bytes
  }

  /// Uses only samples whose clocks are known from the first packet, because tshark counts no
  /// jitter before that.
  @Test(
    .enabled(if: TsharkStream.tool != nil, "tshark is not installed"),
    arguments: [
      "aiortc-offers-chromium", "chromium-aiortc", "chromium-firefox-cr-offers", "firefox-loop",
    ])
  func jitterOfEverySampleMatchesTshark(name: String) throws {
    let seen = try Watch.whole(name)
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).pcap")
    let ends = try #require(
      seen.pairs.max { $0.packets.reduce(0, +) < $1.packets.reduce(0, +) }
    ).addresses
    try Data(try clocked(name, seen, ends)).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    var compared = 0
    let ports = seen.streams.map { Self.firstPort + 2 * UInt16($0.number) }
    for row in try TsharkStream.streams(in: file.path, ports: ports) {
      let stream = try #require(seen.streams.first { $0.ssrc == row.ssrc })
      let numbers = try #require(seen.statistics[stream.number])
      let unit = Double(stream.clockRate) / 1000
      compared += 1
      #expect(abs(row.meanJitter - numbers.meanJitter / unit) < 0.1, "\(name) \(stream)")
      #expect(abs(row.maximumJitter - numbers.maximumJitter / unit) < 0.1, "\(name) \(stream)")
    }
    #expect(compared >= 2)
  }

  /// A call between two telephones whose packets arrive early, late, or not at all.
  @Test(.enabled(if: TsharkStream.tool != nil, "tshark is not installed"))
  func jitterMatchesTshark() throws {
    var capture = RawCapture()
    var state: UInt64 = 7
    for sequence in 0..<2000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1
      let late = Int64(state >> 40) % 15_000_000
      guard state >> 50 % 50 != 3 else { continue }
      let at = Int64(sequence) * 20_000_000 + late
      capture.add([5000, 6000], from: 0, Messages.rtp(sequence), at: at)
    }
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).pcap")
    try Data(capture.bytes).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    var watch = Watch()
    var observer = Observer()
    try watch.show(&observer, capture: capture.bytes)
    watch.end(&observer)
    let numbers = try #require(watch.seen.statistics[1])
    let row = try #require(
      try TsharkStream.streams(in: file.path, ports: [5000, 6000]).first)
    #expect(row.packets == Int(numbers.packets))
    #expect(row.lost == Int(numbers.lost) && row.lost > 10)
    #expect(abs(row.meanJitter - numbers.meanJitter / 8) < 0.1)
    #expect(abs(row.maximumJitter - numbers.maximumJitter / 8) < 0.1)
  }
}

/// A raw IP capture in libpcap's format, between 192.0.2.1 and 192.0.2.2.
private struct RawCapture {
  private var writer = ByteWriter()

  init() {
    for number in [0xa1b2_3c4d, 0x0002_0004, 0, 0, 262_144, 101] as [UInt32] {
      writer.uint32(number)
    }
  }

  var bytes: [UInt8] { writer.bytes }

  /// Adds a datagram from one of the ends.
  mutating func add(_ ports: [UInt16], from end: Int, _ payload: [UInt8], at: Int64) {
    writer.uint32(UInt32(at / 1_000_000_000))
    writer.uint32(UInt32(at % 1_000_000_000))
    for _ in 0..<2 { writer.uint32(UInt32(payload.count + 28)) }
    writer.append([0x45, 0])
    writer.uint16(UInt16(payload.count + 28))
    let hosts: [UInt8] = end == 0 ? [1, 2] : [2, 1]
    writer.append([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, hosts[0], 192, 0, 2, hosts[1]])
    writer.uint16(ports[0])
    writer.uint16(ports[1])
    writer.uint16(UInt16(payload.count + 8))
    writer.uint16(0)
    writer.append(payload)
  }
}
