/// How far a device is initialised.
package enum AudioUnitState: String, Hashable, Sendable {
  case uninitialized
  case initialized
  case started
}

/// The conditions for running a device.
package struct AudioUnitConditions: Hashable, Sendable {
  /// Whether a connection needs the device.
  package var isNeeded = false
  /// Automatic, or enabled manually.
  package var canPlayOrRecord = false
  package var isPlaying = false
  package var isRecording = false
  package var isInterrupted = false
  /// Whether the system's audio server is available.
  package var hasServer = true

  package init() {}
}

/// A state change of a device.
package enum AudioUnitChange: Hashable, Sendable {
  case initialize
  case start
  case stop
  case uninitialize
}

extension AudioUnitState {
  /// The changes needed, in order.
  ///
  /// During an interruption there are none; otherwise each state needs one decision.
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
