package import Media

/// A simulated microphone, which produces blocks of 20 ms.
package struct Microphone {
  package enum State { case good, silent, clipped, quiet }

  package var state = State.good
  /// Whether the participant does not speak even when it is the participant's turn.
  package var isResting = false
  private let speech: [AudioBlock]
  private let clipped: [AudioBlock]
  private let quiet: [AudioBlock]
  private let murmur: [AudioBlock]
  private let silence = AudioBlock(samples: [Int16](repeating: 0, count: 960), channels: 1)
  private var place = 0

  /// Creates a voice.
  ///
  /// - Parameters:
  ///   - gain: the factor by which the clipped voice is too loud, in tenths.
  ///   - part: the loudness of the quiet voice, in thousandths of the good voice's.
  package init(_ chance: Chance, gain: Int = 60, part: Int = 10) {
    let period = chance.within(220...420)
    var noise: UInt32 = UInt32(truncatingIfNeeded: chance.next()) | 1
    func random() -> Int {
      noise = noise &* 1_664_525 &+ 1_013_904_223
      return Int(noise >> 20) - 2_048
    }
    var speech: [AudioBlock] = []
    var clipped: [AudioBlock] = []
    var quiet: [AudioBlock] = []
    var murmur: [AudioBlock] = []
    for block in 0..<60 {
      // Syllables, five per second, made of a sawtooth and some breath.
      let envelope = [2, 6, 9, 10, 10, 9, 7, 4, 2, 1][block % 10]
      var samples = [Int16](repeating: 0, count: 960)
      var loud = samples
      var soft = samples
      var low = samples
      for index in samples.indices {
        let phase = (block * 960 + index) % period
        let saw = (phase * 2 - period) * 9_000 / period
        let value = (saw + random() / 4) * envelope / 10
        samples[index] = Int16(clamping: value)
        loud[index] = Int16(clamping: value * gain / 10)
        low[index] = Int16(clamping: value * part / 1000)
        soft[index] = Int16(clamping: random() / 128)
      }
      speech.append(AudioBlock(samples: samples, channels: 1))
      clipped.append(AudioBlock(samples: loud, channels: 1))
      quiet.append(AudioBlock(samples: low, channels: 1))
      murmur.append(AudioBlock(samples: soft, channels: 1))
    }
    self.speech = speech
    self.clipped = clipped
    self.quiet = quiet
    self.murmur = murmur
  }

  package mutating func next(isSpeaking: Bool) -> AudioBlock {
    place += 1
    let isSpeaking = isSpeaking && !isResting
    switch state {
    case .silent: return silence
    case .clipped where isSpeaking: return clipped[place % clipped.count]
    case .quiet where isSpeaking: return quiet[place % quiet.count]
    default: return isSpeaking ? speech[place % speech.count] : murmur[place % murmur.count]
    }
  }
}

/// A simulated camera, which produces one frame at a time.
package struct Camera {
  package enum State { case good, stopped, stuck, black }

  package var state = State.good
  /// Frames per second.
  package let rate: Int
  private let frames: [I420Buffer]
  private let black: I420Buffer
  private var place = 0

  package init(_ chance: Chance) {
    let (width, height) = chance.isOne(in: 3) ? (240, 136) : (160, 120)
    rate = [15, 20, 25][chance.below(3)]
    var noise: UInt32 = UInt32(truncatingIfNeeded: chance.next()) | 1
    frames = (0..<32).map { number in
      var samples = [UInt8](repeating: 128, count: width * height * 3 / 2)
      // A figure moving in front of a wall, with camera noise.
      let middle = width / 2 + [0, 3, 7, 10, 12, 10, 7, 3][number % 8]
      for y in 0..<height {
        for x in 0..<width {
          noise = noise &* 1_664_525 &+ 1_013_904_223
          let isHead = abs(x - middle) < width / 6 && y > height / 5
          let grey = isHead ? 150 + (x + y + number) % 40 : 60 + y * 60 / height
          samples[y * width + x] = UInt8(clamping: grey + Int(noise >> 30))
        }
      }
      return I420Buffer(width: width, height: height, samples: samples)
    }
    var dark = [UInt8](repeating: 16, count: width * height * 3 / 2)
    for index in (width * height)..<dark.count { dark[index] = 128 }
    black = I420Buffer(width: width, height: height, samples: dark)
  }

  /// Returns the next frame; nil if the camera provides none.
  package mutating func next() -> I420Buffer? {
    switch state {
    case .stopped: return nil
    case .black: return black
    case .stuck: return frames[place % frames.count]
    case .good:
      place += 1
      return frames[place % frames.count]
    }
  }
}
