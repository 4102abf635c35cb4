import Live
import Media
import Peer
import Synchronization
import Wire

/// Selects the loudest voices for one listener, up to a limit.
///
/// A speaking voice gets a free slot, or replaces the quietest selected voice if that is quieter by
/// `margin`. A voice's loudness rises only if two consecutive blocks are loud, so that a knock does
/// not get a slot. It falls at the rate `fall`, so that a voice keeps its slot in the pauses
/// between words. A silent voice keeps its slot until another voice needs the slot.
struct VoiceSelection {
  private struct Voice {
    var media: UInt32
    /// The last block's level in dBov; `at` is when the block was observed.
    var level: Double
    var loudness: Double
    var at: Instant
  }

  /// The level in dBov from which a voice counts as speech.
  static let gate = -50.0
  /// How much louder a voice must be to replace another, in decibels.
  static let margin = 6.0
  /// How fast a voice's loudness falls, in decibels per second.
  static let fall = 80.0
  /// Blocks further apart than this are not consecutive.
  private static let row = Interval.milliseconds(100)
  private static let silence = -127.0

  let count: Int
  private var voices: [Voice] = []
  /// The selected voices, in the order in which they were selected.
  private(set) var holders: [UInt32] = []

  init(count: Int) { self.count = max(0, count) }

  /// Records the level in dBov of a voice's next block; returns whether the selected voices
  /// changed.
  mutating func observe(_ level: Int, of media: UInt32, at now: Instant) -> Bool {
    let level = max(VoiceSelection.silence, min(0, Double(level)))
    let index: Int
    if let known = voices.firstIndex(where: { $0.media == media }) {
      index = known
      let sunk = loudness(of: voices[known], at: now)
      let isNext = now - voices[known].at <= VoiceSelection.row
      let both = isNext ? min(level, voices[known].level) : VoiceSelection.silence
      (voices[known].loudness, voices[known].level) = (max(sunk, both), level)
      voices[known].at = now
    } else {
      index = voices.count
      voices.append(
        Voice(media: media, level: level, loudness: VoiceSelection.silence, at: now))
    }
    guard count > 0, voices[index].loudness >= VoiceSelection.gate, !holders.contains(media)
    else { return false }
    return enter(media, voices[index].loudness, at: now)
  }

  private mutating func enter(_ media: UInt32, _ loudness: Double, at now: Instant) -> Bool {
    guard holders.count >= count else {
      holders.append(media)
      return true
    }
    // Of equally quiet voices, replace the voice that was selected first.
    let quietest = holders.indices.min {
      level(of: holders[$0], at: now) < level(of: holders[$1], at: now)
    }
    guard let quietest,
      loudness >= level(of: holders[quietest], at: now) + VoiceSelection.margin
    else { return false }
    holders.remove(at: quietest)
    holders.append(media)
    return true
  }

  private func level(of media: UInt32, at now: Instant) -> Double {
    voices.first { $0.media == media }.map { loudness(of: $0, at: now) } ?? VoiceSelection.silence
  }

  private func loudness(of voice: Voice, at now: Instant) -> Double {
    let seconds = Double(max(0, (now - voice.at).nanoseconds)) / 1e9
    return max(VoiceSelection.silence, voice.loudness - VoiceSelection.fall * seconds)
  }

  /// Removes all voices except these; returns whether the selected voices changed.
  mutating func retain(_ media: [UInt32]) -> Bool {
    let former = holders.count
    voices.removeAll { !media.contains($0.media) }
    holders.removeAll { !media.contains($0) }
    return holders.count != former
  }
}

// MARK: - VoiceGate

/// Passes a room's voices to one listener: the voices that `VoiceSelection` selects, and the voices
/// that are always on.
///
/// A voice that gains or loses a slot is faded in or out over one block to avoid clicks. After a
/// voice is faded out, some silence is sent, so that receivers do not conceal a gap.
final class VoiceGate: Sendable {
  private struct State {
    var selection: VoiceSelection
    var faders: [UInt32: VoiceFader] = [:]
    /// Voices that are always sent.
    var exempt: Set<UInt32> = []
  }

  private let state: Mutex<State>
  /// Reports the selected voices; called under a lock, so it must not block.
  private let report: @Sendable ([UInt32]) -> Void

  init(count: Int, report: @escaping @Sendable ([UInt32]) -> Void) {
    state = Mutex(State(selection: VoiceSelection(count: count)))
    self.report = report
  }

