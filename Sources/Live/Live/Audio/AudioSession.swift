public import AudioSession
import Dispatch
public import Media
import Peer
import Synchronization
import Tape
import Wire

/// Manages an audio device, its route and the microphone permission for a process's connections.
///
/// Every input is a step in the take of its `Session`. Calls return once the device has answered.
public final class AudioSession: Sendable {
  private struct State {
    let machine = RecordedAudioSession()
    var outbox = Outbox<AudioSessionEffect>()
    var last = Instant.zero
    var lastCall: UInt32 = 0
    var lastSink = 0
    var lastConnection: UInt32 = 0
    /// The numbers of the open connections.
    var open: Set<UInt32> = []
    var isStopped = false
    var replies: [UInt32: AudioSessionReply] = [:]
    var delivered: Result<Int, AudioDeviceError>?
    var converter: PlayoutConverter?
    var sinks: [Int: @Sendable (AudioBlock) -> Void] = [:]
    var events = Readers<AudioSessionEvent>()
  }

  private let state: Mutex<State>
  private let device: any AudioDeviceModule
  private let clock: TakeClock
  private let tape: TapeWriter?
  private let actor: UInt32
  private let waker: AudioWaker
  /// Processes microphone audio if the device cannot do so itself; idle until processing is
  /// requested.
  private let processor: VoiceProcessor?

  init(
    device: any AudioDeviceModule, policy: AudioSessionPolicy, label: String, clock: TakeClock,
    tape: TapeWriter?
  ) throws(SystemError) {
    self.device = device
    self.clock = clock
    self.tape = tape
    state = Mutex(State())
    actor = tape?.addActor(.audioSession, label: label) ?? 0
    let waker = AudioWaker(clock)
    self.waker = waker
    processor =
      device is VoiceProcessingDevice
      ? nil
      : VoiceProcessor(renderFormat: device.renderFormat, profile: .music, controlsGain: false)
    state.withLock { state in
      step(.genesis(policy), &state)
      step(.event(.routeChanged(.newDeviceAvailable, device.route)), &state)
    }
    device.connect(AudioDevicePort(self, processor))
    try startThread(named: "retake-audio") { [weak self] in
      while let (events, isDue) = waker.next() {
        guard let self else { return }
        self.handle(events, isDue: isDue)
      }
    }
  }

  deinit { waker.end() }

  /// Whether the session is finished and accepts no further steps.
  package var isFinished: Bool { state.withLock { $0.isStopped } }

  /// Closes the connections, which stops the device, and accepts no further steps.
  func stop() {
    state.withLock { state in
      for number in state.open.sorted() {
        state.lastCall &+= 1
        step(.call(id: state.lastCall, .closeConnection(number)), &state)
      }
      (state.open, state.sinks, state.isStopped) = ([], [:], true)
      state.events.finish()
    }
    waker.end()
  }

  // MARK: Calls

  /// Performs a call that has no method of its own.
  /// - Throws: `AudioSessionError` if the lock is not held, the device refuses, the microphone may
  ///   not be used, or too many calls are waiting.
  public func call(_ call: AudioSessionCall) throws(AudioSessionError) {
    if case .failed(let error) = reply(to: call) { throw error }
  }

  private func reply(to call: AudioSessionCall) -> AudioSessionReply {
    state.withLock { state in
      state.lastCall &+= 1
      let id = state.lastCall
      switch call {
      case .openConnection(let number, _, _): state.open.insert(number)
      case .closeConnection(let number): state.open.remove(number)
      default: break
      }
      step(.call(id: id, call), &state)
      return state.replies.removeValue(forKey: id) ?? .done
    }
  }

  /// Changes settings while holding the configuration lock.
  public func configure<Result>(
    _ body: (AudioSession) throws(AudioSessionError) -> Result
  ) throws(AudioSessionError) -> Result {
    try call(.lock)
    defer { _ = reply(to: .unlock) }
    return try body(self)
  }

