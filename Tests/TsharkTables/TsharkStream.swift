import Foundation

/// A line in tshark's table of RTP streams.
package struct TsharkStream: Sendable {
  /// The stream's source port.
  package let port: UInt16
  package let ssrc: UInt32
  package let packets: Int
  package let lost: Int
  /// The mean jitter in milliseconds; 0 if tshark does not know the clock.
  ///
  /// Packets with the marker bit are counted, but affect neither mean nor maximum.
  package let meanJitter: Double
  /// The maximum jitter in milliseconds, computed in the same way.
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

  /// The path of tshark; nil if it is not installed.
  package static let tool = ["/usr/bin/tshark", "/usr/local/bin/tshark"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// Returns the streams that tshark finds in a capture; none if it is not installed.
  ///
  /// - Parameter ports: ports whose datagrams are RTP although the capture does not say so.
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
