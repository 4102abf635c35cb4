public import AudioSession
import Glibc
import Media
public import MediaFiles
import Synchronization
public import Tape
import Wire

/// A device that provides generated or recorded audio at a real device's pace.
///
/// While running, it also pulls audio to play and discards it unless a closure receives it.
public final class PacedAudioDevice: AudioDeviceModule {
  /// Returns the next chunk and when it is due, in nanoseconds after the first one; nil at the end.
  typealias Source = @Sendable () -> (chunk: PCMChunk, nanoseconds: Int64)?

  private struct State {
    var port: AudioDevicePort?
    /// The current run's number; the thread of an earlier run ends when this number changes.
    var run = 0
    var isRunning = false
    var isPaused = false
    var output: (@Sendable ([Int16]) -> Void)?
  }

  /// The device's name in takes.
  public let name: String
  /// The captured format; never nil.
  public let captureFormat: AudioFormat?
  /// The played format, which is the default format.
  public let renderFormat: AudioFormat? = AudioFormat()
  private let state = Mutex(State())
  private let makeSource: @Sendable () -> Source

  init(
    name: String, format: AudioFormat, makeSource: @escaping @Sendable () -> Source
  ) {
    self.name = name
    captureFormat = format
    self.makeSource = makeSource
  }

  /// Creates a device that captures a sine tone.
  /// - Parameter nativeFrames: frames per delivery, at 48 kHz.
  public static func tone(hertz: Int, nativeFrames: Int = 480) -> PacedAudioDevice {
    let frames = min(48_000, max(1, nativeFrames))
    return PacedAudioDevice(name: "tone of \(hertz) Hz", format: AudioFormat()) {
      let generator = ToneGenerator(hertz: hertz, pauseSeconds: 0)
      let position = Atomic<Int64>(0)
      return {
        let start = position.add(Int64(frames), ordering: .relaxed).oldValue
        let block = generator.block(at: start, frameCount: frames, channels: 1)
        let nanoseconds = start * 1_000_000 / 48
        return (
          PCMChunk(samples: block.samples, captureTimeNanoseconds: nanoseconds), nanoseconds
        )
      }
    }
  }

  /// Creates a device for a machine without a microphone: it captures silence and discards played
  /// audio.
  public static func silence() -> PacedAudioDevice {
    PacedAudioDevice(name: "silence", format: AudioFormat()) {
      let position = Atomic<Int64>(0)
      return {
        let nanoseconds = position.add(1, ordering: .relaxed).oldValue * 10_000_000
        let chunk = PCMChunk(
          samples: Array(repeating: 0, count: 480), captureTimeNanoseconds: nanoseconds)
        return (chunk, nanoseconds)
      }
    }
  }

  /// Creates a device that captures a WAV file, repeated if `loops`.
  /// - Throws: `MediaFileError` if the file cannot be read or has no audio.
  public static func file(_ path: String, loops: Bool = true) throws(MediaFileError)
    -> PacedAudioDevice
  {
    var probe = try WAVFileSource(path: path, loops: false)
    guard case .audio(let first)? = try probe.next()?.media else {
      throw MediaFileError(path: path, reason: "the file contains no audio: record it again")
    }
    let format = AudioFormat(channels: first.channels)
    return PacedAudioDevice(name: "file", format: format) {
      let file = Mutex(try? WAVFileSource(path: path, loops: loops))
      return {
        file.withLock { file in
          guard let (media, nanoseconds) = try? file?.next(), case .audio(let block) = media
          else { return nil }
          return (
            PCMChunk(
              samples: block.samples, channels: block.channels,
              captureTimeNanoseconds: nanoseconds), nanoseconds
          )
        }
      }
    }
  }

  /// Creates a device that captures a take's microphone audio, in the recorded chunks and formats
  /// and at the recorded times.
  /// - Parameter path: a take with an audio session, or with a peer whose application sent audio.
  /// - Throws: `TapeError` if the file is not a take, or has no microphone audio.
  public static func take(_ path: String) throws(TapeError) -> PacedAudioDevice {
    let recorded = try RecordedMicrophone(path: path)
    return PacedAudioDevice(name: "take", format: recorded.format) {
      let reader = Mutex(try? RecordedMicrophone(path: path))
      return { reader.withLock { $0?.next() } }
    }
  }

  /// Calls a closure with played audio while the device runs.
  public func onPlayed(_ output: @escaping @Sendable ([Int16]) -> Void) {
    state.withLock { $0.output = output }
  }

  /// Keeps the port, through which chunks are delivered while the device runs.
  public func connect(_ port: AudioDevicePort) { state.withLock { $0.port = port } }

