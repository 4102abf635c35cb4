/// Computes sines with a polynomial, because the C library's results differ between versions and
/// machines.
enum Sine {
  /// Returns the sine of an angle in turns (1 is the full circle), accurate to about 1e-11.
  static func ofTurns(_ turns: Double) -> Double {
    var rest = turns - turns.rounded(.down)
    var sign = 1.0
    if rest >= 0.5 {
      rest -= 0.5
      sign = -1
    }
    if rest > 0.25 { rest = 0.5 - rest }
    return sign * firstQuarter(rest * 2 * .pi)
  }

  /// Evaluates the Taylor series up to the 15th power, for 0 to half pi.
  private static func firstQuarter(_ angle: Double) -> Double {
    let square = angle * angle
    var term = angle
    var sum = angle
    var power = 1.0
    for _ in 0..<7 {
      term *= -square / ((power + 1) * (power + 2))
      sum += term
      power += 2
    }
    return sum
  }
}

// MARK: - ToneGenerator

/// A sine tone with pauses as a pure function of the position.
package struct ToneGenerator {
  /// The tone's peak, 12 dB below full scale.
  static let amplitude = 8_231

  /// The fade time in samples; without fading, pauses would start with a click.
  private static let fadeLength: Int64 = 480

  /// A quarter wave: entry `k` is the sine of `k`/48000 of a turn, scaled to the amplitude.
  private static let quarterWave: [Int16] = (0...12_000).map { part in
    Int16((Sine.ofTurns(Double(part) / 48_000) * Double(amplitude)).rounded())
  }

  private let hertz: Int64
  /// The period of the pauses in samples; 0 if there are none.
  private let period: Int64

  /// Creates a tone; the frequency is reduced modulo the sampling rate.
  package init(hertz: Int, pauseSeconds: Int) {
    let rate = Int64(AudioBlock.sampleRate)
    self.hertz = Int64(hertz.magnitude % UInt(rate))
    period = Int64(min(max(pauseSeconds, 0), 86_400)) * rate
  }

  /// Returns the block at a position in samples since the tone started.
  package func block(at position: Int64, frameCount: Int, channels: Int) -> AudioBlock {
    let count = frameCount * channels
    let samples = unsafe [Int16](unsafeUninitializedCapacity: count) { buffer, initialized in
      unsafe ToneGenerator.quarterWave.withUnsafeBufferPointer { wave in
        for frame in 0..<frameCount {
          let value = unsafe sample(at: position + Int64(frame), wave)
          for channel in 0..<channels {
            unsafe buffer[frame * channels + channel] = value
          }
        }
      }
      initialized = count
    }
    return AudioBlock(samples: samples, channels: channels)
  }

  @inline(__always)
  private func sample(at position: Int64, _ wave: UnsafeBufferPointer<Int16>) -> Int16 {
    let loudness = gain(at: position)
    guard loudness > 0 else { return 0 }
    let part = Int((position % 48_000) * hertz % 48_000)
    let value: Int64
    switch part {
    case ...12_000: value = unsafe Int64(wave[part])
    case ...24_000: value = unsafe Int64(wave[24_000 - part])
    case ...36_000: value = unsafe -Int64(wave[part - 24_000])
    default: value = unsafe -Int64(wave[48_000 - part])
    }
    return Int16(value * loudness / ToneGenerator.fadeLength)
  }

  /// Returns the gain at a position, from 0 to `fadeLength`.
  @inline(__always)
  private func gain(at position: Int64) -> Int64 {
    let fade = ToneGenerator.fadeLength
    guard period > 0 else { return min(position, fade) }
    let place = position % period
    let audioLength = period - Int64(AudioBlock.sampleRate)
    guard place < audioLength else { return 0 }
    return min(place, audioLength - place, fade)
  }
}

// MARK: - KeyTones

