import Foundation

/// A line of tshark's table of RTP streams.
package struct TsharkStream: Sendable {
  /// The port that the stream comes from.
  package let port: UInt16
  package let ssrc: UInt32
  package let packets: Int
  package let lost: Int
  /// In milliseconds; 0 if tshark knows no clock.
  ///
  /// Packets with the marker count in how many there are, but move neither mean nor maximum.
  package let meanJitter: Double
  /// In milliseconds, in the same way.
  package let maximumJitter: Double

  private init?(_ line: Substring) {
    let fields = line.split(separator: " ")
    guard let place = fields.firstIndex(where: { $0.hasPrefix("0x") }), place >= 6,
      let port = UInt16(fields[place - 3]),
      let ssrc = UInt32(fields[place].dropFirst(2), radix: 16),
      let percent = fields.firstIndex(where: { $0.hasPrefix("(") }), fields.count > percent + 6,
      let packets = Int(fields[percent - 2]), let lost = Int(fields[percent - 1]),
      let mean = Double(fields[percent + 5]), let maximum = Double(fields[percent + 6])
    else { return nil }
    (self.port, self.ssrc) = (port, ssrc)
    (self.packets, self.lost) = (packets, lost)
    (meanJitter, maximumJitter) = (mean, maximum)
  }

  /// Where tshark is; nil if it is not installed.
  package static let tool = ["/usr/bin/tshark", "/usr/local/bin/tshark"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// The streams that tshark finds in a capture; none where it is not installed.
  ///
  /// - Parameter ports: those whose datagrams are RTP although nothing in the capture says so.
  package static func streams(in capture: String, ports: [UInt16] = []) throws -> [TsharkStream] {
    guard let tool else { return [] }
    let process = Process()
    process.executableURL = URL(filePath: tool)
    process.arguments =
      ["-n", "-q", "-z", "rtp,streams", "-r", capture]
      + ports.flatMap { ["-d", "udp.port==\($0),rtp"] }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return text.split(separator: "\n").compactMap { TsharkStream($0) }
  }
}