  /// Carries out an operation that the audio session requests, and returns the result.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    switch operation {
    case .requestPermission: return .permission(.granted)
    case .startUnit: return start()
    case .stopUnit, .uninitializeUnit:
      state.withLock { state in
        state.run += 1
        state.isRunning = false
      }
    case .pauseRecording: state.withLock { $0.isPaused = true }
    case .resumeRecording: state.withLock { $0.isPaused = false }
    default: break
    }
    return .ok
  }

  private func start() -> AudioDeviceAnswer {
    let run = state.withLock { state -> Int? in
      guard !state.isRunning else { return nil }
      state.isRunning = true
      state.run += 1
      return state.run
    }
    guard let run else { return .ok }
    let source = makeSource()
    do throws(SystemError) {
      try startThread(named: "retake-device") { [weak self] in
        PacedAudioDevice.run(run, source) { self }
      }
    } catch {
      state.withLock { $0.isRunning = false }
      return .failed(code: error.code)
    }
    return .ok
  }

  /// Delivers chunks one by one, each when it is due.
  private static func run(_ run: Int, _ source: Source, _ device: () -> PacedAudioDevice?) {
    let clock = TakeClock()
    while let (chunk, nanoseconds) = source() {
      let late = Instant(nanoseconds: nanoseconds) - clock.now
      if late > .zero { pause(late) }
      guard let device = device(), device.pass(chunk, run) else { return }
    }
  }

  /// Sleeps on the device's thread.
  private static func pause(_ interval: Interval) {
    var left = timespec(
      tv_sec: Int(interval.nanoseconds / 1_000_000_000),
      tv_nsec: Int(interval.nanoseconds % 1_000_000_000))
    var rest = timespec()
    while nanosleep(&left, &rest) != 0, errno == EINTR { left = rest }
  }

  /// Delivers a chunk to the session; returns false if the device has been stopped.
  private func pass(_ chunk: PCMChunk, _ run: Int) -> Bool {
    let (port, isPaused, output) = state.withLock { state in
      (state.run == run ? state.port : nil, state.isPaused, state.output)
    }
    guard let port, port.isOpen else { return false }
    if !isPaused { _ = try? port.capture(chunk) }
    // Pull as many frames to play as were captured.
    let rate = max(1, chunk.format.sampleRate)
    let played = port.pull(frames: max(1, chunk.frameCount * 48_000 / rate))
    output?(played)
    return true
  }
}

// MARK: - RecordedMicrophone

/// Reads a take's microphone audio chunk by chunk.
final class RecordedMicrophone {
  let format: AudioFormat
  private let rows: SQLiteStatement
  private var first: Int64?

  init(path: String) throws(TapeError) {
    let connection = try TakeFile.openForQueries(path)
    var found: AudioFormat?
    do throws(SQLiteError) {
      rows = try connection.prepare(RecordedMicrophone.query)
      if try rows.step() { found = RecordedMicrophone.chunk(rows)?.format }
      rows.reset()
    } catch {
      throw TapeError(path: path, place: "capture", error)
    }
    guard let found, found.fault == nil else {
      throw TapeError(
        path: path, place: "capture", reason: "it contains no audio from a microphone")
    }
    format = found
  }

  /// Selects the audio delivered to an audio session, in its recorded formats, or if there is none,
  /// the audio of the first track that an application sent, which is always at 48 kHz.
  private static let query = """
    SELECT at_ns, kind, channels, bytes FROM capture JOIN content USING (content)
    WHERE CASE WHEN EXISTS (SELECT 1 FROM capture WHERE kind LIKE '{%')
      THEN kind LIKE '{%'
      ELSE kind = 'audio' AND (peer, track) = (
        SELECT peer, track FROM capture WHERE kind = 'audio' ORDER BY row LIMIT 1) END
    ORDER BY capture.row
    """

  /// Returns the next chunk and when it is due, in nanoseconds after the first chunk; nil at the
  /// end.
  func next() -> (chunk: PCMChunk, nanoseconds: Int64)? {
    guard (try? rows.step()) == true, let chunk = RecordedMicrophone.chunk(rows) else {
      return nil
    }
    let at = rows.integer(0)
    let begin = first ?? at
    first = begin
    return (chunk, max(0, at - begin))
  }

  private static func chunk(_ rows: borrowing SQLiteStatement) -> PCMChunk? {
    let kind = rows.text(1) ?? ""
    guard kind != "audio" else {
      return PCMChunk(format: AudioFormat(channels: Int(rows.integer(2))), data: rows.bytes(3))
    }
    return AudioSessionDecoder.format(ofDelivery: kind).map {
      PCMChunk(format: $0, data: rows.bytes(3))
    }
  }
}
