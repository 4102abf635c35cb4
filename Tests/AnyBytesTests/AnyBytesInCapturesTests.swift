import Foundation
import Media
import Observer
import Peer
import RTP
import Replay
import Tape
import Testing
import Wire

@testable import Importing

/// Whatever a capture contains, its import makes a take that replays, or reports an error in one
/// sentence.
///
/// Tests 400 captures by default, or a twentieth of `RETAKE_MUTATIONS_EACH` if that is set. Each
/// capture has its own seed: `RETAKE_CAPTURE_SEED=N` starts with the Nth,
/// `RETAKE_CAPTURE_TRACE=FILE` records which one is running, and `RETAKE_CAPTURE_SAMPLES=FOLDER`
/// also alters the pcap files in a folder, with key logs of the same names.
@Suite(.timeLimit(.minutes(InputBudget.minutes))) struct AnyBytesInCapturesTests {
  /// The seconds that one import may take, and the bytes of memory that all imports together may
  /// use.
  private static let secondsMaximum = 20.0
  private static let memoryMaximum = 1 << 30
  /// One in this many takes is replayed.
  private static let replayedEach = 16

  private static var environment: [String: String] { ProcessInfo.processInfo.environment }

  @Test func alteredCapturesAreImportedOrRefused() throws {
    let samples = try Self.samples()
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "altered-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let count = InputBudget.each.map { max(1, $0 / 20) } ?? InputBudget.total / 2500
    let first = Self.environment["RETAKE_CAPTURE_SEED"].flatMap { UInt64($0) } ?? 0
    var outcomes: [String: Int] = [:]
    var slowest = 0.0
    for seed in first..<first + UInt64(count) {
      if let trace = Self.environment["RETAKE_CAPTURE_TRACE"] {
        try? "\(seed)".write(toFile: trace, atomically: false, encoding: .utf8)
      }
      var altering = CaptureDamage(seed: seed)
      let capture = folder.appending(path: "altered.pcap").path
      try Data(altering.altered(samples)).write(to: URL(filePath: capture))
      let began = ContinuousClock.now
      let outcome = try Self.importing(capture, seed, samples, in: folder)
      let elapsed = (ContinuousClock.now - began) / .seconds(1)
      slowest = max(slowest, elapsed)
      if elapsed > Self.secondsMaximum { Issue.record("seed \(seed): \(elapsed) s") }
      outcomes[outcome, default: 0] += 1
    }
    let memory = Self.peakMemory()
    print(
      "altered captures: \(count) from seed \(first): \(outcomes.sorted { $0.key < $1.key }), "
        + "the slowest took \(slowest) s, \(memory >> 20) MB at most")
    #expect(memory < Self.memoryMaximum)
    #expect(outcomes["imported", default: 0] + outcomes["replayed", default: 0] > count / 4)
  }

  /// Imports a capture as `retake import` does; returns the outcome.
  private static func importing(
    _ capture: String, _ seed: UInt64, _ samples: [CaptureSample], in folder: URL
  ) throws -> String {
    var settings = ImportSettings()
    settings.decodes = seed % 2 == 0
    settings.awaitsKeys = seed % 3 != 0
    if seed % 4 == 1 { settings.keyLogs = samples.map(\.keys).filter { !$0.isEmpty } }
    if seed % 8 == 3 { settings.payloadTypes = "96=vp8,111=opus,100=h264,0=pcmu" }
    let take = folder.appending(path: "altered.take").path
    defer {
      for ending in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: take + ending)
      }
    }
    do {
      if seed % 32 == 7 {
        let calls = folder.appending(path: "calls").path
        defer { try? FileManager.default.removeItem(atPath: calls) }
        _ = try CallFolder(capture: capture, folder: calls, settings: settings).write()
        return "a take of each call"
      }
      let recorder = CaptureRecorder(settings, writing: take)
      let counters = try CaptureFeed.read(capture, "importing", ImportReports()) {
        try recorder.show($0, of: $1)
      }
      guard try recorder.finish(counters) != nil else { return "no packet" }
    } catch let failure as TapeError {
      guard failure.kind == .invalid else { throw failure }
      #expect(!failure.reason.isEmpty)
      return "refused"
    }
    guard seed % UInt64(replayedEach) == 0 else { return "imported" }
    let report = try Replayer(
      path: take, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    if case .identical = report.verdict { return "replayed" }
    Issue.record("seed \(seed): \(report.verdict)")
    return "diverged"
  }

  private static func peakMemory() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first)
      .flatMap { Int($0) }.map { $0 * 1024 } ?? 0
  }

  // MARK: Samples

  private static func samples() throws -> [CaptureSample] {
    let call = Samples.datagrams(seed: 3, milliseconds: 300)
    var samples = [
      CaptureSample.of(call.map { ($0.peer == 0, $0.datagram.bytes) }, apart: 2_000_000)
    ]
    let clear = try Samples.clearPackets()
    var media = clear.rtp.prefix(150).map { (true, $0) }
    for (number, report) in clear.rtcp.prefix(12).enumerated() {
      media.insert((number % 2 == 0, report), at: min(12 * number, media.count))
    }
    samples.append(CaptureSample.of(media))
    samples.append(CaptureSample.of(media.map { (!$0.0, $0.1) }, apart: 300_000_000))
    var signaled = CaptureSample()
    let description = String(decoding: try Samples.descriptions()[0], as: UTF8.self)
    let body = try JSONEncoder().encode(["type": "offer", "sdp": description])
    let head = "POST /offer HTTP/1.1\r\nContent-Length: \(body.count)\r\n\r\n"
    signaled.addStream(Array(head.utf8) + body, segment: 700)
    signaled.records += samples[1].records.prefix(60)
    if let large = clear.rtp.max(by: { $0.count < $1.count }) {
      signaled.addFragments(large + large + large, each: 512)
    }
    samples.append(signaled)
    samples.append(contentsOf: heads(of: samples))
    if let path = environment["RETAKE_CAPTURE_SAMPLES"] { samples += files(in: path) }
    return samples
  }

  /// Returns captures that start like Retake's own exports, with meaningless numbers in their
  /// headers.
  private static func heads(of samples: [CaptureSample]) -> [CaptureSample] {
    let numbers = ["-1", "0", "4294967295", "9223372036854775807", "-9223372036854775808"]
    return numbers.map { number in
      var sample = samples[1]
      let genesis = CanonicalJSON.text(ObserverGenesis.ofToday)
      sample.comments = [
        "Retake observer "
          + genesis.replacing(":1,", with: ":\(number),").replacing(":20,", with: ":\(number),")
          .replacing(":20000,", with: ":\(number),").replacing(":67108864", with: ":\(number)")
          .replacing(":0,", with: ":\(number),"),
        "Retake not seen {\"count\":\(number),\"detail\":\"x\",\"kind\":\"dropped\"}",
        "Retake not seen {\"count\":18446744073709551615,\"detail\":\"x\",\"kind\":\"dropped\"}",
        "Retake SRTP key 00112233445566778899aabbccddeeff00112233445566778899aabbccdd",
      ]
      return sample
    }
  }

  private static func files(in path: String) -> [CaptureSample] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.sorted().filter { $0.hasSuffix(".pcap") }.compactMap { name in
      let file = URL(filePath: path).appending(path: name)
      let keys = file.deletingPathExtension().appendingPathExtension("keys")
      return CaptureSample(pcap: file, keys: keys)
    }
  }
}
