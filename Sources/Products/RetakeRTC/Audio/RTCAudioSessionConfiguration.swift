import AudioSession
public import Foundation
import Synchronization

/// What an audio session asks of the device; it is read when it is set.
public final class RTCAudioSessionConfiguration {
  /// What audio is used for: an `AVAudioSession.Category` by its name.
  public var category = AVAudioSession.Category.playAndRecord.rawValue
  /// Other audio, and ports.
  public var categoryOptions: AVAudioSession.CategoryOptions = .allowBluetooth
  /// What it is tuned for: an `AVAudioSession.Mode` by its name.
  public var mode = AVAudioSession.Mode.voiceChat.rawValue
  /// Frames per second that the device should have.
  public var sampleRate = 48_000.0
  /// How much audio the device should hand over at once, in seconds.
  public var ioBufferDuration: TimeInterval = 0.02
  /// Channels of the microphone that should be used.
  public var inputNumberOfChannels = 1
  /// Channels of the output that should be used.
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

  /// What calls use unless they say something else.
  public static func webRTC() -> RTCAudioSessionConfiguration {
    chosen.map { RTCAudioSessionConfiguration($0) }
      ?? RTCAudioSessionConfiguration(
        AudioSessionConfiguration())
  }

  /// What was set for calls; nil leaves them what audio sessions begin with.
  static var chosen: AudioSessionConfiguration? { usual.withLock { $0 } }

  /// Sets what the audio of factories that begin later uses unless they say something else.
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

/// A number of an application as a whole one; what is none is 0, which a device refuses.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }
