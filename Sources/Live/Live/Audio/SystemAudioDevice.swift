package import AudioSession
import FoundationEssentials
import Glibc

/// The machine's default microphone and loudspeaker.
public enum SystemAudioDevice {
  /// Creates the default device: PulseAudio with voice processing if its tools and a server are
  /// available, or else a silent one.
  ///
  /// Takes name it in `audio-route`: `pulse` or `silence`.
  public static func make() -> any AudioDeviceModule {
    make(ProcessInfo.processInfo.environment)
  }

  /// Finds the system's device by name.
  /// - Throws: `AudioDeviceError.unavailable` with what is missing.
  package static func find(
    _ environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(AudioDeviceError) -> any AudioDeviceModule {
    guard hasServer(environment) else {
      throw .unavailable(
        "there is no server of PulseAudio or PipeWire: start one, or name it in PULSE_SERVER")
    }
    return VoiceProcessingDevice(try PulseAudioDevice(path: environment["PATH"]))
  }

  static func make(_ environment: [String: String]) -> any AudioDeviceModule {
    do throws(AudioDeviceError) {
      return try find(environment)
    } catch {
      return PacedAudioDevice.silence()
    }
  }

  /// Whether a PulseAudio or PipeWire server is named or has its socket in one of the usual places;
  /// whether it answers shows when the device starts.
  static func hasServer(_ environment: [String: String]) -> Bool {
    if let server = environment["PULSE_SERVER"], !server.isEmpty { return true }
    let folders = [
      environment["PULSE_RUNTIME_PATH"], environment["XDG_RUNTIME_DIR"].map { "\($0)/pulse" },
      "/run/user/\(getuid())/pulse", "/run/pulse",
    ]
    return folders.compactMap(\.self).contains { folder in
      !folder.isEmpty && access("\(folder)/native", R_OK | W_OK) == 0
    }
  }
}
