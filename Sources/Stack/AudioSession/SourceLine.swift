import Media
import Wire

/// One audio source before mixing: converted, split, and padded with silence.
struct SourceLine {
  /// 10 ms of audio at 48 kHz.
  struct Unit {
    var samples: [Int16]
    /// Whether the unit is silence that replaces missing audio.
    var isFiller: Bool
  }

  /// A change of the source's format, and the number of frames lost in it.
  struct Change {
    var from: AudioFormat
    var lostFrames: Int
  }

  let id: AudioSourceID
  private let channels: Int
  private let patience: Interval
  private(set) var format: AudioFormat?
  private var resampler: Resampler?
  private var splitter: TenMillisecondSplitter
  private var units: [Unit] = []
  /// The end of the audio received or inserted so far; nil while the source is not expected.
  private var coveredUntil: Instant?
  private(set) var deadline: Instant?
  /// Silent blocks since the source stopped providing audio; nil while it provides audio.
  private(set) var silentBlocks: Int?
  /// The reason that the source's audio is currently dropped; reported once.
  var refusal: String?

  static let unitLength = Interval.milliseconds(10)
  /// The maximum time by which a source's audio may run ahead of the session's clock.
  private static let leadMaximum = Interval.milliseconds(200)
  /// The maximum number of units that wait for other sources.
  private static let unitsMaximum = 200
  /// The maximum number of silent units inserted at once; a longer stall leaves a gap.
  private static let fillMaximum: Int64 = 100

  init(_ id: AudioSourceID, channels: Int, patience: Interval) {
    self.id = id
    self.channels = channels
    self.patience = patience
    splitter = TenMillisecondSplitter(sampleRate: AudioBlock.sampleRate, channels: channels)
  }

  /// Whether the mixer waits for this source.
  var isExpected: Bool { coveredUntil != nil }
  var hasUnit: Bool { !units.isEmpty }
  var isResampled: Bool { format.map { $0.sampleRate != AudioBlock.sampleRate } ?? false }

  mutating func popUnit() -> Unit? { units.isEmpty ? nil : units.removeFirst() }

  /// Recreates the conversion for a format; audio that did not fill a unit is lost.
  /// - Returns: the change; nil if the format is the first one or unchanged.
  mutating func prepare(_ next: AudioFormat) -> Change? {
    guard next != format else { return nil }
    let lost = splitter.reset() / channels
    defer { format = next }
    resampler =
      next.sampleRate == AudioBlock.sampleRate
      ? nil : Resampler(rate: next.sampleRate, channels: channels)
    guard let format else { return nil }
    // The lost frames are reported at the source's rate.
    return Change(from: format, lostFrames: lost * format.sampleRate / AudioBlock.sampleRate)
  }

  /// Adds a chunk in the current format; returns how many units were dropped.
  mutating func append(_ chunk: PCMChunk, at now: Instant) -> Int {
    silentBlocks = nil
    var samples = mapped(chunk.samples, from: chunk.format.channels)
    if resampler != nil {
      var converted: [Int16] = []
      resampler?.append(samples, into: &converted)
      samples = converted
    }
    splitter.deliver(samples) { units.append(Unit(samples: $0, isFiller: false)) }
    let length = Interval(
      nanoseconds: Int64(chunk.frameCount) * 1_000_000_000 / Int64(chunk.format.sampleRate))
    // The chunk starts now or at the end of earlier audio, whichever is later, within limits.
    let begin = min(max(now, coveredUntil ?? now), now + SourceLine.leadMaximum)
    coveredUntil = begin + length
    deadline = begin + max(patience, length + SourceLine.unitLength)
    return dropSurplus()
  }

