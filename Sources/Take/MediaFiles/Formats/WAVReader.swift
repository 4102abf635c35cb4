package import Media
import Wire

/// Reads 16-bit PCM WAV from pieces of any size and gives it at 48 kHz: give bytes with `append`,
/// then take blocks with `next` until there is none; after `finish` take the rest.
package struct WAVReader {
  private enum Phase {
    case riff
    case chunk
    case format(size: Int)
    case skip(Int)
    /// The bytes of audio left; nil when the file was written without knowing its length.
    case data(Int?)
    case end
    case failed(WAVError)
  }

  /// The format, once it was read.
  package private(set) var format: WAVFormat?

  /// Where the chunk that is being read begins, in bytes from the beginning of the file.
  package private(set) var partPosition = 0

  private var buffer = PieceBuffer()
  private var phase = Phase.riff
  /// Whether the file says how long it is.
  private var hasLength = true
  private var resampler: Resampler?
  /// Samples at 48 kHz that wait for `next`.
  private var samples: [Int16] = []
  private var taken = 0

  /// Creates a reader at the beginning of a file.
  package init() {}

  /// Gives the reader the next bytes of the file.
  package mutating func append(_ piece: RawSpan) throws(WAVError) {
    buffer.append(piece)
    do throws(WAVError) {
      while try advance() {}
    } catch {
      phase = .failed(error)
      throw error
    }
  }

  /// The next block of so many samples per channel at 48 kHz, or nil when more bytes are needed.
  package mutating func next(frameCount: Int = 960) -> AudioBlock? {
    guard let format, frameCount > 0 else { return nil }
    let count = frameCount * format.channels
    guard samples.count - taken >= count else { return nil }
    let block = AudioBlock(
      samples: Array(samples[taken..<taken + count]), channels: format.channels)
    taken += count
    if taken >= 1 << 16 {
      samples.removeFirst(taken)
      taken = 0
    }
    return block
  }

  /// Says that the file has ended; then `next` and `rest` give what is left.
  package mutating func finish() throws(WAVError) {
    switch phase {
    case .failed(let error): throw error
    case .riff: throw buffer.count == 0 ? .notWAV : .truncated
    case .chunk, .format, .skip: throw .truncated
    case .data, .end: break
    }
    resampler?.finish(into: &samples)
    resampler = nil
    phase = .end
  }

  /// The last block, shorter than the others, after `finish`.
  package mutating func rest() -> AudioBlock? {
    guard let format, samples.count > taken else { return nil }
    let block = AudioBlock(samples: Array(samples[taken...]), channels: format.channels)
    samples = []
    taken = 0
    return block
  }

  /// Reads the next part of the file; false when more bytes are needed.
  private mutating func advance() throws(WAVError) -> Bool {
    switch phase {
    case .riff:
      guard let bytes = buffer.read(12) else { return false }
      guard bytes[0..<4].elementsEqual("RIFF".utf8), bytes[8..<12].elementsEqual("WAVE".utf8)
      else { throw .notWAV }
      hasLength = WAVReader.isLength(number(bytes, at: 4, count: 4))
      phase = .chunk
      return true
    case .chunk: return try beginChunk()
    case .format(let size):
      guard let bytes = buffer.read(size) else { return false }
      try parseFormat(bytes)
      phase = .chunk
      return true
    case .skip(let count):
      let dropped = buffer.drop(count)
      phase = dropped == count ? .chunk : .skip(count - dropped)
      return dropped == count
    case .data(let left): return readAudio(left)
    case .end, .failed:
      _ = buffer.drop(.max)
      return false
    }
  }

  /// Programs that write to a pipe leave 0 or nearly all ones where a length belongs.
  private static func isLength(_ number: UInt64) -> Bool { (1..<0xFFFF_FF00).contains(number) }

  private mutating func beginChunk() throws(WAVError) -> Bool {
    partPosition = buffer.position
    guard let bytes = buffer.read(8) else { return false }
    let size = Int(number(bytes, at: 4, count: 4))
    // Chunks are padded to an even length.
    let padded = size + size % 2
    if bytes[0..<4].elementsEqual("fmt ".utf8), format == nil {
      guard size >= 16, size <= 4_096 else { throw .malformedFormat }
      phase = .format(size: padded)
    } else if bytes[0..<4].elementsEqual("data".utf8) {
      guard format != nil else { throw .malformedFormat }
      let isKnown = size == 0 ? hasLength : WAVReader.isLength(UInt64(size))
      phase = .data(isKnown ? size : nil)
    } else {
      phase = .skip(padded)
    }
    return true
  }

  /// The WAVEFORMATEX structure, and its extensible form.
  private mutating func parseFormat(_ bytes: [UInt8]) throws(WAVError) {
    var tag = UInt16(number(bytes, at: 0, count: 2))
    let channels = UInt16(number(bytes, at: 2, count: 2))
    let rate = UInt32(number(bytes, at: 4, count: 4))
    let bits = UInt16(number(bytes, at: 14, count: 2))
    if tag == 0xFFFE, bytes.count >= 26 { tag = UInt16(number(bytes, at: 24, count: 2)) }
    guard tag == 1, bits == 16 else { throw .unsupportedSamples(format: tag, bits: bits) }
    guard (1...2).contains(channels) else { throw .unsupportedChannels(channels) }
    guard Resampler.rates.contains(Int(rate)) else { throw .unsupportedRate(rate) }
    format = WAVFormat(channels: Int(channels), sampleRate: Int(rate))
    resampler = Resampler(rate: Int(rate), channels: Int(channels))
  }

  private mutating func readAudio(_ left: Int?) -> Bool {
    guard let format else { return false }
    let width = 2 * format.channels
    let whole = min(buffer.count, left ?? .max) / width * width
    if whole > 0, let bytes = buffer.read(whole) {
      let input = (0..<whole / 2).map { index in
        Int16(bitPattern: UInt16(bytes[2 * index]) | UInt16(bytes[2 * index + 1]) << 8)
      }
      resampler?.append(input, into: &samples)
    }
    guard let left else { return false }
    guard left - whole < width else {
      phase = .data(left - whole)
      return false
    }
    phase = .end
    return true
  }

  private func number(_ bytes: [UInt8], at offset: Int, count: Int) -> UInt64 {
    (0..<count).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
  }
}
