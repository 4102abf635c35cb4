import ArgumentParser
import Dispatch
import FoundationEssentials
import Glibc
import Live
import RetakeCommand
import Secure
import Synchronization
import Tape
import Wire

/// Measures how fast captured calls become takes.
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
  /// The number of 1.1 kB rows that SQLite alone can write per second, as measured earlier.
  private static let writeRate = 240_000.0
  private static let wanted = 100_000.0
  /// Packet rates to try, in descending order; the first rate without a loss is reported.
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

  // MARK: Importing files

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

  // MARK: Capturing live

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

  /// Sends packets at a rate, and returns how many of them are missing from the take.
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
      let packets = summary["packets_in_clear"]?.integer
    else { throw CommandFailure(.inputOutput, "record pcap gave no summary: \(output)") }
    return sent - Int(packets)
  }
}

// MARK: - BenchChild

/// A child process whose memory and processor time this process measures.
final class Child {
  private let process: ChildProcess
  private let output: ChildPipe
  private let said = Said()

  init(_ program: String, _ arguments: [String]) throws {
    let errors: ChildPipe
    do throws(SystemError) {
      (output, errors) = (try ChildPipe(), try ChildPipe())
      process = try ChildProcess(
        URL(fileURLWithPath: program).resolvingSymlinksInPath().path, arguments,
        output: .pipe(output.writing), errors: .pipe(errors.writing))
    } catch {
      throw CommandFailure(.inputOutput, "\(program): it cannot be started")
    }
    output.closeWriting()
    errors.closeWriting()
    startWorker(named: "errors") { [said] in
      while said.add(errors.reading.read(atMost: 1 << 16)) {}
    }
  }

  /// Runs a program to completion and returns the duration in seconds.
  static func seconds(_ program: String, _ arguments: [String]) throws -> Double {
    let watch = Stopwatch()
    let child = try Child(program, arguments)
    _ = child.output.readAll(atMost: .max)
    guard child.process.waitUntilExit().status == 0 else {
      throw CommandFailure(
        .inputOutput, "\(program) failed: \(child.said.wait(for: nil).text.suffix(500))")
    }
    return watch.elapsed.wall
  }

  /// Waits until the child prints the given text on standard error; returns all that it printed
  /// there.
  @discardableResult
  func waitForErrors(_ text: String) throws -> String {
    let (seen, isThere) = said.wait(for: text)
    guard isThere else {
      throw CommandFailure(.inputOutput, "a process ended early: \(seen)")
    }
    return seen
  }

  /// The complete standard error of the child; waits until the child has ended.
  var errors: String { said.wait(for: nil).text }