  /// Inserts silence where audio is missing; returns the numbers of silent and of dropped units.
  mutating func fill(at now: Instant) -> (silent: Int, dropped: Int) {
    guard let due = deadline, due <= now, var covered = coveredUntil else { return (0, 0) }
    // Fill up a partial unit with silence; the unit still counts as audio.
    let missing = (splitter.unit - splitter.remainder) / channels
    if let rest = splitter.drain() {
      units.append(Unit(samples: rest, isFiller: false))
      covered += Interval(
        nanoseconds: Int64(missing) * 1_000_000_000 / Int64(AudioBlock.sampleRate))
    }
    var count = max(0, (now - covered).nanoseconds / SourceLine.unitLength.nanoseconds)
    if count > SourceLine.fillMaximum {
      count = SourceLine.fillMaximum
      coveredUntil = now
    } else {
      coveredUntil = covered + SourceLine.unitLength * count
    }
    let silence = Unit(samples: Array(repeating: 0, count: splitter.unit), isFiller: true)
    units.append(contentsOf: repeatElement(silence, count: Int(count)))
    silentBlocks = (silentBlocks ?? 0) + Int(count)
    deadline = coveredUntil.map { $0 + SourceLine.unitLength }
    return (Int(count), dropSurplus())
  }

  /// Drops waiting audio and stops expecting the source until it provides audio again.
  mutating func pause() {
    splitter.reset()
    units = []
    (coveredUntil, deadline, silentBlocks) = (nil, nil, nil)
    if let format, format.sampleRate != AudioBlock.sampleRate {
      resampler = Resampler(rate: format.sampleRate, channels: channels)
    }
  }

  private mutating func dropSurplus() -> Int {
    let surplus = max(0, units.count - SourceLine.unitsMaximum)
    units.removeFirst(surplus)
    return surplus
  }

  /// Converts to the senders' channels: mono is the mean of two channels, and stereo repeats a
  /// single channel.
  private func mapped(_ samples: [Int16], from count: Int) -> [Int16] {
    ChannelMap.map(samples[...], from: count, to: channels)
  }
}

/// Converts audio between numbers of channels; channels beyond the second are dropped or left
/// silent.
enum ChannelMap {
  static func map(_ samples: ArraySlice<Int16>, from: Int, to: Int) -> [Int16] {
    if from == to { return Array(samples) }
    var mapped: [Int16] = []
    mapped.reserveCapacity(samples.count / from * to)
    for frame in stride(from: samples.startIndex, to: samples.endIndex - from + 1, by: from) {
      let left = samples[frame]
      let right = from > 1 ? samples[frame + 1] : left
      if to == 1 {
        mapped.append(Int16((Int(left) + Int(right)) >> 1))
      } else {
        mapped.append(left)
        mapped.append(right)
        for _ in 2..<max(2, to) { mapped.append(0) }
      }
    }
    return mapped
  }

  /// Adds audio to a sum of the same length.
  static func add(_ samples: [Int16], to sum: inout [Int32]) {
    for index in 0..<min(samples.count, sum.count) { sum[index] += Int32(samples[index]) }
  }
}

// MARK: - TenMillisecondSplitter

/// Splits audio of any length into 10 ms units, because devices deliver chunks of any length and
/// stacks accept only 10 ms.
public struct TenMillisecondSplitter: Sendable {
  /// Samples per unit, over all channels.
  public let unit: Int
  private var waiting: [Int16] = []
  private var start = 0

  /// Creates an empty splitter; the rate must be a multiple of 100 Hz.
  public init(sampleRate: Int, channels: Int) {
    unit = max(1, sampleRate / 100 * channels)
  }

  /// The number of samples that do not fill a unit yet.
  public var remainder: Int { waiting.count - start }

  /// Adds samples and calls `body` with each completed unit; the rest waits for more samples.
  public mutating func deliver(
    _ samples: some Collection<Int16>, _ body: (_ unit: [Int16]) -> Void
  ) {
    waiting.append(contentsOf: samples)
    while waiting.count - start >= unit {
      body(Array(waiting[start..<start + unit]))
      start += unit
    }
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
  }

  /// Returns the rest as a unit padded with silence; nil if no samples remain.
  public mutating func drain() -> [Int16]? {
    guard remainder > 0 else { return nil }
    let rest = waiting[start...] + repeatElement(0, count: unit - remainder)
    reset()
    return Array(rest)
  }

  /// Drops the rest; returns the number of samples dropped.
  @discardableResult
  public mutating func reset() -> Int {
    defer {
      waiting.removeAll(keepingCapacity: true)
      start = 0
    }
    return remainder
  }
}
