package import AudioSession
package import Media
package import Tape
package import Wire

/// An audio session in virtual time, with a scripted device.
package final class VirtualAudioSession {
  private let session = RecordedAudioSession()
  private let writer: TapeWriter?
  private let actor: UInt32
  private var lastCall: UInt32 = 0
  package private(set) var now = Instant.zero

  /// The device's error codes for the operations that it refuses, by their names.
  package var failures: [String: Int32] = [:]
  /// The user's decision about the microphone.
  package var permission = AudioPermission.granted
  /// Whether the device answers immediately.
  package var answersAtOnce = true
  /// The operations that wait for `answer`.
  private var waiting: [(id: UInt32, operation: AudioDeviceOperation)] = []

  /// The operations requested of the device.
  package private(set) var operations: [AudioDeviceOperation] = []
  /// The events, in order.
  package private(set) var events: [AudioSessionEvent] = []
  /// Transitions as `machine: from -> to`.
  package private(set) var states: [String] = []
  /// The names of everything but audio, in order.
  package private(set) var log: [String] = []
  package private(set) var blocks: [CapturedBlock] = []
  package private(set) var played: [RenderedAudio] = []
  private var replies: [UInt32: AudioSessionReply] = [:]
  private var delivered: Result<Int, AudioDeviceError>?

  /// - Parameter writer: records the session; nil records nothing.
  package init(
    _ policy: AudioSessionPolicy = AudioSessionPolicy(), writer: TapeWriter? = nil,
    label: String = "audio"
  ) {
    self.writer = writer
    actor = writer?.addActor(.audioSession, label: label) ?? 1
    step(.genesis(policy))
  }

  package var snapshot: AudioSessionSnapshot { session.snapshot }
  package var deadline: Instant? { session.deadline }

  /// Calls the session and returns its reply; nil if the device has not answered yet.
  @discardableResult
  package func call(_ call: AudioSessionCall) -> AudioSessionReply? {
    lastCall += 1
    let id = lastCall
    step(.call(id: id, call))
    return replies[id]
  }

  /// Calls with the lock held.
  @discardableResult
  package func locked(_ call: AudioSessionCall) -> AudioSessionReply? {
    self.call(.lock)
    defer { self.call(.unlock) }
    return self.call(call)
  }

  /// The reply to a call, if it has arrived since.
  package func reply(to call: UInt32) -> AudioSessionReply? { replies[call] }

  package func handle(_ event: AudioDeviceEvent) { step(.event(event)) }

  /// Delivers audio and returns how many frames were accepted.
  @discardableResult
  package func deliver(_ chunk: PCMChunk, from id: AudioSourceID = AudioSourceID()) -> Result<
    Int, AudioDeviceError
  >? {
    delivered = nil
    step(.deliver(id, chunk))
    return delivered
  }

  package func receive(_ block: AudioBlock, on track: UInt32) {
    step(.rendered(track: track, block))
  }

  package func pull(_ units: Int = 1) { step(.pull(units: units)) }

  /// Advances time; everything due happens at its instant.
  package func wait(_ interval: Interval) {
    let end = now + interval
    while let due = session.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  /// Advances time without handling what is due, as if the process was suspended.
  package func oversleep(_ interval: Interval) {
    now = now + interval
    step(.deadline)
  }

  /// Answers the oldest waiting operation.
  package func answer(_ answer: AudioDeviceAnswer? = nil) {
    guard !waiting.isEmpty else { return }
    let (id, operation) = waiting.removeFirst()
    step(.answer(operation: id, answer ?? self.answer(to: operation)))
  }

  /// Clears the recorded events.
  package func clear() {
    (operations, events, states, log, blocks, played) = ([], [], [], [], [], [])
  }

  private func answer(to operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    if let code = failures[operation.name] { return .failed(code: code) }
    return operation == .requestPermission ? .permission(permission) : .ok
  }

  private func step(_ input: AudioSessionAction) {
    var outbox = Outbox<AudioSessionEffect>()
    session.step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    writer?.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: session.deadline, entropyDrawn: 0))
    for output in outputs { record(output) }
    while answersAtOnce, !waiting.isEmpty { answer() }
  }

  private func record(_ output: AudioSessionEffect) {
    switch output {
    case .operation(let id, let operation):
      operations.append(operation)
      log.append(operation.name)
      waiting.append((id, operation))
    case .event(let event):
      events.append(event)
      log.append(event.name)
    case .state(let machine, let from, let to):
      states.append("\(machine): \(from) -> \(to)")
      log.append("\(machine) \(to)")
    case .reply(let call, let reply):
      replies[call] = reply
    case .captured(let block): blocks.append(block)
    case .played(let audio): played.append(audio)
    case .delivered(let result): delivered = result
    }
  }
}
