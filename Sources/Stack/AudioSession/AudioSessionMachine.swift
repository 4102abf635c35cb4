import Media
package import Wire

/// The state machine of an audio session and its device: route, permission, and audio in 10 ms
/// blocks.
///
/// Session and device share one machine because the device's state decides whether a chunk of audio
/// is accepted at that instant, and because a route change affects both in one step.
package struct AudioSessionMachine: Machine {
  package typealias Input = AudioSessionAction
  package typealias Output = AudioSessionEffect

  private var control = SessionControl(AudioSessionPolicy())
  private var mixer = CaptureMixer(AudioSessionPolicy())
  private var playout = PlayoutQueue()
  /// Captured audio held until the output of the same I/O period has been handled.
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

  /// The format the device plays; nil if it cannot play, or only in an unsupported format.
  package var renderFormat: AudioFormat? {
    control.route.renderFormat.flatMap { $0.fault == nil ? $0 : nil }
  }

  private var renderChannels: Int { min(2, renderFormat?.channels ?? 1) }

  // MARK: Audio

  private mutating func hold(
    _ id: AudioSourceID, _ chunk: PCMChunk, at now: Instant,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    // With an aggregated clock, the output and input of an I/O period are handled in one step,
    // output first, as on the device's thread.
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

  /// Applies a change to the device's state and adapts the audio to the new state.
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

// MARK: - CaptureMixer

/// Mixes all sources into one stream of 10 ms blocks.
struct CaptureMixer {
  private let channels: Int
  private let patience: Interval
  private var lines: [SourceLine] = []
  private var blocks: UInt64 = 0
  private(set) var counters = AudioDeviceCounters()

  private static let linesMaximum = 16
  /// The longest chunk accepted, in seconds.
  private static let chunkSeconds = 2

  init(_ policy: AudioSessionPolicy) {
    channels = min(2, max(1, policy.captureChannels))
    patience = .milliseconds(Int64(min(1_000, max(10, policy.starvationMilliseconds))))
  }

  /// When audio from a source is next overdue and silence replaces it; nil if no source is
  /// expected.
  var deadline: Instant? { lines.reduce(nil) { earliest($0, $1.deadline) } }

  /// Accepts a chunk, or reports why it is dropped.
  mutating func deliver(
    _ id: AudioSourceID, _ chunk: PCMChunk, refusal: AudioDeviceError?, at now: Instant,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    // An empty chunk is not an error, because a sample buffer may have an empty block buffer.
    if chunk.data.isEmpty, chunk.format.fault == nil {
      outbox.append(.delivered(.success(0)))
      return
    }
    guard let index = index(of: id) else {
      return drop(chunk, .tooManySources, into: &outbox)
    }
    if let fault = chunk.fault ?? refusal ?? CaptureMixer.excess(chunk) {
      if lines[index].refusal != fault.name {
        lines[index].refusal = fault.name
        outbox.append(.event(.sourceRefused(id, reason: fault.name)))
      }
      return drop(chunk, fault, into: &outbox)
    }
    lines[index].refusal = nil
    prepare(index, chunk.format, into: &outbox)
    if let silent = lines[index].silentBlocks {
      outbox.append(.event(.sourceResumed(id, silentBlocks: silent)))
      report(id, "starved", "flowing", into: &outbox)
    } else if !lines[index].isExpected {
      report(id, "idle", "flowing", into: &outbox)
    }
    counters.deliveries += 1
    counters.deliveredFrames += chunk.frameCount
    if lines[index].isResampled { counters.resampledDeliveries += 1 }
    counters.overflowedBlocks += lines[index].append(chunk, at: now)
    outbox.append(.delivered(.success(chunk.frameCount)))
    mix(into: &outbox)
  }

  /// Inserts silence for sources whose audio is overdue.
  mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<AudioSessionEffect>) {
    for index in lines.indices {
      guard let due = lines[index].deadline, due <= now else { continue }
      if lines[index].silentBlocks == nil {
        counters.starvations += 1
        report(lines[index].id, "flowing", "starved", into: &outbox)
        outbox.append(.event(.sourceStarved(lines[index].id)))
      }
      let (silent, dropped) = lines[index].fill(at: now)
      counters.silentBlocks += silent
      counters.overflowedBlocks += dropped
    }
    mix(into: &outbox)
  }

  /// Prepares a known source for audio in another format, before a chunk in that format arrives.
  mutating func prepare(
    _ id: AudioSourceID, _ format: AudioFormat, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    guard format.fault == nil, let index = lines.firstIndex(where: { $0.id == id }) else {
      return
    }
    prepare(index, format, into: &outbox)
  }

  /// Stops waiting for the sources of an origin, or for all sources if `origin` is nil, until they
  /// provide audio again.
  mutating func pause(
    _ origin: AudioSourceOrigin?, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    for index in lines.indices where origin == nil || lines[index].id.origin == origin {
      pause(index, into: &outbox)
    }
    mix(into: &outbox)
  }

  mutating func remove(_ number: UInt32, into outbox: inout Outbox<AudioSessionEffect>) {
    for index in lines.indices where lines[index].id.number == number {
      pause(index, into: &outbox)
    }
    lines.removeAll { $0.id.number == number }
    mix(into: &outbox)
  }

  // MARK: Sources

  /// Returns an error if a chunk is too long; nil otherwise.
  private static func excess(_ chunk: PCMChunk) -> AudioDeviceError? {
    guard chunk.frameCount > chunkSeconds * chunk.format.sampleRate else { return nil }
    return .chunkTooLong(frames: chunk.frameCount)
  }

  private mutating func index(of id: AudioSourceID) -> Int? {
    if let known = lines.firstIndex(where: { $0.id == id }) { return known }
    guard lines.count < CaptureMixer.linesMaximum else { return nil }
    lines.append(SourceLine(id, channels: channels, patience: patience))
    return lines.count - 1
  }

  private mutating func pause(_ index: Int, into outbox: inout Outbox<AudioSessionEffect>) {
    guard lines[index].isExpected else { return }
    let before = lines[index].silentBlocks == nil ? "flowing" : "starved"
    lines[index].pause()
    report(lines[index].id, before, "idle", into: &outbox)
  }

  private mutating func prepare(
    _ index: Int, _ format: AudioFormat, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    guard let change = lines[index].prepare(format) else { return }
    counters.formatChanges += 1
    counters.framesLostByFormatChange += change.lostFrames
    outbox.append(
      .event(
        .sourceFormatChanged(
          lines[index].id, from: change.from, to: format, lostFrames: change.lostFrames)))
  }

  private mutating func drop(
    _ chunk: PCMChunk, _ fault: AudioDeviceError, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    counters.drops += 1
    counters.droppedFrames += chunk.frameCount
    counters.dropsByReason[fault.name, default: 0] += 1
    outbox.append(.delivered(.failure(fault)))
  }

  private func report(
    _ id: AudioSourceID, _ from: String, _ to: String,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    let machine = "audio-source-\(id.number)-\(id.tag.rawValue)"
    outbox.append(.state(machine: machine, from: from, to: to))
  }

  /// Emits a block for every 10 ms that all expected sources have provided.
  private mutating func mix(into outbox: inout Outbox<AudioSessionEffect>) {
    while true {
      let ready = lines.indices.filter { lines[$0].isExpected }
      guard !ready.isEmpty, ready.allSatisfy({ lines[$0].hasUnit }) else { return }
      var sounding: [[Int16]] = []
      for index in ready {
        if let unit = lines[index].popUnit(), !unit.isFiller { sounding.append(unit.samples) }
      }
      counters.capturedBlocks += 1
      let block = AudioBlock(samples: CaptureMixer.sum(sounding, channels), channels: channels)
      outbox.append(
        .captured(CapturedBlock(index: blocks, block: block, sources: sounding.count)))
      blocks += 1
    }
  }

  /// Returns the sum of several units, clipped to 16 bits.
  static func sum(_ units: [[Int16]], _ channels: Int) -> [Int16] {
    if units.count == 1 { return units[0] }
    var sum = [Int32](repeating: 0, count: AudioBlock.sampleRate / 100 * channels)
    for unit in units { ChannelMap.add(unit, to: &sum) }
    return sum.map { Int16(clamping: $0) }
  }
}
