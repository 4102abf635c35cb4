/// A WAV file of G.711 as received (WAVE_FORMAT_MULAW and WAVE_FORMAT_ALAW), 8 kHz in one channel,
/// with silence where nothing was played.
package struct G711WAVWriter {
  /// How much silence all pauses have together at most, in samples: ten minutes.
  private static let silenceMaximum = 4_800_000
  /// Blocks that are played a little later than the ones before end leave no pause.
  private static let pauseMinimum = 800
  private static let rate = 8_000

  private let isALaw: Bool
  private var samples: [UInt8] = []
  private var silence = 0

  package init(isALaw: Bool) { self.isALaw = isALaw }

  /// Appends a payload that was played at a time, in milliseconds from the first one on.
  package mutating func add(_ payload: [UInt8], at milliseconds: Int64) {
    let place = Int(clamping: milliseconds).multipliedReportingOverflow(by: 8).partialValue
    let pause = place.subtractingReportingOverflow(samples.count).partialValue
    if pause >= G711WAVWriter.pauseMinimum {
      let length = min(pause, G711WAVWriter.silenceMaximum - silence)
      silence += length
      samples.append(contentsOf: repeatElement(isALaw ? 0xd5 : 0xff, count: length))
    }
    samples.append(contentsOf: payload)
  }

  /// The whole file; nil when it has nothing.
  package func file() -> [UInt8]? {
    guard !samples.isEmpty, let size = UInt32(exactly: samples.count + 50) else { return nil }
    var bytes = Array("RIFF".utf8)
    func append(_ value: UInt32, _ count: Int = 4) {
      for place in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * place))) }
    }
    append(size)
    bytes += Array("WAVEfmt ".utf8)
    append(18)
    append(isALaw ? 6 : 7, 2)
    append(1, 2)
    append(UInt32(G711WAVWriter.rate))
    append(UInt32(G711WAVWriter.rate))
    append(1, 2)
    append(8, 2)
    append(0, 2)
    // What is compressed states how many samples it has.
    bytes += Array("fact".utf8)
    append(4)
    append(UInt32(samples.count))
    bytes += Array("data".utf8)
    append(UInt32(samples.count))
    return bytes + samples
  }
}