  /// Enters a mode by setting its category, mode, options and port in one step.
  public func apply(_ mode: AudioMode, options: AudioSessionOptions = .modeDefaults)
    throws(AudioSessionError)
  {
    try call(.applyMode(mode, options: options))
  }

  /// Requests permission for the microphone, and prepares it.
  public func initializeInput() async throws(AudioSessionError) { try call(.initializeInput) }

  /// Stops the microphone itself (hard mute); pausing again has no effect.
  public func pauseRecording() throws(AudioSessionError) { try call(.pauseRecording) }

  /// Restarts the microphone.
  public func resumeRecording() throws(AudioSessionError) { try call(.resumeRecording) }

  /// Whether the device waits for `isAudioEnabled`; false initially.
  public var useManualAudio: Bool {
    get { snapshot.useManualAudio }
    set { _ = reply(to: .useManualAudio(newValue)) }
  }

  /// Whether the device may run while `useManualAudio` is set; false initially.
  public var isAudioEnabled: Bool {
    get { snapshot.isAudioEnabled }
    set { _ = reply(to: .setAudioEnabled(newValue)) }
  }

  /// A snapshot of the session and its device.
  package var snapshot: AudioSessionSnapshot { state.withLock { $0.machine.snapshot } }

  /// The counters so far.
  public var counters: AudioDeviceCounters { snapshot.counters }

  /// Handles an event from the system or from a test.
  public func handle(_ event: AudioDeviceEvent) {
    state.withLock { step(.event(event), &$0) }
  }

  /// Events from now on, in order; every access returns a new stream.
  public var events: AsyncStream<AudioSessionEvent> {
    AsyncStream { continuation in state.withLock { $0.events.add(continuation) } }
  }

  // MARK: Audio

  /// Delivers audio that the application captured itself, of any length; the session's own device
  /// must be stopped.
  /// - Returns: the number of accepted frames.
  /// - Throws: `AudioDeviceError`, which states why no frame was accepted; the audio is counted as
  ///   dropped.
  @discardableResult
  public func deliver(_ chunk: PCMChunk, from source: AudioSourceID = AudioSourceID())
    throws(AudioDeviceError) -> Int
  {
    let result = state.withLock { state in
      state.delivered = state.isStopped ? .failure(.audioUnitInactive) : nil
      step(.deliver(source, chunk), &state)
      return state.delivered
    }
    return try result?.get() ?? chunk.frameCount
  }

  /// Returns the next frames to play, in the route's format; silence if nothing was received.
  public func pullPlayout(frames: Int) -> [Int16] {
    let frames = min(max(1, frames), AudioBlock.sampleRate)
    return state.withLock { state in
      let format = state.machine.renderFormat ?? AudioFormat()
      if state.isStopped { return Array(repeating: 0, count: frames * format.channels) }
      if state.converter?.format != format { state.converter = PlayoutConverter(format) }
      while let ready = state.converter?.frames, ready < frames {
        let missing = (frames - ready) * AudioBlock.sampleRate / format.sampleRate
        step(.pull(units: max(1, missing / (AudioBlock.sampleRate / 100))), &state)
      }
      return state.converter?.read(frames) ?? []
    }
  }

  /// Passes received audio on for playback.
  public func play(_ block: AudioBlock, track: UInt32) {
    state.withLock { step(.rendered(track: track, block), &$0) }
  }

  /// Calls a closure with each captured block of 10 ms until the result is released.
  ///
  /// The closure must neither block nor call the session.
  public func onCaptured(_ sink: @escaping @Sendable (AudioBlock) -> Void) -> MediaSubscription {
    let id = state.withLock { state in
      state.lastSink += 1
      state.sinks[state.lastSink] = sink
      return state.lastSink
    }
    return MediaSubscription { [weak self] in
      self?.state.withLock { $0.sinks[id] = nil }
    }
  }

