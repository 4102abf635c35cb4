import AudioSession
public import Foundation
import Synchronization

/// The configuration of an audio session; it is read when it is applied.
public final class RTCAudioSessionConfiguration {
  /// The name of the `AVAudioSession.Category`.
  public var category = AVAudioSession.Category.playAndRecord.rawValue
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: AVAudioSession.CategoryOptions = .allowBluetooth
  /// The name of the `AVAudioSession.Mode`.
  public var mode = AVAudioSession.Mode.voiceChat.rawValue
  /// The preferred sample rate in Hz.
  public var sampleRate = 48_000.0
  /// The preferred duration of an I/O buffer in seconds.
  public var ioBufferDuration: TimeInterval = 0.02
  /// The preferred number of microphone channels.
  public var inputNumberOfChannels = 1
  /// The preferred number of output channels.
  public var outputNumberOfChannels = 1

  private static let usual = Mutex<AudioSessionConfiguration?>(nil)

  /// Creates the configuration of a call.
  public init() {}

  convenience init(_ native: AudioSessionConfiguration) {
    self.init()
    category = AVAudioSession.Category(native.category).rawValue
    categoryOptions = AVAudioSession.CategoryOptions(rawValue: native.options.rawValue)
    mode = AVAudioSession.Mode(native.mode).rawValue
    sampleRate = Double(native.sampleRate)
    ioBufferDuration = Double(native.ioBufferMilliseconds) / 1000
    inputNumberOfChannels = native.inputChannels
    outputNumberOfChannels = native.outputChannels
  }

  /// The default configuration of calls.
  public static func webRTC() -> RTCAudioSessionConfiguration {
    chosen.map { RTCAudioSessionConfiguration($0) }
      ?? RTCAudioSessionConfiguration(
        AudioSessionConfiguration())
  }

  /// The configuration set for calls; nil leaves the default of audio sessions.
  static var chosen: AudioSessionConfiguration? { usual.withLock { $0 } }

  /// Sets the default configuration of factories that start later.
  public static func setWebRTC(_ configuration: RTCAudioSessionConfiguration) {
    usual.withLock { $0 = configuration.native }
  }

  var native: AudioSessionConfiguration {
    var native = AudioSessionConfiguration()
    native.category = AVAudioSession.Category(rawValue: category).native
    native.options = AudioSessionOptions(rawValue: categoryOptions.rawValue)
    native.mode = AVAudioSession.Mode(rawValue: mode).native
    native.sampleRate = whole(sampleRate)
    native.ioBufferMilliseconds = whole(ioBufferDuration * 1000)
    native.inputChannels = inputNumberOfChannels
    native.outputChannels = outputNumberOfChannels
    return native
  }
}

/// Converts a number to an integer; one that is not finite becomes 0, which a device rejects.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }
