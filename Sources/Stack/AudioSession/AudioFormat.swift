import Media

/// The memory layout of audio samples.
public enum AudioSampleFormat: String, Hashable, Sendable, Codable {
  /// 16 bits, little-endian: the native format.
  case s16le
  /// 16 bits, big-endian: bytes are swapped.
  case s16be
  /// 32-bit floating point: not supported.
  case f32le
  /// 24 bits: not supported.
  case s24le
  /// 8 bits: not supported.
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

/// An audio format: sampling rate, channels, sample format.
public struct AudioFormat: Hashable, Sendable, Codable {
  /// Frames per second, 8000 to 192000.
  public var sampleRate: Int
  /// The number of interleaved channels.
  public var channels: Int
  /// The sample format.
  public var samples: AudioSampleFormat

  /// The supported rates in Hz.
  public static let sampleRates = 8_000...192_000
  /// The supported numbers of channels; beyond two, only the first two are used.
  public static let channelCounts = 1...32

  /// Creates a format.
  public init(sampleRate: Int = 48_000, channels: Int = 1, samples: AudioSampleFormat = .s16le) {
    (self.sampleRate, self.channels, self.samples) = (sampleRate, channels, samples)
  }

  /// `44100 Hz, 2 channels`, with the sample format unless it is the native one.
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

/// A kind of audio source.
public enum AudioSourceTag: String, Hashable, Sendable, Codable {
  /// A microphone.
  case microphone
  /// The application's audio.
  case application
  /// Any other kind.
  case other
}

/// The way in which audio reaches the session.
public enum AudioSourceOrigin: String, Hashable, Sendable, Codable {
  /// From the session's own device while it is running.
  case unit
  /// From the application while the device is not running.
  case external
}

/// Identifies one of several audio sources that are mixed.
public struct AudioSourceID: Hashable, Sendable, Codable {
  /// The source's number.
  public var number: UInt32
  /// The kind of source.
  public var tag: AudioSourceTag
  /// The way in which the source's audio reaches the session.
  public var origin: AudioSourceOrigin

  /// Creates an identifier for a source.
  public init(
    _ number: UInt32 = 1, tag: AudioSourceTag = .microphone, origin: AudioSourceOrigin = .external
  ) {
    (self.number, self.tag, self.origin) = (number, tag, origin)
  }

  /// The session's own device.
  public static let unit = Self(0, tag: .microphone, origin: .unit)
}

/// Recorded audio of any length.
public struct PCMChunk: Hashable, Sendable {
  /// The format of `data`.
  public var format: AudioFormat
  /// When the first frame was captured, in nanoseconds on the source's clock.
  public var captureTimeNanoseconds: Int64
  /// The interleaved samples; a partial frame at the end is an error.
  public var data: [UInt8]

  /// Creates a chunk from bytes.
  public init(format: AudioFormat, captureTimeNanoseconds: Int64 = 0, data: [UInt8]) {
    (self.format, self.captureTimeNanoseconds) = (format, captureTimeNanoseconds)
    self.data = data
  }

  /// Creates a chunk from samples.
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

  /// The number of frames in `data`.
  public var frameCount: Int {
    let channels = AudioFormat.channelCounts.contains(format.channels) ? format.channels : 1
    return data.count / (format.samples.byteCount * channels)
  }

  /// Why the chunk is not accepted; nil if it is accepted.
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