  /// Sends captured audio on a transceiver whose source is `.application`, and plays the audio that
  /// the connection receives, until the result is released.
  /// - Parameters:
  ///   - transceiver: nil to receive only.
  ///   - receiving: whether received audio is played.
  /// - Throws: `AudioSessionError` if the device or the user refused, or if too many connections
  ///   are open. Nothing is attached in that case.
  public func attach(
    _ connection: PeerConnection, sending transceiver: UInt32?, receiving: Bool = true
  ) throws(AudioSessionError) -> AudioAttachment {
    let id = state.withLock { state in
      state.lastConnection += 1
      return state.lastConnection
    }
    let received = receiving ? played(connection, id) : nil
    let captured = transceiver.map { sink(for: connection, $0) }
    let attachment = AudioAttachment(received: received, captured: captured) { [weak self] in
      _ = self?.reply(to: .closeConnection(id))
    }
    let isConnected = connection.connectionState == .connected
    try call(.openConnection(id, sends: transceiver != nil, receives: receiving))
    if transceiver != nil, !isConnected {
      let changes = connection.stateChanges
      attachment.watch(
        by: Task { [weak self] in
          for await states in changes where states.connection == .connected {
            _ = self?.reply(to: .connectionEstablished(id))
            return
          }
        })
    }
    return attachment
  }

  /// Resumes sending after `AudioAttachment.endSending`.
  package func resume(
    _ attachment: AudioAttachment, sending transceiver: UInt32, of connection: PeerConnection
  ) {
    attachment.send(by: sink(for: connection, transceiver))
  }

  private func sink(
    for connection: PeerConnection, _ transceiver: UInt32
  ) -> MediaSubscription {
    onCaptured { [weak connection] in _ = connection?.send($0, on: transceiver) }
  }

  /// Sets the microphone processing for speech or music, on any device.
  /// - Parameter controlsGain: whether the gain is controlled automatically.
  /// - Throws: `AudioSessionError` if the device refuses, or if too many calls are waiting.
  package func processMicrophone(_ profile: AudioProcessingProfile, controlsGain: Bool)
    throws(AudioSessionError)
  {
    try call(.setProcessing(profile))
    (device as? VoiceProcessingDevice)?.autoGain = controlsGain
    processor?.set(profile, controlsGain: controlsGain)
  }

  /// Opens the microphone until the result is released.
  /// - Parameter sink: is called with each block of 10 ms; it must neither block nor call the
  ///   session.
  /// - Throws: `AudioSessionError` if the device or the user refused, or if too many connections
  ///   are open. The microphone stays closed in that case.
  package func openMicrophone(_ sink: @escaping @Sendable (AudioBlock) -> Void)
    throws(AudioSessionError) -> AudioAttachment
  {
    let id = nextConnection()
    let attachment = AudioAttachment(received: nil, captured: onCaptured(sink)) { [weak self] in
      _ = self?.reply(to: .closeConnection(id))
    }
    attachment.whenEstablished { [weak self] in _ = self?.reply(to: .connectionEstablished(id)) }
    try call(.openConnection(id, sends: true, receives: false))
    return attachment
  }

  /// Plays the audio that a connection receives until the result is released.
  /// - Parameter plays: returns whether a transceiver's audio is played.
  /// - Throws: `AudioSessionError` if the device refused, or if too many connections are open.
  ///   Nothing is played in that case.
  package func openLoudspeaker(
    _ connection: PeerConnection, plays: @escaping @Sendable (UInt32) -> Bool
  ) throws(AudioSessionError) -> AudioAttachment {
    let id = nextConnection()
    let received = played(connection, id, plays)
    let attachment = AudioAttachment(received: received, captured: nil) { [weak self] in
      _ = self?.reply(to: .closeConnection(id))
    }
    try call(.openConnection(id, sends: false, receives: true))
    return attachment
  }

  private func nextConnection() -> UInt32 {
    state.withLock { state in
      state.lastConnection += 1
      return state.lastConnection
    }
  }

