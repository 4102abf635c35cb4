public import AudioSession
import CProcess
import FoundationEssentials
import Glibc
import Synchronization
import Tape

/// The machine's default microphone and loudspeaker.
public enum SystemAudioDevice {
  /// Creates the default device: PulseAudio with voice processing if its tools and a server are
  /// available, otherwise a silent device.
  ///
  /// The state of `audio-route` in the take names the device: `pulse` or `silence`.
  public static func make() -> any AudioDeviceModule {
    make(ProcessInfo.processInfo.environment)
  }

  /// Returns PulseAudio's device, with voice processing.
  /// - Throws: `AudioDeviceError.unavailable`, which names what is missing.
  package static func find(
    _ environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(AudioDeviceError) -> any AudioDeviceModule {
    guard hasServer(environment) else {
      throw .unavailable(
        "there is no PulseAudio or PipeWire server: start one, or name it in PULSE_SERVER")
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

  /// Returns whether the environment names a PulseAudio or PipeWire server, or a server's socket
  /// exists in one of the usual places.
  ///
  /// Only starting the device shows whether the server answers.
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

// MARK: - PulseAudioDevice

/// The machine's microphone and loudspeaker through PulseAudio's tools, which PipeWire supports
/// too: `parec` and `pacat` run as child processes while the device runs.
public final class PulseAudioDevice: AudioDeviceModule {
  private struct State {
    var port: AudioDevicePort?
    var recorder: ChildProcess?
    var player: ChildProcess?
    var isPaused = false
  }

  /// The device's name in takes.
  public let name = "pulse"
  /// The format that `parec` delivers; never nil.
  public let captureFormat: AudioFormat?
  /// The format that `pacat` plays; never nil.
  public let renderFormat: AudioFormat?
  private let recorderPath: String
  private let playerPath: String
  private let state = Mutex(State())

  private static let periodFrames = 480

  /// Creates a device, if the tools are installed.
  /// - Throws: `AudioDeviceError.unavailable`, which names what to install.
  public convenience init(format: AudioFormat = AudioFormat()) throws(AudioDeviceError) {
    try self.init(format: format, path: nil)
  }

  /// - Parameter path: where to look for the tools; nil for the process's PATH.
  init(format: AudioFormat = AudioFormat(), path: String?) throws(AudioDeviceError) {
    recorderPath = try PulseAudioDevice.find("parec", in: path)
    playerPath = try PulseAudioDevice.find("pacat", in: path)
    captureFormat = format
    renderFormat = format
  }

  /// Returns a tool's path; throws an error that names the package to install.
  static func find(_ tool: String, in path: String? = nil) throws(AudioDeviceError) -> String {
    let path = path ?? ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in path.split(separator: ":") {
      let file = "\(folder)/\(tool)"
      if access(file, X_OK) == 0 { return file }
    }
    throw .unavailable(
      "\(tool) is not in PATH: install pulseaudio-utils, or use another device")
  }

  /// Keeps the port, through which the child processes' audio passes while the device runs.
  public func connect(_ port: AudioDevicePort) { state.withLock { $0.port = port } }

  /// Carries out an operation that the audio session requests, and returns the result.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    switch operation {
    case .requestPermission: return .permission(.granted)
    case .startUnit: return start()
    case .stopUnit, .uninitializeUnit: stop()
    case .pauseRecording: state.withLock { $0.isPaused = true }
    case .resumeRecording: state.withLock { $0.isPaused = false }
    default: break
    }
    return .ok
  }

  // MARK: Child processes

  private func start() -> AudioDeviceAnswer {
    stop()
    do {
      let audio = try ChildPipe()
      let recorder = try child(recorderPath, output: .pipe(audio.writing))
      audio.closeWriting()
      state.withLock { $0.recorder = recorder }
      let silence = try ChildPipe()
      let player = try child(playerPath, input: .pipe(silence.reading))
      silence.closeReading()
      state.withLock { $0.player = player }
      let (input, output) = (audio.reading, silence.writing)
      try startThread(named: "retake-record") { [weak self] in
        PulseAudioDevice.record(input) { self }
      }
      try startThread(named: "retake-play") { [weak self] in
        PulseAudioDevice.play(output) { self }
      }
      return .ok
    } catch {
      stop()
      return .failed(code: error.code)
    }
  }

  private func child(
    _ path: String, input: ChildProcess.Stream = .nothing, output: ChildProcess.Stream = .inherited
  ) throws(SystemError) -> ChildProcess {
    let format = captureFormat ?? AudioFormat()
    return try ChildProcess(
      path,
      [
        "--raw", "--format=s16le", "--rate=\(format.sampleRate)", "--channels=\(format.channels)",
        "--latency-msec=20",
      ], input: input, output: output, errors: .nothing)
  }

  private func stop() {
    let (recorder, player) = state.withLock { state in
      defer { (state.recorder, state.player) = (nil, nil) }
      return (state.recorder, state.player)
    }
    recorder?.end()
    player?.end()
  }

  /// Delivers the recorder's output until it ends.
  private static func record(_ input: FileDescriptor, _ device: () -> PulseAudioDevice?) {
    while true {
      let bytes = input.read(atMost: 4 * periodFrames)
      if bytes.isEmpty { break }
      guard let device = device(), device.capture(bytes) else { return }
    }
    device()?.lost()
  }

  private func capture(_ bytes: [UInt8]) -> Bool {
    let (port, isPaused) = state.withLock { ($0.recorder == nil ? nil : $0.port, $0.isPaused) }
    guard let port, port.isOpen else { return false }
    let format = captureFormat ?? AudioFormat()
    let whole = bytes.count - bytes.count % (2 * format.channels)
    if !isPaused {
      _ = try? port.capture(PCMChunk(format: format, data: Array(bytes[..<whole])))
    }
    return true
  }

  /// Writes to the player as fast as it accepts: the pipe sets the pace.
  private static func play(_ output: FileDescriptor, _ device: () -> PulseAudioDevice?) {
    // Block SIGPIPE on this thread only: elsewhere the application decides how to handle it.
    cprocess_block_broken_pipes()
    while let samples = device()?.pull() {
      let bytes = samples.flatMap {
        [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
      }
      guard output.write(bytes) else { return }
    }
    output.close()
  }

  private func pull() -> [Int16]? {
    let port = state.withLock { $0.player == nil ? nil : $0.port }
    guard let port, port.isOpen else { return nil }
    return port.pull(frames: PulseAudioDevice.periodFrames)
  }

  /// Handles the recorder's unexpected end: the server or the microphone is gone.
  private func lost() {
    let port = state.withLock { $0.recorder == nil ? nil : $0.port }
    port?.report(
      .routeChanged(
        .oldDeviceUnavailable,
        AudioRoute(input: "", output: name, captureFormat: nil, renderFormat: renderFormat)))
  }
}
