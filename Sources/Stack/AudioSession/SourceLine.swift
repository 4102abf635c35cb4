import Media
import Wire

/// One source of audio on its way to the mixer: converted, cut, and filled up where it is silent.
struct SourceLine {
  /// 10 ms at 48 kHz.
  struct Unit {
    var samples: [Int16]
    /// Whether it is silence in place of missing audio.
    var isFiller: Bool
  }

  /// A change of format.
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
  /// Until when the audio lasts that came or was put in its place; nil while it is not waited for.
  private var coveredUntil: Instant?
  private(set) var deadline: Instant?
  /// Blocks of silence since the source gave nothing; nil while it gives.
  private(set) var silentBlocks: Int?
  /// Why it is dropped at present; it is told once.
  var refusal: String?

  static let unitLength = Interval.milliseconds(10)
  /// How far a source's clock may run ahead of the session's.
  private static let leadMaximum = Interval.milliseconds(200)
  /// How many units wait for other sources.
  private static let unitsMaximum = 200
  /// The most silence inserted at once; a machine that stood still leaves a gap.
  private static let fillMaximum: Int64 = 100

  init(_ id: AudioSourceID, channels: Int, patience: Interval) {
    self.id = id
    self.channels = channels
    self.patience = patience
    splitter = TenMillisecondSplitter(sampleRate: AudioBlock.sampleRate, channels: channels)
  }

  /// Whether the mixer waits for it.
  var isExpected: Bool { coveredUntil != nil }
  var hasUnit: Bool { !units.isEmpty }
  var isResampled: Bool { format.map { $0.sampleRate != AudioBlock.sampleRate } ?? false }

  mutating func popUnit() -> Unit? { units.isEmpty ? nil : units.removeFirst() }

  /// Creates the conversion anew for a format; what did not fill a unit is lost.
  mutating func prepare(_ next: AudioFormat) -> Change? {
    guard next != format else { return nil }
    let lost = splitter.reset() / channels
    defer { format = next }
    resampler =
      next.sampleRate == AudioBlock.sampleRate
      ? nil : Resampler(rate: next.sampleRate, channels: channels)
    guard let format else { return nil }
    // Told in the rate in which it came.
    return Change(from: format, lostFrames: lost * format.sampleRate / AudioBlock.sampleRate)
  }

  /// Handles a chunk of the present format; returns how many units had to be dropped.
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
    // It is heard from now on, or when that is heard which came before.
    let begin = min(max(now, coveredUntil ?? now), now + SourceLine.leadMaximum)
    coveredUntil = begin + length
    deadline = begin + max(patience, length + SourceLine.unitLength)
    return dropSurplus()
  }

  /// Puts silence where audio is missing by now; returns how much, and how much had to be dropped.
  mutating func fill(at now: Instant) -> (silent: Int, dropped: Int) {
    guard let due = deadline, due <= now, var covered = coveredUntil else { return (0, 0) }
    // What did not fill a unit is filled up with silence that counts as audio.
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

  /// Forgets what waits, and waits for nothing until audio comes again.
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

  /// The channels that senders want: one is the mean of two, two are twice the one.
  private func mapped(_ samples: [Int16], from count: Int) -> [Int16] {
    ChannelMap.map(samples[...], from: count, to: channels)
  }
}

/// Turns so many channels into others.
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

  /// Adds audio to other audio of the same length; what is too loud is cut off.
  static func add(_ samples: [Int16], to sum: inout [Int32]) {
    for index in 0..<min(samples.count, sum.count) { sum[index] += Int32(samples[index]) }
  }
}
