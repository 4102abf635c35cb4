import Wire

/// The states in takes, each changed in one place so that every transition is reported.
struct SessionStates {
  typealias Effects = Outbox<AudioSessionEffect>

  private(set) var lockCount = 0
  private(set) var isActive = false
  private(set) var isInterrupted = false
  private(set) var hasServer = true
  private(set) var permission = AudioPermission.undetermined
  private(set) var unit = AudioUnitState.uninitialized
  private(set) var recording = "stopped"
  private(set) var playout = "stopped"

  mutating func setLock(_ count: Int, into outbox: inout Effects) {
    report(
      "audio-lock", lockCount > 0 ? "locked" : "unlocked", count > 0 ? "locked" : "unlocked",
      into: &outbox)
    lockCount = count
  }

  mutating func setActive(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-session", isActive ? "active" : "inactive", next ? "active" : "inactive",
      into: &outbox)
    isActive = next
  }

  mutating func setInterrupted(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-interruption", isInterrupted ? "interrupted" : "none", next ? "interrupted" : "none",
      into: &outbox)
    isInterrupted = next
  }

  mutating func setServer(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-server", hasServer ? "running" : "terminated", next ? "running" : "terminated",
      into: &outbox)
    hasServer = next
  }

  mutating func setPermission(_ next: AudioPermission, into outbox: inout Effects) {
    report("audio-permission", permission.rawValue, next.rawValue, into: &outbox)
    permission = next
  }

  mutating func setUnit(_ next: AudioUnitState, into outbox: inout Effects) {
    report("audio-unit", unit.rawValue, next.rawValue, into: &outbox)
    unit = next
  }

  mutating func setRecording(_ next: String, into outbox: inout Effects) {
    report("audio-recording", recording, next, into: &outbox)
    recording = next
  }

  mutating func setPlayout(_ next: String, into outbox: inout Effects) {
    report("audio-playout", playout, next, into: &outbox)
    playout = next
  }

  private func report(
    _ machine: String, _ from: String, _ to: String, into outbox: inout Effects
  ) {
    if from != to { outbox.append(.state(machine: machine, from: from, to: to)) }
  }
}
