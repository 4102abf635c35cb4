import CZlib
package import Media
import RTP
package import Wire

/// Limits how long a file may go without new media, so that a wrong date in a recording does not
/// fill a disk: an hour of a still VGA picture takes 50 GB.
///
/// Pauses of up to a second are always kept. The rest of a longer pause is charged to a budget for
/// the entire file. Once the budget is used up, pauses are cut and the following media moves
/// forward.
package struct GapBudget: Hashable, Sendable {
  /// The part of a pause that is not charged to the budget, in nanoseconds.
  private static let freeNanoseconds: Int64 = 1_000_000_000

  private var restNanoseconds: Int64
  /// The duration cut from pauses.
  package private(set) var leftOut = Interval(nanoseconds: 0)

  /// - Parameter nanoseconds: the budget; by default nothing is left out.
  package init(nanoseconds: Int64 = .max) { restNanoseconds = max(0, nanoseconds) }

  /// Returns how much of a pause is kept, in nanoseconds, and charges it to the budget.
  ///
  /// - Parameters:
  ///   - length: the part of the pause not accounted for yet, in nanoseconds.
  ///   - start: the length of the part already accounted for.
  mutating func spend(_ length: Int64, after start: Int64 = 0) -> Int64 {
    let length = max(0, length)
    let free = min(length, max(0, GapBudget.freeNanoseconds - max(0, start)))
    let paid = min(length - free, restNanoseconds)
    restNanoseconds -= paid
    let rest = length - free - paid
    leftOut = leftOut + Interval(nanoseconds: rest)
    return free + paid
  }
}

/// Writes media into a file; each conforming type writes one file format.
package protocol FrameWriting {
  /// The duration cut from pauses.
  var leftOut: Interval { get }
  /// Writes media that was played at an instant, if it is of the file's kind; does nothing after a
  /// failure.
  mutating func write(_ media: MediaContent, at: Instant)
  /// Completes the file; returns the number of video frames or audio blocks in it, or the error
  /// that stopped writing.
  mutating func finish() -> Result<Int, MediaFileError>
}

extension FrameWriting {
  package var leftOut: Interval { .zero }
}

/// Writes audio blocks as a WAV file with as many channels as the first block has.
package struct AudioWriter: FrameWriting {
  private let file: MediaFile
  private var format: WAVFormat?
  private var dataByteCount = 0
  private var blockCount = 0
  private var failure: MediaFileError?
  private var gaps: GapBudget
  /// The length of the current silence, in nanoseconds.
  private var silence: Int64 = 0

  package init(_ file: MediaFile, gaps: GapBudget = GapBudget()) {
    self.file = file
    self.gaps = gaps
  }

  package var leftOut: Interval { gaps.leftOut }

  /// Returns the part of a block that is kept: all of a block with sound, and as much of a silent
  /// block as the budget covers.
  private mutating func kept(_ block: AudioBlock) -> AudioBlock {
    guard block.samples.allSatisfy({ $0 == 0 }) else {
      silence = 0
      return block
    }
    let rate = Int64(AudioBlock.sampleRate)
    let length = Int64(block.frameCount) * 1_000_000_000 / rate
    defer { silence = min(silence + length, 1 << 60) }
    let kept = gaps.spend(length, after: silence)
    guard kept < length else { return block }
    return AudioBlock(blank: Int(kept * rate / 1_000_000_000), channels: block.channels)
  }

  package mutating func write(_ media: MediaContent, at: Instant) {
    guard failure == nil, case .audio(let block) = media else { return }
    let kept = kept(block)
    guard kept.frameCount > 0 else { return }
    do throws(MediaFileError) {
      let format = try begin(channels: block.channels)
      let bytes = WAVWriter.samples(kept.converted(toChannels: format.channels))
      try file.write(bytes)
      dataByteCount += bytes.count
      blockCount += 1
    } catch {
      failure = error
    }
  }

  private mutating func begin(channels: Int) throws(MediaFileError) -> WAVFormat {
    if let format { return format }
    let format = WAVFormat(channels: channels, sampleRate: AudioBlock.sampleRate)
    try file.write(WAVWriter.header(format, dataByteCount: nil))
    self.format = format
    return format
  }

  package mutating func finish() -> Result<Int, MediaFileError> {
    if let failure { return .failure(failure) }
    do throws(MediaFileError) {
      // A file without audio is still a WAV file.
      let format = try begin(channels: 1)
      try file.rewind()
      try file.write(WAVWriter.header(format, dataByteCount: dataByteCount))
      return .success(blockCount)
    } catch {
      return .failure(error)
    }
  }
}

