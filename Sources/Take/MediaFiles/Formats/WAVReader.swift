public import Media
import Wire

/// An error in a WAV file.
package enum WAVError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with RIFF and WAVE.
  case notWAV
  /// The data begins before the format is known, or the format chunk has an impossible length.
  case malformedFormat
  /// Samples that are not 16-bit PCM, with the format tag and the bits per sample.
  case unsupportedSamples(format: UInt16, bits: UInt16)
  /// A number of channels other than one or two.
  case unsupportedChannels(UInt16)
  /// A sampling rate below 8 kHz or above 192 kHz.
  case unsupportedRate(UInt32)
  /// The file ended before the audio began.
  case truncated

  package var description: String {
    switch self {
    case .notWAV:
      "the file is not a WAV file: convert it, as ffmpeg does with -c:a pcm_s16le NAME.wav"
    case .malformedFormat:
      "the WAV file has no usable format chunk before its data: convert it again"
    case .unsupportedSamples(let format, let bits):
      "WAV samples of \(bits) bits\(WAVError.name(ofFormat: format)) are not supported; convert"
        + " them to 16-bit PCM"
    case .unsupportedChannels(let count):
      "WAV files with \(count) channels are not supported; convert the file to one or two"
    case .unsupportedRate(let rate):
      "the WAV sampling rate \(rate) Hz is not supported; convert the file to 8000 to 192000 Hz"
    case .truncated: "the WAV file ends before its audio begins: convert it again"
    }
  }
}

extension WAVError {
  /// Returns a WAVEFORMATEX format tag's common name, for use after a number of bits.
  private static func name(ofFormat tag: UInt16) -> String {
    switch tag {
    case 1: ""
    case 3: " in floating point"
    case 6: " in A-law"
    case 7: " in µ-law"
    default: " in format \(tag)"
    }
  }
}

/// The format of a 16-bit PCM WAV file.
package struct WAVFormat: Hashable, Sendable {
  package var channels: Int
  /// The sampling rate in Hz.
  package var sampleRate: Int

  package init(channels: Int, sampleRate: Int) {
    self.channels = channels
    self.sampleRate = sampleRate
  }
}

// MARK: - WAVReader

/// Reads 16-bit PCM WAV from pieces of any size and converts it to 48 kHz: append pieces, call
/// `next` until it returns nil, and after `finish` call `rest`.
package struct WAVReader {
  private enum Phase {
    case riff
    case chunk
    case format(size: Int)
    case skip(Int)
    /// The remaining bytes of audio; nil if the file does not state its length.
    case data(Int?)
    case end
    case failed(WAVError)
  }

  /// The format; nil until it has been read.
  package private(set) var format: WAVFormat?

  /// The offset of the chunk being read.
  package private(set) var partPosition = 0

  private var buffer = PieceBuffer()
  private var phase = Phase.riff
  /// Whether the file states its length.
  private var hasLength = true
  private var resampler: Resampler?
  /// Samples at 48 kHz waiting for `next`.
  private var samples: [Int16] = []
  private var taken = 0

  package init() {}

  package mutating func append(_ piece: RawSpan) throws(WAVError) {
    buffer.append(piece)
    do throws(WAVError) {
      while try advance() {}
    } catch {
      phase = .failed(error)
      throw error
    }
  }

  /// Returns the next block of `frameCount` samples per channel at 48 kHz; nil if more bytes are
  /// needed.
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

  /// Marks the end of the file; `next` and `rest` then return the remaining audio.
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

  /// Returns the last block, which is shorter than the others, after `finish`; nil if nothing is
  /// left.
  package mutating func rest() -> AudioBlock? {
    guard let format, samples.count > taken else { return nil }
    let block = AudioBlock(samples: Array(samples[taken...]), channels: format.channels)
    samples = []
    taken = 0
    return block
  }

  /// Reads the next part of the file; returns false if more bytes are needed.
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

  /// Returns whether a stated length is real; programs that write to a pipe state 0 or a number
  /// close to the maximum.
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

  /// Parses the WAVEFORMATEX structure, or its extensible form.
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

// MARK: - WAVWriter

/// Writes 16-bit PCM WAV: the header, then samples.
package enum WAVWriter {
  /// Returns a file's header.
  ///
  /// - Parameter dataByteCount: how many bytes of samples follow; nil if not known yet.
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

  /// Returns the samples as bytes; a block without content is silence.
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

// MARK: - G711WAVWriter

/// A WAV file with G.711 as received (WAVE_FORMAT_MULAW and WAVE_FORMAT_ALAW), 8 kHz in one
/// channel, with silence where nothing was played.
package struct G711WAVWriter {
  /// The maximum silence in all pauses together, in samples: ten minutes.
  private static let silenceMaximum = 4_800_000
  /// The shortest gap between blocks that counts as a pause, in samples.
  private static let pauseMinimum = 800
  private static let rate = 8_000

  private let isALaw: Bool
  private var samples: [UInt8] = []
  private var silence = 0

  package init(isALaw: Bool) { self.isALaw = isALaw }

  /// Appends a payload that was played `milliseconds` after the first one.
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

  /// Returns the complete file; nil without audio, or if it would exceed 4 GiB.
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
    // Compressed formats state the number of samples.
    bytes += Array("fact".utf8)
    append(4)
    append(UInt32(samples.count))
    bytes += Array("data".utf8)
    append(UInt32(samples.count))
    return bytes + samples
  }
}

/// Provides audio from a WAV file in blocks of 20 ms at 48 kHz, optionally repeated.
public struct WAVFileSource: TimedMedia {
  private var file: RepeatedFile<WAVReader>
  private var frameCount: Int64 = 0

  /// Opens a file and reads its first block, so that a file without audio is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
  }

  /// Returns the next block and its time; nil at the end of the file.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let block = try file.next() else { return nil }
    defer { frameCount += Int64(block.frameCount) }
    return (.audio(block), frameCount * 1_000_000 / (Int64(AudioBlock.sampleRate) / 1_000))
  }
}

extension WAVReader: PieceReader {
  typealias Fault = WAVError

  static var emptiness: String { "the file contains no audio: record it again" }

  mutating func next() -> AudioBlock? { next(frameCount: AudioBlock.sampleRate / 50) }

  func place(of fault: WAVError, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    (nil, fault == .malformedFormat || fault == .truncated ? partPosition : nil)
  }
}
