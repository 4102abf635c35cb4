import Foundation
import Testing

/// Runs flight recorders as users start them.
struct FlightRecorderRunTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  private func takes(_ folder: Folder) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
      .filter { !$0.hasPrefix(".") }.map(folder.file)
  }

  @Test func aCallIsWrittenWhereItGoesWrongAndNotOtherwise() async throws {
    let bad = try Folder()
    let small = ["--size", "96x64", "--rate", "10", "--ring", "10s", "--on", "finding:high"]
    let call = ["record", "demo", "--seed", "7", "--seconds", "21"]
    let outcome = try await Tool.run(
      call + small + ["--loss", "40", "--out", bad.file("bad.take"), "--json"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    let made = try takes(bad)
    #expect((1...8).contains(made.count), "\(made) \(outcome.errors)")
    #expect(made.allSatisfy { $0.hasPrefix(bad.file("bad-20")) && $0.hasSuffix(".take") })
    for path in made {
      #expect(outcome.output.contains(path) && outcome.errors.contains(path))
      let findings = try await Tool.run("findings", path, "--fail-on", "high")
      #expect(findings.status == 1, "\(findings.output)")
      let info = try await Tool.run("info", path)
      #expect(info.output.contains("ring=10.0 s, ring_trigger=finding "), "\(info.output)")
      try await Takes.expectIdentical(path)
    }
    let last = try #require(made.last)
    let part = "SELECT count(*) FROM coverage WHERE reason LIKE '%retained the last 10.0 s%'"
    #expect(try Takes.number(last, part) == 1)
    let good = try Folder()
    let silent = try await Tool.run(call + small + ["--out", good.file("good.take")])
    #expect(silent.status == 0 && silent.errors.isEmpty, "\(silent.errors)")
    #expect(silent.output == "nothing triggered a take, so none was written\n")
    #expect(try takes(good).isEmpty)
  }

  @Test func aSignalWritesTheLastSecondsAndTheCallContinues() async throws {
    let folder = try Folder()
    let run = try Run(
      Tool.path,
      [
        "record", "demo", "--size", "96x64", "--rate", "10", "--seconds", "600", "--ring", "3s",
        "--ring-count", "1000", "--out", folder.file("call.take"),
      ])
    try await run.waitForErrors(with: "kill -USR1 \(run.processIdentifier)")
    // Sends signals repeatedly until the call has run for a second; before the first packet, a
    // signal writes no take.
    var answered = 0
    try await poll("a take with audio") {
      let sentences = run.errors.split(separator: "\n").count - 1
      guard sentences >= answered else { return false }
      let full = try takes(folder).count {
        try Takes.number($0, "SELECT count(*) FROM frame WHERE kind = 'audio'") > 100
      }
      guard full < 2 else { return true }
      answered = sentences + 1
      run.send(SIGUSR1)
      return false
    }
    #expect(run.isRunning)
    run.send(SIGINT)
    let outcome = try await run.outcome()
    #expect(outcome.status == 0, "\(outcome.errors)")
    for path in try takes(folder) {
      #expect(outcome.output.contains("\(path): ") && outcome.output.contains("s: SIGUSR1"))
      // A take may be longer than the ring only if it begins with a key frame.
      let length = "SELECT (max(at_ns) - min(at_ns)) / 1000000 FROM packet"
      let isKey = "SELECT key FROM frame WHERE kind = 'video' ORDER BY at_ns LIMIT 1"
      #expect(try Takes.number(path, length) <= 3_000 || Takes.number(path, isKey) == 1)
      #expect(try Takes.number(path, "SELECT count(*) FROM coverage WHERE what = 'no-keys'") == 0)
      try await Takes.expectIdentical(path)
    }
  }

  @Test func aCaptureIsSearchedForAConditionAndItsTakeHoldsTheLastSeconds() async throws {
    let folder = try Folder()
    let capture = sample("chromium-aiortc")
    let outcome = try await Tool.run(
      "record", "pcap", "-r", "\(capture).pcap", "--keys", "\(capture).keys", "--ring", "4s",
      "--on", "packet rtp", "--out", folder.file("call.take"))
    #expect(outcome.status == 0, "\(outcome.errors)")
    let made = try takes(folder)
    let path = try #require(made.first, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.output.contains("s: packet rtp"))
    #expect(
      try Takes.number(path, "SELECT (max(at_ns) - min(at_ns)) / 1000000 FROM packet") <= 4_000)
    #expect(try Takes.number(path, "SELECT count(*) FROM coverage WHERE what = 'no-keys'") == 0)
    #expect(try Takes.number(path, "SELECT count(*) FROM frame") > 0)
    try await Takes.expectIdentical(path)
  }

  @Test func aContinuingPipeIsWrittenOnASignal() async throws {
    let folder = try Folder()
    let pipe = folder.file(".pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    let capture = sample("firefox-loop")
    let run = try Run(
      Tool.path,
      [
        "record", "pcap", "-r", pipe, "--keys", "\(capture).keys", "--ring", "2s", "--out",
        folder.file("call.take"),
      ])
    // Opening the pipe for writing blocks until the command has opened it for reading.
    let writer = try FileHandle(forWritingTo: URL(filePath: pipe))
    try writer.write(contentsOf: Data(contentsOf: URL(filePath: "\(capture).pcap")))
    try await run.waitForErrors(with: "kill -USR1 \(run.processIdentifier)")
    var answered = 0
    try await poll("a take") {
      let sentences = run.errors.split(separator: "\n").count - 1
      guard sentences >= answered, try takes(folder).isEmpty else {
        return try !takes(folder).isEmpty
      }
      answered = sentences + 1
      run.send(SIGUSR1)
      return false
    }
    run.send(SIGINT)
    let outcome = try await run.outcome()
    try writer.close()
    #expect(outcome.status == 0, "\(outcome.errors)")
    for path in try takes(folder) { try await Takes.expectIdentical(path) }
  }

  @Test func invalidRingOptionsAreRefused() async throws {
    let wrong: [([String], String)] = [
      (["--ring", "0"], "from 1 to 3600 seconds"),
      (["--ring", "2h"], "from 1 to 3600 seconds"),
      (["--ring", "60s", "--ring-megabytes", "0"], "from 1 to"),
      (["--ring", "60s", "--ring-megabytes", "65536"], "--ring-megabytes is from 1 to"),
      (["--ring", "60s", "--ring-count", "0"], "from 1 to 100000"),
      (["--ring-count", "3"], "--ring-count needs --ring"),
      (["--on", "finding"], "--on needs --ring"),
      (["--ring-replace"], "--ring-replace needs --ring"),
      (["--ring", "60s", "--on", "finding:hihg"], "did you mean high"),
      (["--ring", "60s", "--on", "12.5s"], "cannot be searched for"),
      (["--ring", "60s", "--on", "state ice-connection faild"], "did you mean failed"),
    ]
    let machine = ProcessInfo.processInfo.physicalMemory
    for (words, reason) in wrong {
      guard !words.contains("65536") || machine < 131_072_000_000 else { continue }
      let outcome = try await Tool.run(["record", "demo"] + words)
      #expect(outcome.status == 64, "\(words): \(outcome.output)\(outcome.errors)")
      #expect(outcome.errors.contains(reason), "\(words): \(outcome.errors)")
    }
  }
}
