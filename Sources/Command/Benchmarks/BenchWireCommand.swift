import ArgumentParser
import FoundationEssentials
import Glibc
import RetakeCommand
import Wire

/// Measures how fast calls between others become takes.
struct BenchWireCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wire",
    abstract: "Measure importing captures, and capturing calls between others.",
    discussion: """
      Imports captures of 20 calls, with and without keys, beside what tshark needs to read the \
      same file, and captures packets that a process on the same machine sends: at the highest \
      rate of a few at which none is lost. Capturing needs the capability CAP_NET_RAW; without it \
      that row is left out.

      Example:
        retake-bench wire --packets 100000 --seconds 5
      """)

  @Option(
    help: "How many packets the captures have. Default: \(Self.usualPackets).",
    transform: Taking.whole(1_000...5_000_000))
  var packets = Self.usualPackets

  @Option(
    help: "For how many seconds packets are sent at each rate. Default: \(Self.usualSeconds).",
    transform: Taking.seconds(1...600))
  var seconds = Double(Self.usualSeconds)

  @Flag(help: "Print JSON for programs.")
  var json = false

  private static let usualPackets = 500_000
  private static let usualSeconds = 30
  private static let calls = 20
  private static let tshark = ["/usr/bin/tshark", "/usr/local/bin/tshark"]
  /// Rows of 1.1 kB a second that SQLite alone writes, as prepared measurements found.
  private static let writeRate = 240_000.0
  private static let wanted = 100_000.0
  /// From the highest on; the first without a loss counts.
  private static let rates = [140_000, 120_000, 100_000, 80_000, 60_000, 40_000, 20_000]

  func run() throws {
    let folder = try BenchFolder()
    defer { folder.remove() }
    var table = try BenchTable(
      seconds: Int(seconds), show: json ? nil : { try Output.line($0) })
    try addImports(to: &table, folder.url)
    if geteuid() == 0 { try addCapture(to: &table, folder.url) }
    try table.end()
  }

  // MARK: Captures in files

  private func addImports(to table: inout BenchTable, _ folder: URL) throws {
    let capture = folder.appendingPathComponent("calls.pcap").path
    func write(_ count: Int, of length: Int, hasKeys: Bool) throws {
      var traffic = try WireTraffic(calls: Self.calls, packetLength: length, hasKeys: hasKeys)
      try traffic.write(count, to: capture)
    }
    try write(packets / 2, of: 160, hasKeys: false)
    _ = try importing(capture, folder)
    let half = Child.largestMemory
    try write(packets, of: 160, hasKeys: false)
    let small = try importing(capture, folder)
    try table.add(
      "memory of an import, twice the packets", Child.largestMemory, floor: half, "MB", .atMost,
      1.25)
    if let tshark = Self.tshark.first(where: FileManager.default.isExecutableFile) {
      let theirs = try Child.seconds(tshark, ["-q", "-z", "rtp,streams", "-r", capture])
      try table.add(
        "import, \(packets) x 160 B, no keys, tshark", small, floor: theirs, "s", .atMost, 1)
    }
    try write(packets, of: 1000, hasKeys: false)
    let large = try importing(capture, folder)
    try table.add(
      "import, 1000 B, no keys", Double(packets) / large, floor: Self.writeRate, "packets/s",
      .atLeast, 0.5)
    try write(packets, of: 160, hasKeys: true)
    let digits = hexadecimal(WireTraffic.key)
    let opened = try importing(capture, folder, ["--srtp-key", digits])
    try table.add(
      "import, 160 B, AES-GCM opened", Double(packets) / opened, floor: Self.wanted, "packets/s",
      .atLeast, 1)
  }

  private func importing(_ capture: String, _ folder: URL, _ options: [String] = []) throws
    -> Double
  {
    let take = folder.appendingPathComponent("calls.take").path
    try? FileManager.default.removeItem(atPath: take)
    return try Child.seconds(
      BenchCommand.retake, ["import", capture, "--out", take] + options)
  }

  // MARK: Captures while packets are sent

  private func addCapture(to table: inout BenchTable, _ folder: URL) throws {
    for rate in Self.rates {
      let lost = try capturing(rate, folder)
      guard lost == 0 else { continue }
      try table.add(
        "capture, 160 B, AES-GCM opened, none lost", Double(rate), floor: Self.wanted,
        "packets/s", .atLeast, 1)
      return
    }
    try table.add(
      "capture, 160 B, AES-GCM opened, none lost", 0, floor: Self.wanted, "packets/s", .atLeast, 1)
  }

  /// How many of the packets that were sent at a rate are not in the take.
  private func capturing(_ rate: Int, _ folder: URL) throws -> Int {
    let take = folder.appendingPathComponent("live.take").path
    try? FileManager.default.removeItem(atPath: take)
    let digits = hexadecimal(WireTraffic.key)
    let child = try Child(
      BenchCommand.retake,
      [
        "record", "pcap", "-i", "lo", "--filter", "udp portrange \(WireFlood.ports)",
        "--srtp-key", digits, "--json", "--out", take,
      ])
    try child.waitForErrors("capturing on")
    var flood = try WireFlood(calls: Self.calls)
    let sent = try flood.send(rate: rate, seconds: seconds)
    let output = try child.interrupt()
    guard let line = output.split(separator: "\n").last,
      let summary = try? JSONValue(parsing: String(line)),
      let packets = summary["packetsInClear"]?.integer
    else { throw CommandFailure(.inputOutput, "record pcap gave no summary: \(output)") }
    return sent - Int(packets)
  }
}
