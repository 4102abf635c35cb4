import Media
import Synchronization
import Wire

/// What one listener is sent of the voices of a room: the few that `VoiceSelection` chooses, and
/// those that are always on.
///
/// A voice that gets its place begins softly and one that loses it ends softly, over one block, so
/// that nothing clicks. Silence follows for a while, so that a receiver has nothing to make up when
/// no more comes.
final class VoiceGate: Sendable {
  private struct State {
    var selection: VoiceSelection
    var faders: [UInt32: VoiceFader] = [:]
    /// What is sent whoever speaks.
    var exempt: Set<UInt32> = []
  }

  private let state: Mutex<State>
  /// Learns which voices have a place; is called under a lock and must return at once.
  private let report: @Sendable ([UInt32]) -> Void

  init(count: Int, report: @escaping @Sendable ([UInt32]) -> Void) {
    state = Mutex(State(selection: VoiceSelection(count: count)))
    self.report = report
  }

  /// Sets which voices there are, and which of them are always on.
  func setVoices(_ voices: [(media: UInt32, isAlwaysOn: Bool)]) {
    state.withLock { state in
      state.exempt = Set(voices.filter(\.isAlwaysOn).map(\.media))
      let chosen = voices.filter { !$0.isAlwaysOn }.map(\.media)
      state.faders = state.faders.filter { entry in voices.contains { $0.media == entry.key } }
      if state.selection.retain(chosen) { report(state.selection.holders) }
    }
  }

  /// Returns what the listener is sent of a block of a voice; nil: nothing.
  /// - Parameter level: what its sender says of it, in -dBov (RFC 6464); nil if the block was made
  ///   up by the playout, which says nothing about who speaks.
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

  /// Reports the voices that have a place once more, to a listener who may have missed it.
  func repeatReport() { state.withLock { report($0.selection.holders) } }
}

/// Lets a voice through or not, without a step between the samples where that changes.
struct VoiceFader {
  /// How much silence follows a voice that was let through, in samples: longer than a pause that a
  /// sender's clock takes for a hiccup.
  private static let tail = AudioBlock.sampleRate * 2 / 5

  private var isOpen = false
  /// How much silence is still to be sent.
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

  /// A block that rises from silence, or sinks to it, over all of its length.
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
