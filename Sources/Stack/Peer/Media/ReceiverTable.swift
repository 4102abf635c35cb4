import Media

/// The application's settings of received tracks, and their reported states.
struct ReceiverTable {
  private struct Receiver {
    var transceiver: UInt32
    var state = TrackState(isMuted: true)
    /// Whether the peer's track was announced and has not ended.
    var isLive = false
  }

  private var receivers: [Receiver] = []

  func state(of transceiver: UInt32) -> TrackState {
    receivers.first { $0.transceiver == transceiver }?.state ?? TrackState(isMuted: true)
  }

  /// The transceivers whose received tracks have not ended, in order of appearance.
  var live: [UInt32] { receivers.filter(\.isLive).map(\.transceiver) }

  /// Sets whether a track is enabled; false if nothing changed.
  mutating func setEnabled(_ isEnabled: Bool, of transceiver: UInt32) -> Bool {
    change(transceiver, \.state.isEnabled, to: isEnabled)
  }

  /// Sets the volume of a track; false if nothing changed.
  mutating func setVolume(_ volume: Double, of transceiver: UInt32) -> Bool {
    change(transceiver, \.state.volume, to: volume)
  }

  /// Records whether media arrives; false if nothing changed.
  mutating func setMuted(_ isMuted: Bool, of transceiver: UInt32) -> Bool {
    // Called for every frame, so the common case comes first.
    if let known = receivers.firstIndex(where: { $0.transceiver == transceiver }),
      receivers[known].state.isMuted == isMuted
    {
      return false
    }
    return change(transceiver, \.state.isMuted, to: isMuted)
  }

  /// Records whether the peer's track is live; false if nothing changed.
  mutating func setLive(_ isLive: Bool, of transceiver: UInt32) -> Bool {
    change(transceiver, \.isLive, to: isLive)
  }

  private mutating func change<Value: Equatable>(
    _ transceiver: UInt32, _ member: WritableKeyPath<Receiver, Value>, to value: Value
  ) -> Bool {
    let known = receivers.firstIndex { $0.transceiver == transceiver }
    if known == nil { receivers.append(Receiver(transceiver: transceiver)) }
    let index = known ?? receivers.count - 1
    guard receivers[index][keyPath: member] != value else { return false }
    receivers[index][keyPath: member] = value
    return true
  }
}