  private func played(
    _ connection: PeerConnection, _ id: UInt32,
    _ plays: @escaping @Sendable (UInt32) -> Bool = { _ in true }
  ) -> MediaSubscription {
    connection.onMedia { [weak self] media in
      guard case .audio(let block) = media.content, plays(media.transceiver) else { return }
      self?.play(block, track: id << 16 | media.transceiver & 0xffff)
    }
  }

  // MARK: Device events

  func report(_ event: AudioDeviceEvent) { waker.report(event) }

  private func handle(_ events: [AudioDeviceEvent], isDue: Bool) {
    state.withLock { state in
      for event in events { step(.event(event), &state) }
      if isDue { step(.deadline, &state) }
    }
  }

  // MARK: Steps

  /// Applies an input, records it, and passes operations to the device.
  private func step(_ input: AudioSessionAction, _ state: inout State) {
    guard !state.isStopped else { return }
    var inputs = [input]
    while !inputs.isEmpty {
      let input = inputs.removeFirst()
      state.last = max(state.last, clock.now)
      state.machine.step(input, at: state.last, into: &state.outbox)
      let outputs = state.outbox.drain()
      tape?.record(
        StepRecord(
          actor: actor, at: state.last, input: input, outputs: OutputList(outputs),
          deadline: state.machine.deadline, entropyDrawn: 0))
      for output in outputs {
        if case .operation(let id, let operation) = output {
          inputs.append(.answer(operation: id, device.perform(operation)))
        } else {
          record(output, &state)
        }
      }
    }
    waker.set(state.machine.deadline)
  }

  private func record(_ output: AudioSessionEffect, _ state: inout State) {
    switch output {
    case .reply(let call, let reply): state.replies[call] = reply
    case .event(let event): state.events.yield(event)
    case .captured(let captured):
      for sink in state.sinks.values { sink(captured.block) }
    case .played(let played): state.converter?.append(played.block)
    case .delivered(let result): state.delivered = result
    case .operation, .state: break
    }
  }
}

// MARK: - AudioWaker

/// Wakes an audio session at its deadline and for each reported event.
final class AudioWaker: Sendable {
  private struct State {
    var due: Instant?
    /// When the thread's sleep ends; nil for no limit.
    var sleepsUntil: Instant?
    var events: [AudioDeviceEvent] = []
    var isEnded = false
  }

  private let state = Mutex(State())
  private let signal = DispatchSemaphore(value: 0)
  private let clock: TakeClock

  private static let eventsMaximum = 1_024

  init(_ clock: TakeClock) { self.clock = clock }

  /// Sets when to wake the session next.
  func set(_ due: Instant?) {
    let isEarlier = state.withLock { state in
      state.due = due
      guard let due else { return false }
      return state.sleepsUntil.map { due < $0 } ?? true
    }
    if isEarlier { signal.signal() }
  }

  /// Queues an event for the thread.
  func report(_ event: AudioDeviceEvent) {
    state.withLock { if $0.events.count < AudioWaker.eventsMaximum { $0.events.append(event) } }
    signal.signal()
  }

  func end() {
    state.withLock { $0.isEnded = true }
    signal.signal()
  }

  /// Waits for events or the deadline; returns the queued events in order and whether the deadline
  /// was reached, or nil after `end`.
  func next() -> (events: [AudioDeviceEvent], isDue: Bool)? {
    while true {
      let now = clock.now
      let (events, due, isEnded) = state.withLock { state in
        defer { state.events = [] }
        state.sleepsUntil = state.due
        return (state.events, state.due, state.isEnded)
      }
      if isEnded { return nil }
      let isDue = due.map { $0 <= now } ?? false
      if isDue { state.withLock { $0.due = nil } }
      if isDue || !events.isEmpty { return (events, isDue) }
      if let due {
        _ = signal.wait(timeout: .now() + .nanoseconds(Int((due - now).nanoseconds)))
      } else {
        signal.wait()
      }
    }
  }
}