/// A sequence of DTMF keys, which replace blocks of audio while they are pressed (RFC 4733, W3C
/// RTCDTMFSender).
package struct KeyTones: Hashable, Sendable {
  /// The contents of one telephone event packet.
  struct Event: Hashable {
    /// The key, 0 to 15: the digits, the star, the hash and four letters (RFC 4733 section 3.2).
    var code: UInt8
    /// The start of the event and its duration so far, in samples at 48 kHz.
    ///
    /// If the event is too long for the duration field, both refer to the current segment (section
    /// 2.5.1.3).
    var start: Int64
    var duration: Int64
    var isFirst: Bool
    var isEnd: Bool
  }

  /// The durations that W3C allows, in milliseconds; other values are clamped.
  private static let durations: ClosedRange<UInt32> = 40...6_000
  private static let gaps: ClosedRange<UInt32> = 30...6_000
  /// The pause for a comma: two seconds.
  private static let commaSamples: Int64 = 96_000
  private static let blockLength = Int64(BlockCutter.blockLength)
  private static let keys = Array("0123456789*#ABCD")
  private static let keysMaximum = 256
  /// The number of times that an event's end is sent (RFC 4733 section 2.5.1.4).
  private static let endPackets = 3
  /// The largest duration in one packet, in ticks.
  private static let longestPart: Int64 = 0xffff

  /// The keys still to press, next first; nil is a pause.
  private var codes: [UInt8?]
  private let duration: Int64
  private let gap: Int64
  /// Samples at 48 kHz per tick of the audio codec's clock.
  private var ticks: Int64 = 1
  private var pressed: (code: UInt8, began: Int64, part: Int64)?
  private var waitsUntil: Int64 = .min

  /// Parses keys and commas, ignoring case; nil if the text has other characters or is too long.
  /// - Parameters:
  ///   - duration: the length of each key press, in milliseconds.
  ///   - gap: the time between two keys, in milliseconds.
  package init?(_ text: String, duration: UInt32, gap: UInt32) {
    guard text.utf8.count <= KeyTones.keysMaximum else { return nil }
    codes = []
    for character in text.uppercased() {
      if character == "," {
        codes.append(nil)
      } else if let code = KeyTones.keys.firstIndex(of: character) {
        codes.append(UInt8(code))
      } else {
        return nil
      }
    }
    func samples(_ milliseconds: UInt32, _ range: ClosedRange<UInt32>) -> Int64 {
      48 * Int64(min(max(milliseconds, range.lowerBound), range.upperBound))
    }
    self.duration = samples(duration, KeyTones.durations)
    self.gap = samples(gap, KeyTones.gaps)
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.codes == right.codes && left.duration == right.duration && left.gap == right.gap
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(codes) }

  /// Whether all keys were pressed and released.
  var isOver: Bool { codes.isEmpty && pressed == nil }

  /// Returns the same keys for a codec whose clock ticks once every `ticks` samples at 48 kHz.
  func counted(in ticks: Int64) -> KeyTones {
    var tones = self
    tones.ticks = max(1, ticks)
    return tones
  }

  /// Returns the packets that replace the audio block at a media time; empty if the audio itself
  /// should be sent.
  mutating func next(at time: Int64) -> [Event] {
    if pressed == nil {
      guard time >= waitsUntil, let code = codes.first else { return [] }
      codes.removeFirst()
      guard let code else {
        waitsUntil = time + KeyTones.commaSamples
        return []
      }
      pressed = (code, time, time)
    }
    guard let key = pressed else { return [] }
    let end = time + KeyTones.blockLength
    let isEnd = end - key.began >= duration
    let event = Event(
      code: key.code, start: key.part, duration: end - key.part, isFirst: time == key.began,
      isEnd: isEnd)
    if isEnd {
      pressed = nil
      waitsUntil = end + gap
      return Array(repeating: event, count: KeyTones.endPackets)
    }
    if (end - key.part + KeyTones.blockLength) / ticks > KeyTones.longestPart {
      pressed?.part = end
    }
    return [event]
  }
}

extension KeyTones.Event {
  /// The power level, -10 dBm0, which is usual for telephone tones.
  private static let volume: UInt8 = 10

  /// Returns the four-byte payload of RFC 4733 section 2.3.
  /// - Parameter ticks: samples at 48 kHz per tick.
  func payload(ticks: Int64) -> [UInt8] {
    let length = UInt16(clamping: duration / max(1, ticks))
    return [
      code, (isEnd ? 0x80 : 0) | Self.volume, UInt8(length >> 8),
      UInt8(truncatingIfNeeded: length),
    ]
  }
}
