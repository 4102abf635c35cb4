import AudioSession
package import Live
import Media
import Synchronization
import Wire

/// The machine's devices that a recording captures from and plays on, opened when first needed.
///
/// All calls share the camera. Each take has its own audio session, which is recorded in it.
package final class LocalDevices: Sendable {
  private struct Opened {
    weak var session: Session?
    var audio: AudioSession
  }

  private struct State {
    var audio: [Opened] = []
    var video: VideoCaptureSession?
    /// Whether a microphone has been opened; the warning about feedback is printed only for the
    /// first.
    var hasWarned = false
    /// Whether the audio devices could not be used; only the first failure is reported.
    var hasFailed = false
  }

  package let plan: DevicePlan
  private let meter: MicrophoneMeter
  private let failures: SendFailures
  private let findDevice: @Sendable () throws -> any AudioDeviceModule
  private let state = Mutex(State())

  /// - Parameter findDevice: returns the audio device; throws if there is none.
  package init(
    _ plan: DevicePlan, telling failures: SendFailures,
    findDevice: @escaping @Sendable () throws -> any AudioDeviceModule = {
      try SystemAudioDevice.find()
    }
  ) {
    self.plan = plan
    self.failures = failures
    self.findDevice = findDevice
    meter = MicrophoneMeter(canHowl: plan.plays)
  }

  // MARK: Audio

  /// Returns a take's audio session; nil if the devices cannot be used, which is reported once.
  package func audio(in session: Session) -> AudioSession? {
    do {
      return try state.withLock { state in
        state.audio.removeAll { $0.session == nil }
        if let known = state.audio.first(where: { $0.session === session }) { return known.audio }
        let made = try session.makeAudioSession(device: findDevice())
        state.audio.append(Opened(session: session, audio: made))
        return made
      }
    } catch {
      let isFirst = state.withLock { state in
        defer { state.hasFailed = true }
        return !state.hasFailed
      }
      if isFirst { failures.warn("\(loss): \(error)") }
      return nil
    }
  }

  /// What does not work without the audio devices, as the start of a warning.
  private var loss: String {
    let played = "received audio is not played"
    guard plan.sends.contains(.microphone) else { return played }
    return "the microphone is not sent" + (plan.plays ? ", and \(played)" : "")
  }

  /// Sends the microphone on a transceiver and plays received audio, as requested, until the result
  /// is released.
  ///
  /// If the devices cannot be used, prints a warning and returns an empty array.
  package func attach(
    _ connection: PeerConnection, sending transceiver: UInt32?, in session: Session
  )
    -> [any Sendable]
  {
    guard let audio = audio(in: session) else { return [] }
    do {
      let attachment = try audio.attach(connection, sending: transceiver, receiving: plan.plays)
      return transceiver == nil ? [attachment] : [attachment, measure(audio)]
    } catch {
      failures.warn("\(transceiver == nil ? "--play" : "--send microphone"): \(error)")
      return []
    }
  }

  /// Passes microphone audio to a source until the result is released.
  package func open(_ source: AudioSource, in session: Session) -> [any Sendable] {
    guard let audio = audio(in: session) else { return [] }
    do {
      return [
        try audio.openMicrophone { [weak source] in source?.deliver($0) }, measure(audio),
      ]
    } catch {
      failures.warn("--send microphone: \(error)")
      return []
    }
  }

  private func measure(_ audio: AudioSession) -> MediaSubscription {
    let isFirst = state.withLock { state in
      defer { state.hasWarned = true }
      return !state.hasWarned
    }
    if isFirst, plan.plays {
      failures.warn(
        "the microphone also picks up --play: wear headphones, or lower the volume if there is "
          + "feedback")
    }
    return audio.onCaptured { [meter, failures] block in
      guard meter.add(block) else { return }
      failures.warn(
        "there is acoustic feedback: lower the volume, wear headphones, or leave out --play")
    }
  }

  // MARK: Video

  /// Sends the camera or the screen on a transceiver; the capturer runs while any sender uses it.
  package func sendVideo(on transceiver: UInt32, of connection: PeerConnection) {
    let session = state.withLock { state -> VideoCaptureSession? in
      if state.video == nil { state.video = plan.capturer.map { VideoCaptureSession($0) } }
      return state.video
    }
    guard let session else { return }
    session.send(on: transceiver, of: connection)
    Task { [failures] in
      // Sending has started the capturer; await the result only to report a failure.
      guard await !session.hasStarted(within: .seconds(10)),
        let failure = (session.capturer as? ProcessVideoCapturer)?.failure
      else { return }
      failures.warn("\(failure); the recording continues without it")
    }
  }

  /// Stops sending the camera or the screen on a transceiver.
  package func endVideo(on transceiver: UInt32, of connection: PeerConnection) {
    state.withLock { $0.video }?.endSending(on: transceiver, of: connection)
  }

  /// The microphone's level, for the progress line; empty without a microphone.
  package var level: String { plan.sends.contains(.microphone) ? meter.text + ", " : "" }
}

/// Measures the microphone's level and detects howling.
final class MicrophoneMeter: Sendable {
  private struct State {
    var energy: UInt64 = 0
    var frames = 0
    /// The level of the last complete window in -dBov; 0 is the loudest.
    var level = AudioMeter.silence
    /// The number of consecutive loud windows so far.
    var loud = 0
    var hasHowled = false
  }

  /// The length of a measurement window in frames: 100 ms.
  private static let window = AudioBlock.sampleRate / 10
  /// The level in -dBov at or below which a window is loud; 0 is the loudest.
  ///
  /// Speech averages -26 dBov and reaches this level for a syllable at most (ITU-T P.56).
  private static let loudest: UInt8 = 9
  /// The number of consecutive loud windows (two seconds) after which a sound counts as howling.
  private static let windowsMaximum = 20
  /// The level bar's width in characters of 5 dB each; the bar is empty at -56 dBov or less.
  private static let width = 12

  private let canHowl: Bool
  private let state = Mutex(State())

  /// - Parameter canHowl: whether a loudspeaker is playing too, so that there can be howling.
  init(canHowl: Bool) { self.canHowl = canHowl }

  /// Measures a block.
  ///
  /// - Returns: whether howling has just begun; true only once.
  func add(_ block: AudioBlock) -> Bool {
    let loudness = Loudness(samples: block.samples, channels: block.channels)
    return state.withLock { state in
      state.energy &+= loudness.energy
      state.frames += block.frameCount
      guard state.frames >= Self.window else { return false }
      state.level = AudioMeter.level(energy: state.energy, frameCount: state.frames)
      (state.energy, state.frames) = (0, 0)
      state.loud = state.level <= Self.loudest ? state.loud + 1 : 0
      guard canHowl, !state.hasHowled, state.loud >= Self.windowsMaximum else { return false }
      state.hasHowled = true
      return true
    }
  }

  /// The level as a bar: `microphone [####--------] -40 dBov`.
  var text: String {
    let level = Int(state.withLock { $0.level })
    let filled = min(Self.width, max(0, (60 - level) * Self.width / 60))
    let line =
      String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
    return "microphone [\(line)] " + (level >= 127 ? "silent" : "-\(level) dBov")
  }
}
