import FaultyCalls
import Foundation
import Tape

/// Replaces an end's take with the take of an observer who saw the end's packets.
enum WireSight {
  /// - Parameter hasKeys: whether the observer also has the keys, which decrypt the media.
  static func replace(
    _ path: String, with retake: String, hasKeys: Bool = true, options: [String] = []
  ) throws {
    let capture = path + (hasKeys ? ".pcapng" : ".pcap")
    let descriptions = try descriptions(of: path)
    try Program.run(
      retake, ["export", path, hasKeys ? "--pcapng" : "--pcap", capture, "--force"])
    let options =
      options + descriptions.flatMap { ["--sdp", $0] } + (hasKeys ? ["--decode"] : [])
    try Program.run(retake, ["import", capture, "--out", path, "--force"] + options)
    for file in descriptions + [capture] { try FileManager.default.removeItem(atPath: file) }
  }

  /// Writes the signaled descriptions to files, for an observer who also watches the signaling.
  private static func descriptions(of path: String) throws -> [String] {
    let connection = try TakeFile.openForQueries(path)
    let rows = try connection.prepare(
      "SELECT DISTINCT message FROM signaling WHERE type IN ('offer', 'answer') LIMIT 20")
    var files: [String] = []
    while try rows.step() {
      let file = "\(path).\(files.count).sdp"
      try (rows.text(0) ?? "").write(toFile: file, atomically: true, encoding: .utf8)
      files.append(file)
    }
    return files
  }
}

/// Replaces an end's take with one imported from another stack's file about the same call.
enum OtherStack: String, CaseIterable {
  case internals = "webrtc-internals"
  case rtcstats, mjr, rtpdump, eventlog

  func replace(_ path: String, with retake: String, options: [String]) throws {
    let folder = path + ".files"
    try? FileManager.default.removeItem(atPath: folder)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let file = try write(path, retake, folder)
    try Program.run(retake, ["import", file, "--out", path, "--force"] + options)
    try FileManager.default.removeItem(atPath: folder)
  }

  /// Writes a take as a file in the other stack's format, and returns the path to import.
  private func write(_ path: String, _ retake: String, _ folder: String) throws -> String {
    switch self {
    case .internals, .rtcstats, .rtpdump:
      let file = "\(folder)/call.\(rawValue)"
      try Program.run(retake, ["export", path, "--format", rawValue, "--out", file])
      return file
    case .mjr:
      try Program.run(retake, ["export", path, "--format", rawValue, "--out", folder])
      let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      return "\(folder)/\(files.first { $0.hasSuffix(".nfo") } ?? files.first ?? "")"
    case .eventlog:
      let file = "\(folder)/call.log"
      try Data(EventLogFile.bytes(of: path)).write(to: URL(filePath: file))
      return file
    }
  }
}

/// An event log of libwebrtc, version 2 (rtc_event_log2.proto), with a batch for each RTP packet.
private enum EventLogFile {
  /// The bytes of an RTP header without extensions.
  private static let headerBytes = 12

  static func bytes(of path: String) throws -> [UInt8] {
    let take = try TakeFile.openForQueries(path)
    let start = UInt64(max(0, try take.integer("SELECT start_unix_ns FROM take") ?? 0)) / 1_000_000
    var log = field(16, field(1, 0) + field(2, 2) + field(3, start))
    let rows = try take.prepare(
      """
      SELECT direction = 'out', at_ns, marker, payload_type, sequence, rtp_time, ssrc, size
      FROM packet WHERE protocol = 'rtp' ORDER BY row
      """)
    while try rows.step() {
      let number = { (column: Int) in UInt64(max(0, rows.integer(column))) }
      let packet =
        field(1, number(1) / 1_000_000) + field(2, number(2)) + field(3, number(3))
        + field(4, number(4)) + fixed(5, number(5)) + fixed(6, number(6))
        + field(8, number(7) - UInt64(headerBytes)) + field(9, UInt64(headerBytes)) + field(10, 0)
      log += field(number(0) == 1 ? 3 : 2, packet)
    }
    return log
  }

  private static func varint(_ value: UInt64) -> [UInt8] {
    var (rest, bytes) = (value, [UInt8]())
    repeat {
      bytes.append(UInt8(rest & 127) | (rest > 127 ? 128 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  private static func field(_ number: UInt64, _ value: UInt64) -> [UInt8] {
    varint(number << 3) + varint(value)
  }

  private static func field(_ number: UInt64, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(UInt64(bytes.count)) + bytes
  }

  private static func fixed(_ number: UInt64, _ value: UInt64) -> [UInt8] {
    varint(number << 3 | 5) + (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}

private enum Program {
  static func run(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    // Discards the messages in which each import reports what its format does not contain.
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw CocoaError(
        .executableLoad,
        userInfo: [NSLocalizedDescriptionKey: "\(program) \(arguments) ended with an error"])
    }
  }
}
