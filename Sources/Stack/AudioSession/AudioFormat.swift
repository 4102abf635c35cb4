import Media

/// How samples of audio stand in memory.
public enum AudioSampleFormat: String, Hashable, Sendable, Codable {
  /// 16 bits, low byte first: what is sent.
  case s16le
  /// 16 bits, high byte first: bytes are swapped.
  case s16be
  /// 32-bit floating point: refused.
  case f32le
  /// 24 bits: refused.
  case s24le
  /// 8 bits: refused.
  case u8

  /// Bytes of a sample.
  public var byteCount: Int {
    switch self {
    case .s16le, .s16be: 2
    case .f32le: 4
    case .s24le: 3
    case .u8: 1
    }
  }
}

/// The format of audio: rate, channels, samples.
public struct AudioFormat: Hashable, Sendable, Codable {
  /// Frames per second, 8000 to 192000.
  public var sampleRate: Int
  /// Channels, interleaved.
  public var channels: Int
  /// The samples.
  public var samples: AudioSampleFormat

  /// The rates that are taken.
  public static let sampleRates = 8_000...192_000
  /// How many channels are taken; of more than two the first two are heard.
  public static let channelCounts = 1...32

  /// Creates a format.
  public init(sampleRate: Int = 48_000, channels: Int = 1, samples: AudioSampleFormat = .s16le) {
    (self.sampleRate, self.channels, self.samples) = (sampleRate, channels, samples)
  }

  /// `44100 Hz, 2 channels`, and how samples stand when that is not the usual.
  public var text: String {
    let channels = "\(sampleRate) Hz, \(channels) channel\(self.channels == 1 ? "" : "s")"
    return samples == .s16le ? channels : "\(channels), \(samples.rawValue)"
  }

  /// Why audio of the format is refused; nil when it is taken.
  public var fault: AudioDeviceError? {
    guard samples == .s16le || samples == .s16be else { return .unsupportedSamples(samples) }
    guard Self.sampleRates.contains(sampleRate) else { return .unsupportedRate(sampleRate) }
    guard Self.channelCounts.contains(channels) else { return .unsupportedChannels(channels) }
    return nil
  }
}

/// Where a piece of audio comes from.
public enum AudioSourceTag: String, Hashable, Sendable, Codable {
  /// A microphone.
  case microphone
  /// What an application plays.
  case application
  /// Anything else.
  case other
}

/// How audio gets to the session.
public enum AudioSourceOrigin: String, Hashable, Sendable, Codable {
  /// From the session's own device, while that runs.
  case unit
  /// Handed in by the application, while the device does not run.
  case external
}

/// A source of audio among several that are mixed.
public struct AudioSourceID: Hashable, Sendable, Codable {
  /// Its number.
  public var number: UInt32
  /// What it is.
  public var tag: AudioSourceTag
  /// How its audio gets in.
  public var origin: AudioSourceOrigin

  /// Names a source.
  public init(
    _ number: UInt32 = 1, tag: AudioSourceTag = .microphone, origin: AudioSourceOrigin = .external
  ) {
    (self.number, self.tag, self.origin) = (number, tag, origin)
  }

  /// The session's own device.
  public static let unit = Self(0, tag: .microphone, origin: .unit)
}

/// A piece of recorded audio of any length.
public struct PCMChunk: Hashable, Sendable {
  /// How `data` is to be read.
  public var format: AudioFormat
  /// When the first frame was captured, in nanoseconds on the source's own clock.
  public var captureTimeNanoseconds: Int64
  /// The samples, interleaved; what does not fill a frame is refused.
  public var data: [UInt8]

  /// Creates a chunk of bytes.
  public init(format: AudioFormat, captureTimeNanoseconds: Int64 = 0, data: [UInt8]) {
    (self.format, self.captureTimeNanoseconds) = (format, captureTimeNanoseconds)
    self.data = data
  }

  /// Creates a chunk of samples.
  public init(
    samples: [Int16], sampleRate: Int = 48_000, channels: Int = 1,
    captureTimeNanoseconds: Int64 = 0
  ) {
    #if _endian(little)
      let data = samples.withUnsafeBytes { Array($0) }
    #else
      let data = samples.map(\.byteSwapped).withUnsafeBytes { Array($0) }
    #endif
    self.init(
      format: AudioFormat(sampleRate: sampleRate, channels: channels),
      captureTimeNanoseconds: captureTimeNanoseconds, data: data)
  }

  /// How many frames `data` holds.
  public var frameCount: Int {
    let channels = AudioFormat.channelCounts.contains(format.channels) ? format.channels : 1
    return data.count / (format.samples.byteCount * channels)
  }

  /// Why the chunk is refused; nil when it is taken.
  public var fault: AudioDeviceError? {
    if let fault = format.fault { return fault }
    let isWhole = data.count.isMultiple(of: format.samples.byteCount * format.channels)
    return isWhole ? nil : .partialFrame(bytes: data.count)
  }

  /// The samples of a chunk without fault.
  var samples: [Int16] {
    let count = data.count / 2
    let isLittle = format.samples == .s16le
    let words = [Int16](unsafeUninitializedCapacity: count) { buffer, initialized in
      data.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(buffer)
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<(2 * count)]))
      }
      initialized = count
    }
    #if _endian(little)
      return isLittle ? words : words.map(\.byteSwapped)
    #else
      return isLittle ? words.map(\.byteSwapped) : words
    #endif
  }
}
