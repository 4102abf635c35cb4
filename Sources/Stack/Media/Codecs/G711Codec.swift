import RTP

/// An encoder of G.711 (ITU-T G.711, RFC 3551 section 4.5.14): 160 bytes for each block of 20 ms.
final class G711Encoder: AudioEncoding {
  private let law: G711Law
  private let channels: Int
  private var filter = NarrowbandFilter.Down()

  init(_ law: G711Law, channels: Int) {
    self.law = law
    self.channels = max(1, channels)
  }

  var wantsSamples: Bool { true }

  /// No effect: G.711 has only one rate.
  func setPacketLoss(percent: Int32) {}

  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    let length = BlockCutter.blockLength
    guard block.frameCount == length, block.channels == channels else {
      throw CodecError(
        reason: "a block for G.711 has \(length) samples in \(channels) channels, "
          + "not \(block.frameCount) in \(block.channels)")
    }
    // A block without content is silence.
    let samples =
      block.samples.count == length * channels
      ? block.samples : [Int16](repeating: 0, count: length * channels)
    var narrow: [Int16] = []
    filter.append(mono(samples), into: &narrow)
    let loudness = Loudness(samples: samples, channels: channels)
    let level = AudioMeter.level(energy: loudness.energy, frameCount: length)
    return EncodedAudio(
      bytes: narrow.map { law.encode($0) }, isVoice: AudioMeter.isVoice(level), level: level,
      peak: loudness.peak, energy: loudness.energy)
  }

  /// The mean of the channels.
  private func mono(_ samples: [Int16]) -> [Int16] {
    guard channels > 1 else { return samples }
    return stride(from: 0, to: samples.count - channels + 1, by: channels).map { first in
      var sum = 0
      for channel in 0..<channels { sum += Int(samples[first + channel]) }
      return Int16(clamping: sum / channels)
    }
  }
}

/// A decoder of G.711, to 48 kHz in one or two identical channels.
package final class G711Decoder: AudioDecoding {
  private let law: G711Law
  private let channels: Int
  private var filter = NarrowbandFilter.Up()
  private var concealment = NarrowbandConcealment()

  package init(_ law: G711Law, channels: Int) {
    self.law = law
    self.channels = min(max(channels, 1), 2)
  }

  package func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    switch request {
    case .payload(let bytes):
      let samples = law.samples
      return output(concealment.follow(bytes.map { samples[Int($0)] }), lasting: nil)
    case .recoverPrevious(_, let count), .conceal(let count):
      guard count > 0, count <= G711Decoder.mostConcealed else {
        throw CodecError(reason: "G.711 cannot make up \(count) samples")
      }
      let ratio = NarrowbandFilter.ratio
      return output(concealment.conceal((count + ratio - 1) / ratio), lasting: count)
    }
  }

  /// 200 ms at 48 kHz: no block is longer.
  private static let mostConcealed = 9_600

  private func output(_ narrow: [Int16], lasting count: Int?) -> DecodedAudio {
    var samples: [Int16] = []
    filter.append(narrow, into: &samples)
    if let count, samples.count > count { samples.removeLast(samples.count - count) }
    if channels == 2 { samples = samples.flatMap { [$0, $0] } }
    let loudness = Loudness(samples: samples, channels: channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: loudness.peak,
      energy: loudness.energy)
  }
}

/// Conceals lost audio at 8 kHz as in G.711 appendix I: repeats the last pitch period, fading out
/// from 10 to 60 ms.
///
/// Periods are cross-faded, and so is the audio after them, to avoid clicks.
struct NarrowbandConcealment {
  /// The history in samples: the longest period and its search window.
  private static let historyLength = 280
  /// Pitch periods of 5 to 15 ms.
  private static let periods = 40...120
  private static let correlated = 160
  private static let loud = 80
  private static let longest = 480
  /// Audio after concealment is faded in over 4 ms.
  private static let fadeLength = 32

  private var history: [Int16] = []
  /// The period being repeated; empty if nothing is concealed.
  private var period: [Int16] = []
  private var made = 0

  /// Returns concealment samples.
  mutating func conceal(_ count: Int) -> [Int16] {
    if period.isEmpty { begin() }
    let samples = (0..<count).map { _ in next() }
    remember(samples)
    return samples
  }

  /// Continues with received samples after concealment; returns them faded in.
  mutating func follow(_ samples: [Int16]) -> [Int16] {
    var samples = samples
    if !period.isEmpty {
      let length = min(Self.fadeLength, samples.count)
      for place in 0..<length {
        let share = place + 1
        let former = Int(next()) * (length + 1 - share)
        samples[place] = Int16(clamping: (former + Int(samples[place]) * share) / (length + 1))
      }
    }
    period = []
    made = 0
    remember(samples)
    return samples
  }

  private mutating func next() -> Int16 {
    guard !period.isEmpty else { return 0 }
    let sample = Int(period[made % period.count])
    let left = Self.longest - made
    made += 1
    if left <= 0 { return 0 }
    let most = Self.longest - Self.loud
    return Int16(clamping: sample * min(left, most) / most)
  }

  private mutating func remember(_ samples: [Int16]) {
    history.append(contentsOf: samples)
    if history.count > Self.historyLength {
      history.removeFirst(history.count - Self.historyLength)
    }
  }

  private mutating func begin() {
    made = 0
    guard history.count == Self.historyLength else {
      // Too little history to repeat any of it.
      period = [0]
      return
    }
    let length = bestPeriod
    let start = history.count - length
    period = Array(history[start...])
    // The end of each period is faded into the start of the next.
    let joint = length / 4
    for place in 0..<joint {
      let share = place + 1
      let index = length - joint + place
      let before = Int(history[start - joint + place]) * share
      period[index] = Int16(
        clamping: (Int(period[index]) * (joint + 1 - share) + before) / (joint + 1))
    }
  }

  /// The period with the best correlation of the last samples.
  private var bestPeriod: Int {
    let first = history.count - Self.correlated
    var best = (length: Self.periods.upperBound, score: 0.0)
    for length in Self.periods {
      var product = 0
      var energy = 0
      for place in first..<history.count {
        let former = Int(history[place - length])
        product += Int(history[place]) * former
        energy += former * former
      }
      guard product > 0, energy > 0 else { continue }
      let score = Double(product) * Double(product) / Double(energy)
      if score > best.score { best = (length, score) }
    }
    return best.length
  }
}
