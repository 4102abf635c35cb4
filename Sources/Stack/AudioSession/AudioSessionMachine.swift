import Media
package import Wire

/// An audio session with its device as one machine: route, permission, and the audio itself in 10
/// ms blocks.
///
/// One machine rather than two, because the device's state decides whether a chunk of audio is
/// accepted at that instant, and a route change affects both in one step.
package struct AudioSessionMachine: Machine {
  package typealias Input = AudioSessionAction
  package typealias Output = AudioSessionEffect

  private var control = SessionControl(AudioSessionPolicy())
  private var mixer = CaptureMixer(AudioSessionPolicy())
  private var playout = PlayoutQueue()
  /// Captured audio waiting for its period's output.
  private var held: [(id: AudioSourceID, chunk: PCMChunk)] = []

  private static let heldMaximum = 4

  package init() {}

  package var deadline: Instant? { mixer.deadline }

  package mutating func step(
    _ input: AudioSessionAction, at now: Instant, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    switch input {
    case .genesis(let policy):
      control = SessionControl(policy)
      mixer = CaptureMixer(policy)
    case .deadline: mixer.reachDeadline(at: now, into: &outbox)
    case .call(let id, .readCounters):
      outbox.append(.reply(call: id, .counters(counters)))
    case .call(let id, .removeSource(let number)):
      mixer.remove(number, into: &outbox)
      outbox.append(.reply(call: id, .done))
    case .call(let id, let call): follow(at: now, &outbox) { $0.call(id, call, into: &$1) }
    case .event(let event): follow(at: now, &outbox) { $0.handle(event, into: &$1) }
    case .answer(let operation, let answer):
      follow(at: now, &outbox) { $0.answer(operation, answer, into: &$1) }
    case .deliver(let id, let chunk): hold(id, chunk, at: now, into: &outbox)
    case .rendered(let track, let block):
      if control.states.playout == "playing" { playout.append(block, of: track) }
    case .pull(let units):
      let isMuted = control.states.playout != "playing"
      outbox.append(.played(playout.pull(units, channels: renderChannels, isMuted: isMuted)))
      release(at: now, into: &outbox)
    }
  }

  package var counters: AudioDeviceCounters {
    var counters = mixer.counters
    counters.playedUnits = playout.playedUnits
    counters.silentUnits = playout.silentUnits
    counters.overflowedFrames = playout.overflowedFrames
    return counters
  }

  /// The session's state as plain data.
  package var snapshot: AudioSessionSnapshot {
    AudioSessionSnapshot(
      category: control.settings.category.rawValue, mode: control.settings.mode.rawValue,
      options: control.settings.options.rawValue, portOverride: control.settings.portOverride,
      activationCount: control.activations.count, isActive: control.states.isActive,
      isInterrupted: control.states.isInterrupted, isLocked: control.states.lockCount > 0,
      useManualAudio: control.manual.isManual, isAudioEnabled: control.manual.isEnabled,
      canPlayOrRecord: control.canPlayOrRecord, permission: control.states.permission,
      unit: control.states.unit, recording: control.states.recording,
      playout: control.states.playout, route: control.route.text, counters: counters,
      audioRoute: control.route, wanted: control.settings.wanted)
  }

  /// The format the device plays; nil if it cannot play.
  package var renderFormat: AudioFormat? {
    control.route.renderFormat.flatMap { $0.fault == nil ? $0 : nil }
  }

  private var renderChannels: Int { min(2, renderFormat?.channels ?? 1) }

  // MARK: Audio

  private mutating func hold(
    _ id: AudioSourceID, _ chunk: PCMChunk, at now: Instant,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    // With an aggregated clock, a period's output and input are one step, output first, as on the
    // device's thread.
    if control.settings.ioType == .aggregated, id.origin == .unit,
      control.states.playout == "playing"
    {
      held.append((id, chunk))
      if held.count > AudioSessionMachine.heldMaximum { release(at: now, into: &outbox) }
    } else {
      deliver(id, chunk, at: now, into: &outbox)
    }
  }

  private mutating func release(
    at now: Instant, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    let waiting = held
    held = []
    for (id, chunk) in waiting { deliver(id, chunk, at: now, into: &outbox) }
  }

  private mutating func deliver(
    _ id: AudioSourceID, _ chunk: PCMChunk, at now: Instant,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    let refusal = control.refusal(of: id, chunk.format)
    mixer.deliver(id, chunk, refusal: refusal, at: now, into: &outbox)
    if refusal == .formatMismatch, chunk.fault == nil {
      follow(at: now, &outbox) { $0.reinitialize(chunk.format, into: &$1) }
    }
  }

  /// Applies a change to the device's state and adapts the audio to it.
  private mutating func follow(
    at now: Instant, _ outbox: inout Outbox<AudioSessionEffect>,
    _ change: (inout SessionControl, inout Outbox<AudioSessionEffect>) -> Void
  ) {
    let before = control.captureFormat
    change(&control, &outbox)
    let states = control.states
    if states.recording != "recording" {
      mixer.pause(.unit, into: &outbox)
      held = []
    }
    if control.isPaused || states.unit != .uninitialized { mixer.pause(.external, into: &outbox) }
    if states.playout != "playing" { playout.removeAll() }
    if let format = control.captureFormat, format != before {
      mixer.prepare(.unit, format, into: &outbox)
    }
  }
}

/// An audio session's state as plain data.
package struct AudioSessionSnapshot: Sendable {
  package var category: String
  package var mode: String
  package var options: UInt
  package var portOverride: AudioPortOverride
  package var activationCount: Int
  package var isActive: Bool
  package var isInterrupted: Bool
  package var isLocked: Bool
  package var useManualAudio: Bool
  package var isAudioEnabled: Bool
  package var canPlayOrRecord: Bool
  package var permission: AudioPermission
  package var unit: AudioUnitState
  package var recording: String
  package var playout: String
  package var route: String
  package var counters: AudioDeviceCounters
  package var audioRoute: AudioRoute
  /// The configuration the application requested.
  package var wanted: AudioSessionConfiguration
}
