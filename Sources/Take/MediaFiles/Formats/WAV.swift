/// Why a WAV file cannot be read.
package enum WAVError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with RIFF and WAVE.
  case notWAV
  /// The data begin before the format is known, or the format chunk is too short.
  case malformedFormat
  /// Samples that are not 16-bit PCM: the format tag and the bits per sample.
  case unsupportedSamples(format: UInt16, bits: UInt16)
  /// Not one or two channels.
  case unsupportedChannels(UInt16)
  /// A sampling rate below 8 kHz or above 192 kHz.
  case unsupportedRate(UInt32)
  /// The file ended before the audio began.
  case truncated

  package var description: String {
    switch self {
    case .notWAV:
      "the file is no WAV file: convert it, as ffmpeg does with -c:a pcm_s16le NAME.wav"
    case .malformedFormat:
      "the WAV file has no usable format chunk before its data: convert it anew"
    case .unsupportedSamples(let format, let bits):
      "WAV samples of \(bits) bits\(WAVError.name(ofFormat: format)) are not supported; convert"
        + " them to 16-bit PCM"
    case .unsupportedChannels(let count):
      "WAV files with \(count) channels are not supported; convert the file to one or two"
    case .unsupportedRate(let rate):
      "the WAV sampling rate \(rate) Hz is not supported; convert the file to 8000 to 192000 Hz"
    case .truncated: "the WAV file ends before its audio begins: convert it anew"
    }
  }
}

extension WAVError {
  /// What people call a format tag of WAVEFORMATEX, to stand behind a number of bits.
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

/// The format of a WAV file of 16-bit PCM.
package struct WAVFormat: Hashable, Sendable {
  /// 1 or 2.
  package var channels: Int
  /// In Hz.
  package var sampleRate: Int

  package init(channels: Int, sampleRate: Int) {
    self.channels = channels
    self.sampleRate = sampleRate
  }
}
