/// How far a device is made ready.
package enum AudioUnitState: String, Hashable, Sendable {
  case uninitialized
  case initialized
  case started
}

/// What decides whether a device runs.
package struct AudioUnitConditions: Hashable, Sendable {
  /// Whether a connection needs the device at all.
  package var isNeeded = false
  /// Automatic, or enabled by hand.
  package var canPlayOrRecord = false
  package var isPlaying = false
  package var isRecording = false
  package var isInterrupted = false
  /// Whether the system's server of audio is there.
  package var hasServer = true

  package init() {}
}

/// A change of a device.
package enum AudioUnitChange: Hashable, Sendable {
  case initialize
  case start
  case stop
  case uninitialize
}

extension AudioUnitState {
  /// What has to be done to the device, in this order.
  ///
  /// An interruption makes it ignore everything until it ends; the rest is one decision a state.
  package func changes(_ conditions: AudioUnitConditions) -> [AudioUnitChange] {
    guard !conditions.isInterrupted, conditions.hasServer else { return [] }
    let runs = conditions.isPlaying || conditions.isRecording
    let may = conditions.canPlayOrRecord && conditions.isNeeded
    switch self {
    case .uninitialized: return may ? (runs ? [.initialize, .start] : [.initialize]) : []
    case .initialized: return may ? (runs ? [.start] : []) : [.uninitialize]
    case .started: return may ? (runs ? [] : [.stop]) : [.stop, .uninitialize]
    }
  }
}
