import Media
import Synchronization
import Wire

/// The voices of a room for one listener: the few that `VoiceSelection` selects, and those that are
/// always on.
///
/// A voice that gains or loses its place is faded over one block to avoid clicks. Some silence
/// follows, so that a receiver need not conceal anything.
final class VoiceGate: Sendable {
  private struct State {
    var selection: VoiceSelection
    var faders: [UInt32: VoiceFader] = [:]
    /// Voices that are always sent.
    var exempt: Set<UInt32> = []
  }

  private let state: Mutex<State>
  /// Reports the selected voices; called under a lock, must return at once.
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

  /// Returns a voice's block for the listener; nil to send nothing.
  /// - Parameter level: the sender's level in -dBov (RFC 6464); nil if the block is concealment,
  ///   which says nothing about speech.
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

  /// Reports the selected voices again, to a listener who may have missed it.
  func repeatReport() { state.withLock { report($0.selection.holders) } }
}

/// Passes or blocks a voice with a fade at each change.
struct VoiceFader {
  /// The silence after a blocked voice, in samples: longer than the pause that a sender's clock
  /// tolerates.
  private static let tail = AudioBlock.sampleRate * 2 / 5

  private var isOpen = false
  /// The silence still to be sent.
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

  /// Fades a block in or out over its whole length.
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