/// Writes video frames as a YUV4MPEG2 file with a constant rate and the first video frame's size.
///
/// Each video frame is repeated until the next one, as on a screen; video frames shown for less
/// than one file frame are left out.
package struct VideoWriter: FrameWriting {
  private let file: MediaFile
  private let framesPerSecond: Int
  private var first: (width: Int, height: Int, at: Instant)?
  private var shown: I420Buffer?
  private var frameCount = 0
  private var failure: MediaFileError?
  private var gaps: GapBudget
  /// The time of the video frame being shown, and that frame's time in the file, both in
  /// nanoseconds since the first frame.
  private var lastPassed: Int64 = 0
  private var lastPlace: Int64 = 0

  package init(_ file: MediaFile, framesPerSecond: Int, gaps: GapBudget = GapBudget()) {
    self.file = file
    self.framesPerSecond = max(1, framesPerSecond)
    self.gaps = gaps
  }

  package var leftOut: Interval { gaps.leftOut }

  package mutating func write(_ media: MediaContent, at: Instant) {
    guard failure == nil, case .videoFrame(let videoFrame) = media else { return }
    do throws(MediaFileError) {
      let first = try begin(videoFrame, at)
      let place = place(of: at, from: first.at)
      let seconds = place / 1_000_000_000
      let rest = place % 1_000_000_000 * Int64(framesPerSecond) + 500_000_000
      let frame = seconds *| Int64(framesPerSecond) +| rest / 1_000_000_000
      try show(untilFrame: Int(clamping: frame))
      shown = VideoScaler.scaled(videoFrame, width: first.width, height: first.height)
    } catch {
      failure = error
    }
  }

  /// Returns an instant's time in the file, in nanoseconds, after cutting pauses.
  private mutating func place(of at: Instant, from first: Instant) -> Int64 {
    let now = max(lastPassed, (at - first).nanoseconds)
    lastPlace += gaps.spend(now - lastPassed)
    lastPassed = now
    return lastPlace
  }

  private mutating func begin(_ videoFrame: I420Buffer, _ at: Instant) throws(MediaFileError) -> (
    width: Int, height: Int, at: Instant
  ) {
    if let first { return first }
    let header = Y4MHeader(
      width: videoFrame.width, height: videoFrame.height, rateNumerator: framesPerSecond)
    try file.write(Y4MWriter.header(header))
    let first = (videoFrame.width, videoFrame.height, at)
    self.first = first
    return first
  }

  private mutating func show(untilFrame end: Int) throws(MediaFileError) {
    guard let shown else { return }
    let bytes = Y4MWriter.frame(shown)
    while frameCount < end {
      try file.write(bytes)
      frameCount += 1
    }
  }

  package mutating func finish() -> Result<Int, MediaFileError> {
    if let failure { return .failure(failure) }
    do throws(MediaFileError) {
      try show(untilFrame: frameCount + 1)
      return .success(frameCount)
    } catch {
      return .failure(error)
    }
  }
}

/// Writes encoded video frames consecutively, as a byte stream.
package struct StreamWriter: FrameWriting {
  private let file: MediaFile
  private var frameCount = 0
  private var failure: MediaFileError?

  package init(_ file: MediaFile) { self.file = file }

  package mutating func write(_ media: MediaContent, at: Instant) {
    guard failure == nil, case .encodedVideo(let videoFrame) = media else { return }
    do throws(MediaFileError) {
      try file.write(videoFrame.bytes)
      frameCount += 1
    } catch {
      failure = error
    }
  }

  package mutating func finish() -> Result<Int, MediaFileError> {
    if let failure { return .failure(failure) }
    return .success(frameCount)
  }
}

