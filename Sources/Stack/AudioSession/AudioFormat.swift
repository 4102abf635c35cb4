import Media

/// The memory layout of audio samples.
public enum AudioSampleFormat: String, Hashable, Sendable, Codable {
  /// 16-bit integers, little-endian: the native format.
  case s16le
  /// 16-bit integers, big-endian; the session swaps their bytes.
  case s16be
  /// 32-bit floating point; not supported.
  case f32le
  /// 24-bit integers; not supported.
  case s24le
  /// Unsigned 8-bit integers; not supported.
  case u8

  /// Bytes per sample.
  public var byteCount: Int {
    switch self {
    case .s16le, .s16be: 2
    case .f32le: 4
    case .s24le: 3
    case .u8: 1
    }
  }
}

/// The rate, channel count and sample layout of uncompressed audio.
public struct AudioFormat: Hashable, Sendable, Codable {
  /// Frames per second, 8000 to 192000.
  public var sampleRate: Int
  /// The number of interleaved channels.
  public var channels: Int
  /// The size and byte order of each sample.
  public var samples: AudioSampleFormat

  /// The supported rates in Hz.
  public static let sampleRates = 8_000...192_000
  /// The supported numbers of channels; beyond two, only the first two are used.
  public static let channelCounts = 1...32

  /// Creates a format; the default is the native one: 48 kHz, mono, 16-bit little-endian.
  public init(sampleRate: Int = 48_000, channels: Int = 1, samples: AudioSampleFormat = .s16le) {
    (self.sampleRate, self.channels, self.samples) = (sampleRate, channels, samples)
  }

  /// The format as text: `44100 Hz, 2 channels`, and the sample format unless it is the native one.
  public var text: String {
    let channels = "\(sampleRate) Hz, \(channels) channel\(self.channels == 1 ? "" : "s")"
    return samples == .s16le ? channels : "\(channels), \(samples.rawValue)"
  }

  /// Why the format is not supported; nil if it is supported.
  public var fault: AudioDeviceError? {
    guard samples == .s16le || samples == .s16be else { return .unsupportedSamples(samples) }
    guard Self.sampleRates.contains(sampleRate) else { return .unsupportedRate(sampleRate) }
    guard Self.channelCounts.contains(channels) else { return .unsupportedChannels(channels) }
    return nil
  }
}

/// The kind of an audio source; sources of different kinds may have the same number.
public enum AudioSourceTag: String, Hashable, Sendable, Codable {
  /// A microphone that the session's device or the application reads.
  case microphone
  /// Audio that the application plays, such as the sound of a shared screen.
  case application
  /// Any other kind of source.
  case other
}

/// Where the session gets a source's audio from.
public enum AudioSourceOrigin: String, Hashable, Sendable, Codable {
  /// From the session's own device while it is running.
  case unit
  /// From the application while the device is not initialised.
  case external
}

/// Identifies one of several audio sources that are mixed.
public struct AudioSourceID: Hashable, Sendable, Codable {
  /// A number that distinguishes sources of the same kind; 0 for the session's own device.
  public var number: UInt32
  /// What the source is: the microphone, the application, or something else.
  public var tag: AudioSourceTag
  /// Where the session gets the source's audio from.
  public var origin: AudioSourceOrigin

  /// Creates an identifier; the default is a microphone that the application reads itself.
  public init(
    _ number: UInt32 = 1, tag: AudioSourceTag = .microphone, origin: AudioSourceOrigin = .external
  ) {
    (self.number, self.tag, self.origin) = (number, tag, origin)
  }

  /// The microphone of the session's own device.
  public static let unit = Self(0, tag: .microphone, origin: .unit)
}

/// A chunk of captured audio, of any length up to two seconds.
public struct PCMChunk: Hashable, Sendable {
  /// The rate, channels and byte layout of `data`.
  public var format: AudioFormat
  /// When the first frame was captured, in nanoseconds on the source's clock.
  public var captureTimeNanoseconds: Int64
  /// The interleaved samples; a partial frame at the end is an error.
  public var data: [UInt8]

  /// Creates a chunk from interleaved samples as bytes in `format`.
  public init(format: AudioFormat, captureTimeNanoseconds: Int64 = 0, data: [UInt8]) {
    (self.format, self.captureTimeNanoseconds) = (format, captureTimeNanoseconds)
    self.data = data
  }

  /// Creates a 16-bit chunk from interleaved samples.
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

  /// The number of whole frames in `data`; a partial frame at the end is not counted.
  public var frameCount: Int {
    let channels = AudioFormat.channelCounts.contains(format.channels) ? format.channels : 1
    return data.count / (format.samples.byteCount * channels)
  }

  /// What is wrong with the chunk's format or bytes; nil if nothing is.
  public var fault: AudioDeviceError? {
    if let fault = format.fault { return fault }
    let isWhole = data.count.isMultiple(of: format.samples.byteCount * format.channels)
    return isWhole ? nil : .partialFrame(bytes: data.count)
  }

  /// The samples; the chunk must be valid.
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