  /// Sets the available voices, and which of them are always on.
  func setVoices(_ voices: [(media: UInt32, isAlwaysOn: Bool)]) {
    state.withLock { state in
      state.exempt = Set(voices.filter(\.isAlwaysOn).map(\.media))
      let chosen = voices.filter { !$0.isAlwaysOn }.map(\.media)
      state.faders = state.faders.filter { entry in voices.contains { $0.media == entry.key } }
      if state.selection.retain(chosen) { report(state.selection.holders) }
    }
  }

  /// Returns the block to send to the listener; nil to send nothing.
  /// - Parameter level: the sender's level in -dBov (RFC 6464); nil if the block is concealment,
  ///   which does not show whether the participant speaks.
  func pass(_ block: AudioBlock, level: UInt8?, of media: UInt32, at now: Instant) -> AudioBlock? {
    state.withLock { state in
      let isExempt = state.exempt.contains(media)
      if !isExempt, let level, state.selection.observe(-Int(level & 0x7f), of: media, at: now) {
        report(state.selection.holders)
      }
      let isOpen = isExempt || state.selection.holders.contains(media)
      return state.faders[media, default: VoiceFader()].pass(block, isOpen: isOpen)
    }
  }

  /// Reports the selected voices again, for a listener who may have missed the last report.
  func repeatReport() { state.withLock { report($0.selection.holders) } }
}

/// Passes or blocks a voice, fading at each change.
struct VoiceFader {
  /// How much silence follows a faded-out voice, in frames (400 ms): longer than any pause that the
  /// sending clock bridges.
  private static let tail = AudioBlock.sampleRate * 2 / 5

  private var isOpen = false
  /// How much silence remains to be sent, in frames.
  private var rest = 0

  mutating func pass(_ block: AudioBlock, isOpen next: Bool) -> AudioBlock? {
    defer { isOpen = next }
    switch (isOpen, next) {
    case (true, true): return block
    case (false, true): return VoiceFader.faded(block, isEntering: true)
    case (true, false):
      rest = VoiceFader.tail
      return VoiceFader.faded(block, isEntering: false)
    case (false, false):
      guard rest > 0 else { return nil }
      rest -= block.frameCount
      return AudioBlock(
        samples: Array(repeating: 0, count: block.frameCount * block.channels),
        channels: block.channels)
    }
  }

  /// Fades a block in or out over its entire length.
  static func faded(_ block: AudioBlock, isEntering: Bool) -> AudioBlock {
    let length = block.frameCount
    guard length > 0, !block.samples.isEmpty else { return block }
    var faded = block
    for frame in 0..<length {
      let factor = isEntering ? frame : length - 1 - frame
      for index in (frame * block.channels)..<((frame + 1) * block.channels) {
        faded.samples[index] = Int16(Int(block.samples[index]) * factor / length)
      }
    }
    return faded
  }
}

// MARK: - VideoFit

/// Scales a video down to the profile that a listener selected.
///
/// The server decodes the largest layer it receives and scales it down for smaller profiles, so a
/// profile is available even if the sender does not send that profile's layer.
final class VideoFit: Sendable {
  private struct State {
    var wanted = 1.0
    var isSet = 1.0
    var isSetting = false
  }

  private let connection: PeerConnection
  private let transceiver: UInt32
  private let state = Mutex(State())

  init(_ connection: PeerConnection, _ transceiver: UInt32) {
    (self.connection, self.transceiver) = (connection, transceiver)
  }

  /// Sets how far frames are scaled down.
  /// - Parameters:
  ///   - side: the longer side of received frames.
  ///   - full: the longer side of the largest layer.
  ///   - divisor: how many times larger the largest layer is than the selected profile.
  func fit(side: Int, full: Int, divisor: Int) {
    let allowed = max(2, full / max(1, divisor))
    let scale = max(1, Double(side) / Double(allowed))
    let begins = state.withLock { state in
      state.wanted = scale
      guard scale != state.isSet, !state.isSetting else { return false }
      state.isSetting = true
      return true
    }
    if begins { Task { await set() } }
  }

  private func set() async {
    while let scale = next() {
      // Ignore the error: a closed connection has no parameters.
      guard var parameters = try? await connection.getParameters(of: transceiver),
        !parameters.encodings.isEmpty
      else { continue }
      parameters.encodings[0].scaleResolutionDownBy = scale
      try? await connection.setParameters(parameters, of: transceiver)
    }
  }

  private func next() -> Double? {
    state.withLock { state in
      guard state.wanted != state.isSet else {
        state.isSetting = false
        return nil
      }
      state.isSet = state.wanted
      return state.wanted
    }
  }
}
