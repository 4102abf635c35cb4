public import AudioSession
public import Media
import Peer
import Synchronization
import Tape
import Wire

/// An audio session: which way audio goes between a device and the connections of a process, and
/// whether it may.
///
/// Everything that happens to it is a step in the take of its `Session`. Calls return when the
/// device has answered.
public final class AudioSession: Sendable {
  private struct State {
    let machine = RecordedAudioSession()
    var outbox = Outbox<AudioSessionEffect>()
    var last = Instant.zero
    var lastCall: UInt32 = 0
    var lastSink = 0
    var lastConnection: UInt32 = 0
    /// The connections that were opened and not closed.
    var open: Set<UInt32> = []
    /// Whether nothing happens any more.
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
  /// What processes the microphone of a device that does not do it by itself; idle until it is
  /// asked to.
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

  /// Whether it takes no further step, because its session is finished.
  package var isFinished: Bool { state.withLock { $0.isStopped } }

  /// Closes what is open, which stops the device, and takes no further step.
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

  /// Calls the session, for whatever has no method of its own.
  ///
  /// - Throws: `AudioSessionError`: the lock is not held, the device refused, the microphone may
  ///   not be used.
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

  /// Changes settings while the configuration lock is held.
  public func configure<Result>(
    _ body: (AudioSession) throws(AudioSessionError) -> Result
  ) throws(AudioSessionError) -> Result {
    try call(.lock)
    defer { _ = reply(to: .unlock) }
    return try body(self)
  }

  /// Goes into a mode: category, mode, options and port in one.
  public func apply(_ mode: AudioMode, options: AudioSessionOptions = .modeDefaults)
    throws(AudioSessionError)
  {
    try call(.applyMode(mode, options: options))
  }

  /// Asks for the microphone and makes it ready.
  public func initializeInput() async throws(AudioSessionError) { try call(.initializeInput) }

  /// Really stops the microphone (hard mute); doing it twice is as good as once.
  public func pauseRecording() throws(AudioSessionError) { try call(.pauseRecording) }

  /// Starts the microphone again.
  public func resumeRecording() throws(AudioSessionError) { try call(.resumeRecording) }

  /// Whether the device waits for `isAudioEnabled`; false at first.
  public var useManualAudio: Bool {
    get { snapshot.useManualAudio }
    set { _ = reply(to: .useManualAudio(newValue)) }
  }

  /// Whether the device may run, with manual audio; false at first.
  public var isAudioEnabled: Bool {
    get { snapshot.isAudioEnabled }
    set { _ = reply(to: .setAudioEnabled(newValue)) }
  }

  /// The state of the session and its device.
  package var snapshot: AudioSessionSnapshot { state.withLock { $0.machine.snapshot } }

  /// What was counted so far.
  public var counters: AudioDeviceCounters { snapshot.counters }

  /// What happens to the session from outside, as the system or a test tells it.
  public func handle(_ event: AudioDeviceEvent) {
    state.withLock { step(.event(event), &$0) }
  }

  /// What is told from now on, in order; every use gives a stream of its own.
  public var events: AsyncStream<AudioSessionEvent> {
    AsyncStream { continuation in state.withLock { $0.events.add(continuation) } }
  }

  // MARK: Audio

  /// Hands in recorded audio of any length; the device must not run.
  ///
  /// - Returns: how many frames were taken.
  /// - Throws: why none was; the audio is counted as dropped.
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

  /// The next frames to play, in the format of the route; silence where nothing was received.
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

  /// Hands in audio that was received, to be played.
  public func play(_ block: AudioBlock, track: UInt32) {
    state.withLock { step(.rendered(track: track, block), &$0) }
  }

  /// Calls a closure with every 10 ms for the senders; keep the result as long as it shall
  /// continue.
  ///
  /// The closure must return at once and not call the session.
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

  /// Sends what is captured on a transceiver whose source is `.application`, and plays what the
  /// connection receives, until the result goes.
  ///
  /// - Parameters:
  ///   - transceiver: nil only receives.
  ///   - receiving: whether what is received is played.
  /// - Throws: what the device or the user refused; the connection has no microphone then.
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

  /// Sends what is captured once more, after `AudioAttachment.endSending`.
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

  /// Has the microphone processed for speech or for music from now on, whatever the device.
  ///
  /// - Parameter controlsGain: whether its loudness is regulated.
  /// - Throws: what the device refused.
  package func processMicrophone(_ profile: AudioProcessingProfile, controlsGain: Bool)
    throws(AudioSessionError)
  {
    try call(.setProcessing(profile))
    (device as? VoiceProcessingDevice)?.autoGain = controlsGain
    processor?.set(profile, controlsGain: controlsGain)
  }

  /// Opens the microphone for as long as the result lives.
  ///
  /// - Parameter sink: is called with every 10 ms; it must return at once and not call the session.
  /// - Throws: what the device or the user refused; there is no microphone then.
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

  /// Plays what a connection receives for as long as the result lives.
  ///
  /// - Parameter plays: says of a transceiver whether it is played.
  /// - Throws: what the device refused; nothing is played then.
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

  // MARK: The device

  func report(_ event: AudioDeviceEvent) { waker.report(event) }

  private func handle(_ events: [AudioDeviceEvent], isDue: Bool) {
    state.withLock { state in
      for event in events { step(.event(event), &state) }
      if isDue { step(.deadline, &state) }
    }
  }

  // MARK: Steps

  /// Applies an input, writes it down, and lets the device do what it is asked.
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
