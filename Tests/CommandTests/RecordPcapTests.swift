import Foundation
import Testing

/// Imports observed calls while they are being captured.
struct RecordPcapTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  /// Ports outside the system's ephemeral range, different in each test process.
  private static let port = 20_000 + Int(getpid()) % 1_500 * 8

  /// Returns a Python script that sends an unannounced stream to a port of this machine.
  private static func sender(_ port: Int, packets: Int) -> String {
    """
    import socket, struct
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(\(packets)):
        s.sendto(struct.pack('>BBHII', 128, 0, i, i * 160, 7) + bytes(160), ('127.0.0.1', \(port)))
    for i in range(40):
        s.sendto(b'none of a call', ('127.0.0.1', \(port + 2)))
    """
  }

  @Test func aPipeIsRecordedWithALaterKeyLog() async throws {
    let folder = try Folder()
    let (path, keys) = (folder.file("call.take"), folder.file("keys.log"))
    let capture = sample("chromium-aiortc.pcap")
    let whole = sample("chromium-aiortc.keys")
    // The keys are written half-way through the capture, with a line cut in two. The final `:`
    // keeps the shell from replacing itself by `tail`, which would close the pipe before the keys
    // are written.
    let outcome = try await Tool.shell(
      """
      { head -c 200000 '\(capture)'; head -c 50 '\(whole)' > '\(keys)'
      tail -c +200001 '\(capture)'; tail -c +51 '\(whole)' >> '\(keys)'; :; } \
      | "$RETAKE" record pcap -r - --keys '\(keys)' --out '\(path)'
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("888 RTP and RTCP packets (888 in the clear)"))
    try await Takes.expectIdentical(path)
  }

  @Test func anInterruptedPipeLeavesATake() async throws {
    let folder = try Folder()
    let (path, pipe) = (folder.file("call.take"), folder.file("pipe"))
    try #require(mkfifo(pipe, 0o600) == 0)
    let run = try Run(Tool.path, ["record", "pcap", "-r", pipe, "--out", path])
    // Opening the pipe for writing blocks until the command has opened it for reading.
    let writer = try FileHandle(forWritingTo: URL(filePath: pipe))
    try writer.write(contentsOf: Data(contentsOf: URL(filePath: sample("firefox-loop.pcap"))))
    try await poll("the take") { FileManager.default.fileExists(atPath: path) }
    run.send(SIGINT)
    let outcome = try await run.outcome()
    try writer.close()
    #expect(outcome.status == 0 && !outcome.wasKilled, "\(outcome.errors)")
    #expect(outcome.output.contains("1 call,"))
    try await Takes.expectIdentical(path)
  }

  @Test(.enabled(if: geteuid() == 0, "capturing needs CAP_NET_RAW"))
  func anInterfaceIsRecorded() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let run = try Run(
      Tool.path,
      [
        "record", "pcap", "-i", "lo", "--filter", "udp portrange \(Self.port)-\(Self.port + 2)",
        "--out", path,
      ])
    try await run.waitForErrors(with: "capturing on lo")
    let sent = try await Run("/usr/bin/python3", ["-c", Self.sender(Self.port, packets: 300)])
      .outcome()
    try #require(sent.status == 0, "\(sent.errors)")
    run.send(SIGINT)
    let outcome = try await run.outcome()
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("1 call, 1 stream, 300 RTP and RTCP packets"))
    #expect(outcome.output.contains("40 packets of no call left out"))
    // Packets outside calls are not in the take.
    let count = "SELECT count(*) FROM packet WHERE direction = 'in'"
    #expect(try Takes.number(path, count) == 300)
    #expect(
      try Takes.number(path, "SELECT count(*) FROM coverage WHERE what = 'ignored'") == 1)
    // The streams are PCMU, and have the kernel's timestamps.
    #expect(try Takes.number(path, "SELECT count(*) FROM track WHERE codec = 'pcmu'") == 2)
    let steps = "SELECT count(DISTINCT at_ns) FROM packet"
    #expect(try Takes.number(path, steps) > 100)
    try await Takes.expectIdentical(path)
  }

  @Test func aFolderGetsATakeOfEachCallFromAPipe() async throws {
    let folder = try Folder()
    let names = ["chromium-aiortc", "aiortc-offers-chromium"]
    // The second capture continues where the first ends, without a header of its own.
    let keys = names.map { "--keys '\(sample("\($0).keys"))'" }.joined(separator: " ")
    let outcome = try await Tool.shell(
      """
      { cat '\(sample("\(names[0]).pcap"))'; tail -c +25 '\(sample("\(names[1]).pcap"))'; } \
      | "$RETAKE" record pcap -r - \(keys) --out '\(folder.path)/calls/'
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let calls = folder.file("calls")
    let made = try FileManager.default.contentsOfDirectory(atPath: calls).sorted()
    #expect(made.count == 2 && made.allSatisfy { $0.hasSuffix(".take") }, "\(made)")
    for name in made {
      let path = "\(calls)/\(name)"
      #expect(try Takes.number(path, "SELECT count(*) FROM peer") == 2)
      let sealed = "SELECT count(*) FROM coverage WHERE what = 'no-keys'"
      #expect(try Takes.number(path, sealed) == 0)
      try await Takes.expectIdentical(path)
    }
  }

  @Test(.enabled(if: geteuid() == 0, "capturing needs CAP_NET_RAW"))
  func truncationIsReported() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let run = try Run(
      Tool.path,
      [
        "record", "pcap", "-i", "lo", "--filter", "udp port \(Self.port + 4)", "--snap-length",
        "64",
        "--out", path,
      ])
    try await run.waitForErrors(with: "capturing on lo")
    let sent = try await Run("/usr/bin/python3", ["-c", Self.sender(Self.port + 4, packets: 20)])
      .outcome()
    try #require(sent.status == 0, "\(sent.errors)")
    run.send(SIGTERM)
    let outcome = try await run.outcome()
    #expect(outcome.status == 0 && outcome.output.contains("not seen: "), "\(outcome.errors)")
    #expect(outcome.output.contains("truncated"), "\(outcome.output)")
  }

  @Test(
    arguments: [
      (["-i", "none0"], 66, "there is no such interface, only "),
      (["-i", "lo", "--filter", "udp prot 5"], 64, "it is not a filter that libpcap understands"),
      (["-r", "/nowhere.pcap"], 66, "there is no such file"),
      (["-r", #filePath], 65, "neither a pcap"),
      (["-r", "/dev/null"], 65, "it contains no packet"),
      ([], 64, "-i"), (["-r", "-", "--filter", "udp"], 64, "--filter is for -i"),
    ])
  func captureFailuresAreReportedInOneSentence(
    _ arguments: [String], _ status: Int, _ words: String
  ) async throws {
    guard geteuid() == 0 || !arguments.contains("-i") else { return }
    let folder = try Folder()
    let path = folder.file("call.take")
    let outcome = try await Tool.run(["record", "pcap"] + arguments + ["--out", path])
    #expect(Int(outcome.status) == status, "\(outcome.errors)")
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(words), "\(outcome.errors)")
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test(.enabled(if: geteuid() == 0 && Tool.has("setpriv"), "capabilities cannot be taken away"))
  func theMissingCapabilityIsNamed() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let outcome = try await Tool.shell(
      """
      exec setpriv --bounding-set -net_raw,-net_admin "$RETAKE" record pcap -i lo --out '\(path)'
      """)
    #expect(outcome.status == 74 && outcome.errors.contains("CAP_NET_RAW"), "\(outcome.errors)")
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
