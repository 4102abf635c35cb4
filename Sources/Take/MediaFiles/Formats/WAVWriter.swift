package import Media

/// Writes 16-bit PCM WAV: the header, then samples.
package enum WAVWriter {
  /// The header of a file.
  ///
  /// - Parameter dataByteCount: how many bytes of samples follow; nil when that is not known yet.
  package static func header(_ format: WAVFormat, dataByteCount: Int?) -> [UInt8] {
    let size = dataByteCount.map { UInt32(clamping: $0) } ?? .max
    let width = UInt32(2 * format.channels)
    let rate = UInt32(clamping: format.sampleRate)
    var bytes = Array("RIFF".utf8)
    append(size > .max - 36 ? .max : size + 36, 4, to: &bytes)
    bytes.append(contentsOf: "WAVEfmt ".utf8)
    append(16, 4, to: &bytes)
    append(1, 2, to: &bytes)
    append(UInt32(clamping: format.channels), 2, to: &bytes)
    append(rate, 4, to: &bytes)
    append(rate &* width, 4, to: &bytes)
    append(width, 2, to: &bytes)
    append(16, 2, to: &bytes)
    bytes.append(contentsOf: "data".utf8)
    append(size, 4, to: &bytes)
    return bytes
  }

  /// Samples as bytes; a block without content is silence.
  package static func samples(_ block: AudioBlock) -> [UInt8] {
    guard !block.samples.isEmpty else {
      return Array(repeating: 0, count: 2 * max(0, block.frameCount) * block.channels)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(2 * block.samples.count)
    for sample in block.samples {
      bytes.append(UInt8(truncatingIfNeeded: sample))
      bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
    }
    return bytes
  }

  private static func append(_ value: UInt32, _ count: Int, to bytes: inout [UInt8]) {
    for index in 0..<count {
      bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * index)))
    }
  }
}