/// Writes encoded video frames as an IVF file, each with its display time.
package struct TimedStreamWriter: FrameWriting {
  private let file: MediaFile
  private let fourCC: String
  private var first: (size: (width: Int, height: Int), at: Instant)?
  private var frameCount = 0
  /// The previous video frame's time, on the file's clock.
  private var last: Int64 = -1
  private var failure: MediaFileError?

  /// - Parameter fourCC: the codec's four-letter name.
  package init(_ file: MediaFile, fourCC: String) {
    self.file = file
    self.fourCC = fourCC
  }

  package mutating func write(_ media: MediaContent, at: Instant) {
    guard failure == nil, case .encodedVideo(let videoFrame) = media else { return }
    do throws(MediaFileError) {
      let first = try begin(videoFrame, at)
      // Times must increase.
      last = max(last + 1, RTPClock.ticks(from: first, to: at))
      try file.write(IVFWriter.frameHeader(byteCount: videoFrame.bytes.count, time: UInt64(last)))
      try file.write(videoFrame.bytes)
      frameCount += 1
    } catch {
      failure = error
    }
  }

  private mutating func begin(_ videoFrame: EncodedVideoChunk, _ at: Instant) throws(MediaFileError)
    -> Instant
  {
    if let first { return first.at }
    let look = Codec.named(videoFrame.codec)?.look?(videoFrame.bytes.span.bytes)
    let size = look?.size ?? (0, 0)
    try file.write(header(size))
    first = (size, at)
    return at
  }

  private func header(_ size: (width: Int, height: Int)) -> [UInt8] {
    IVFWriter.header(
      fourCC: fourCC, width: size.width, height: size.height, ticksPerSecond: 90_000,
      frameCount: frameCount)
  }

  package mutating func finish() -> Result<Int, MediaFileError> {
    if let failure { return .failure(failure) }
    do throws(MediaFileError) {
      if first != nil { try file.rewind() }
      // A file without video frames is still an IVF file.
      try file.write(header(first?.size ?? (0, 0)))
      return .success(frameCount)
    } catch {
      return .failure(error)
    }
  }
}

extension AudioBlock {
  /// Converts the block to one or two channels: two channels are averaged, and a single channel is
  /// duplicated.
  func converted(toChannels wanted: Int) -> AudioBlock {
    guard wanted != channels else { return self }
    guard !samples.isEmpty else { return AudioBlock(blank: frameCount, channels: wanted) }
    var converted: [Int16] = []
    converted.reserveCapacity(frameCount * wanted)
    for frame in 0..<frameCount {
      let left = Int32(samples[frame * channels])
      let right = Int32(samples[frame * channels + channels - 1])
      converted.append(contentsOf: repeatElement(Int16((left + right) / 2), count: wanted))
    }
    return AudioBlock(samples: converted, channels: wanted)
  }
}

// MARK: - PNG

/// Writes video frames as PNG files (RFC 2083).
package enum PNG {
  /// Returns an I420 video frame as a PNG file, converted with the BT.601 matrix in limited range.
  package static func file(_ videoFrame: I420Buffer) -> [UInt8] {
    let (width, height) = (videoFrame.width, videoFrame.height)
    var header: [UInt8] = []
    header.append(big: UInt32(clamping: width))
    header.append(big: UInt32(clamping: height))
    // 8 bits, colour, deflate, adaptive filtering, not interlaced.
    header += [8, 2, 0, 0, 0]
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", compressed(rows(videoFrame))) + chunk("IEND", [])
  }

  /// Returns the rows in RGB, each preceded by a byte for "no filter".
  private static func rows(_ videoFrame: I420Buffer) -> [UInt8] {
    let (width, height) = (videoFrame.width, videoFrame.height)
    let half = (width + 1) / 2
    let chroma = width * height
    let other = chroma + half * ((height + 1) / 2)
    let samples = videoFrame.samples
    var rows: [UInt8] = []
    rows.reserveCapacity(height * (3 * width + 1))
    for y in 0..<height {
      rows.append(0)
      for x in 0..<width {
        let place = y / 2 * half + x / 2
        let luma = 298 * (Int(samples[y * width + x]) - 16)
        let blue = Int(samples[chroma + place]) - 128
        let red = Int(samples[other + place]) - 128
        for value in [
          luma + 409 * red, luma - 100 * blue - 208 * red, luma + 516 * blue,
        ] {
          rows.append(UInt8(min(max((value + 128) >> 8, 0), 255)))
        }
      }
    }
    return rows
  }

  /// Returns a zlib stream (RFC 1950); empty if memory runs out.
  private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    var length = compressBound(UInt(bytes.count))
    return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
      let code = compress2(
        buffer.baseAddress, &length, bytes, UInt(bytes.count), Z_DEFAULT_COMPRESSION)
      count = code == Z_OK ? Int(length) : 0
    }
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let body = Array(type.utf8) + content
    var bytes: [UInt8] = []
    bytes.append(big: UInt32(clamping: content.count))
    bytes += body
    bytes.append(big: UInt32(truncatingIfNeeded: crc32(0, body, UInt32(clamping: body.count))))
    return bytes
  }
}

extension [UInt8] {
  fileprivate mutating func append(big value: UInt32) {
    for shift: UInt32 in [24, 16, 8, 0] { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