  /// The child's peak memory so far, in MB.
  var peakMegabytes: Double {
    let line = kernelFile("status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
  }

  /// The processor time of the child's threads so far, in seconds.
  var processorSeconds: Double {
    let fields = kernelFile("stat").split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
      return 0
    }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private func kernelFile(_ name: String) -> String {
    let path = "/proc/\(process.identifier)/\(name)"
    return (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
  }

  /// Ends the child with SIGINT and returns its output.
  func interrupt() throws -> String {
    kill(process.identifier, SIGINT)
    let text = output.readAll(atMost: .max)
    process.waitUntilExit()
    return text
  }

  /// The largest peak memory among finished child processes, in MB.
  static var largestMemory: Double {
    var usage = rusage()
    getrusage(Int32(truncatingIfNeeded: RUSAGE_CHILDREN.rawValue), &usage)
    return Double(usage.ru_maxrss) / 1024
  }
}

/// A child's standard error, read continuously because the child would block if the pipe became
/// full.
private final class Said: Sendable {
  private struct State {
    var text = ""
    var isOver = false
  }

  private let state = Mutex(State())
  private let changes = DispatchSemaphore(value: 0)

  /// Adds output, and returns false if it is empty, which marks the end.
  func add(_ more: [UInt8]) -> Bool {
    state.withLock { state in
      state.text += String(decoding: more, as: UTF8.self)
      state.isOver = more.isEmpty
    }
    changes.signal()
    return !more.isEmpty
  }

  /// Waits for the given text, or for the end of the output if nil; returns the complete output and
  /// whether the text was found.
  func wait(for text: String?) -> (text: String, isThere: Bool) {
    while true {
      let seen = state.withLock { $0 }
      let isThere = text.map { seen.text.contains($0) } ?? seen.isOver
      if isThere || seen.isOver { return (seen.text, isThere) }
      changes.wait()
    }
  }
}

// MARK: - WireTraffic

/// Generates RTP packets like those of dozens of simultaneous phone calls, all at the same rate.
struct WireTraffic: ~Copyable {
  /// The master key and salt that every end shares.
  static let key = [UInt8](0..<28)

  let calls: Int
  let packetLength: Int
  private var protection: SRTPContext?
  /// Random bytes from which payloads are cut.
  private let noise: [UInt8]
  private var sent = 0

  /// An AES-GCM tag's length in bytes.
  private static let tagLength = 16
  private static let headerLength = 12

  /// - Parameter hasKeys: whether packets are encrypted with `key`; otherwise they only look
  ///   encrypted.
  init(calls: Int, packetLength: Int, hasKeys: Bool) throws {
    self.calls = calls
    self.packetLength = packetLength
    protection =
      hasKeys
      ? try SRTPContext(profile: .aeadAES128GCM, sendKey: Self.key, receiveKey: Self.key) : nil
    var state: UInt64 = 1
    noise = (0..<1 << 16).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  /// Returns the next packet, and which of the `2 * calls` ends sends it.
  mutating func next() throws -> (end: Int, bytes: [UInt8]) {
    let end = sent % (2 * calls)
    let number = sent / (2 * calls)
    let length = packetLength - (protection == nil ? 0 : Self.tagLength)
    var bytes: [UInt8] = [0x80, 111]
    bytes.reserveCapacity(packetLength)
    func put(_ value: UInt32, _ count: Int) {
      for place in (0..<count).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * place)))
      }
    }
    put(UInt32(truncatingIfNeeded: number), 2)
    put(UInt32(truncatingIfNeeded: number * 960), 4)
    put(UInt32(1000 + end), 4)
    let begin = sent * 37 % (noise.count - length)
    bytes += noise[begin..<begin + length - Self.headerLength]
    try protection?.protectRTP(&bytes)
    sent += 1
    return (end, bytes)
  }

  /// Writes packets as a raw IP capture, 20 ms apart at each end.
  mutating func write(_ count: Int, to path: String) throws {
    guard let handle = fopen(path, "w") else {
      throw CommandFailure(.inputOutput, "\(path): it cannot be written")
    }
    defer { fclose(handle) }
    var buffer: [UInt8] = []
    func put(_ value: Int, _ count: Int) {
      for place in 0..<count { buffer.append(UInt8(truncatingIfNeeded: value >> (8 * place))) }
    }
    func big(_ value: Int, _ count: Int) {
      for place in (0..<count).reversed() {
        buffer.append(UInt8(truncatingIfNeeded: value >> (8 * place)))
      }
    }
    // The header of a raw IP pcap with timestamps in microseconds.
    for (value, length) in [
      (0xa1b2_c3d4, 4), (2, 2), (4, 2), (0, 4), (0, 4), (262_144, 4), (101, 4),
    ] {
      put(value, length)
    }
    for number in 0..<count {
      let (end, bytes) = try next()
      let microseconds = number / (2 * calls) * 20_000 + end * 20_000 / (2 * calls)
      put(1_700_000_000 + microseconds / 1_000_000, 4)
      put(microseconds % 1_000_000, 4)
      put(28 + bytes.count, 4)
      put(28 + bytes.count, 4)
      big(0x4500, 2)
      big(28 + bytes.count, 2)
      big(number & 0xffff, 2)
      big(0, 2)
      big(0x4011_0000, 4)
      let (call, side) = (end / 2, end % 2)
      big(0x0a00_0001 + call << 8 + side, 4)
      big(0x0a00_0001 + call << 8 + (1 - side), 4)
      big(40_000 + call + side * 5_000, 2)
      big(40_000 + call + (1 - side) * 5_000, 2)
      big(8 + bytes.count, 2)
      big(0, 2)
      buffer += bytes
      if buffer.count > 1 << 20 || number == count - 1 {
        fwrite(buffer, 1, buffer.count, handle)
        buffer.removeAll(keepingCapacity: true)
      }
    }
  }
}

// MARK: - WireFlood

/// Sends packets over loopback at a rate, to ports on which only a capture listens.
struct WireFlood: ~Copyable {
  /// The ports that all calls use at both ends, as a libpcap filter.
  static let ports = "40000-45100"

  private var traffic: WireTraffic
  private var sockets: [Int32]
  private let ends: [UInt16]

  /// The minimum time between bursts, in milliseconds.
  private static let pieceMilliseconds = 2

  init(calls: Int) throws {
    let traffic = try WireTraffic(calls: calls, packetLength: 160, hasKeys: true)
    let ends = (0..<2 * calls).map { (end: Int) -> UInt16 in
      let side = end % 2
      return UInt16(40_000 + end / 2 + side * 5_000)
    }
    var sockets: [Int32] = []
    for port in ends {
      let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      var size: Int32 = 4096
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
      let code = Self.withAddress(port) { bind(socket, $0, $1) }
      sockets.append(socket)
      guard socket >= 0, code == 0 else {
        for socket in sockets where socket >= 0 { close(socket) }
        throw CommandFailure(.inputOutput, "port \(port) of loopback is in use")
      }
    }
    self.traffic = traffic
    self.ends = ends
    self.sockets = sockets
  }

  /// Sends packets for a given time; returns their number.
  mutating func send(rate: Int, seconds: Double) throws -> Int {
    defer {
      for socket in sockets { close(socket) }
      sockets = []
    }
    let begin = ContinuousClock.now
    var sent = 0
    let all = Int(Double(rate) * seconds)
    while sent < all {
      let due = min(all, Int(begin.duration(to: .now).seconds * Double(rate)) + 1)
      while sent < due {
        let (end, bytes) = try traffic.next()
        let length = Self.withAddress(ends[end ^ 1]) { address, size in
          bytes.withUnsafeBufferPointer {
            sendto(sockets[end], $0.baseAddress, $0.count, 0, address, size)
          }
        }
        guard length == bytes.count else {
          throw CommandFailure(.inputOutput, "loopback accepts no more packets")
        }
        sent += 1
      }
      let next = begin + .seconds(Double(sent) / Double(rate))
      let wait = max(ContinuousClock.now.duration(to: next), .milliseconds(Self.pieceMilliseconds))
      usleep(UInt32(wait.seconds * 1e6))
    }
    return sent
  }

  private static func withAddress<Result>(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }
}
