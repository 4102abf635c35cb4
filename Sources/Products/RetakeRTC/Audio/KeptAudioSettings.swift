import AudioSession
import Live

/// The settings that an application made for the audio session of its process, applied to sessions
/// that start later.
struct KeptAudioSettings: Sendable {
  private(set) var locks = 0
  private(set) var category = AudioSessionCategory.soloAmbient
  private(set) var mode = AudioSessionMode.default
  private(set) var options: AudioSessionOptions = []
  private(set) var portOverride = AudioPortOverride.none
  private(set) var configuration = AudioSessionConfiguration()
  private(set) var isManual = false
  private(set) var isEnabled = false
  private var activations = 0
  /// The last call of each kind that needs no lock, and all calls that need it, in order.
  private var settings: [AudioSessionCall] = []

  /// Records a call that was made.
  mutating func store(_ call: AudioSessionCall) {
    switch call {
    case .lock: locks += 1
    case .unlock: locks = max(0, locks - 1)
    case .setActive(let isActive): activations = max(0, activations + (isActive ? 1 : -1))
    case .useManualAudio(let isManual): self.isManual = isManual
    case .setAudioEnabled(let isEnabled): self.isEnabled = isEnabled
    case .configure(let wanted):
      (category, mode, options) = (wanted.category, wanted.mode, wanted.options)
      settings = []
      set(call)
    case .setCategory(let category, let options):
      (self.category, self.options) = (category, options)
      set(call)
    case .setMode(let mode):
      self.mode = mode
      set(call)
    case .overridePort(let override):
      portOverride = override
      set(call)
    case .applyMode(let mode, let options): store(mode, options)
    case .setPreferredSampleRate, .setPreferredIOBuffer, .setPreferredChannels, .setIOType:
      set(call)
    default: break
    }
  }

  /// Records a mode as the calls that it stands for.
  private mutating func store(_ mode: AudioMode, _ options: AudioSessionOptions) {
    for operation in mode.operations(options: options, current: category) {
      switch operation {
      case .setCategory(let category, let options): store(.setCategory(category, options: options))
      case .setMode(let mode): store(.setMode(mode))
      case .overridePort(let override): store(.overridePort(override))
      default: break
      }
    }
  }

  private mutating func set(_ call: AudioSessionCall) {
    call.apply(to: &configuration)
    settings.removeAll { $0.name == call.name }
    settings.append(call)
  }

  /// Applies the settings to a session that starts; what its device rejects stays unchanged there.
  func apply(to session: AudioSession) {
    if isManual { try? session.call(.useManualAudio(true)) }
    if isEnabled { try? session.call(.setAudioEnabled(true)) }
    guard !settings.isEmpty || activations > 0 || locks > 0 else { return }
    let calls = settings + Array(repeating: .setActive(true), count: activations)
    try? session.call(.lock)
    for call in calls { try? session.call(call) }
    try? session.call(.unlock)
    for _ in 0..<locks { try? session.call(.lock) }
  }
}

extension AudioSessionCall {
  /// The name without arguments.
  fileprivate var name: String { "\(self)".prefix { $0 != "(" }.description }
}
