package import AudioSession
package import Media
package import Peer
package import Secure
package import Tape
package import Wire

/// An audio session in virtual time, with a scripted device.
package final class VirtualAudioSession {
  private let session = RecordedAudioSession()
  private let writer: TapeWriter?
  private let actor: UInt32
  private var lastCall: UInt32 = 0
  package private(set) var now = Instant.zero

  /// The error code for each operation that the device refuses, by the name of the operation.
  package var failures: [String: Int32] = [:]
  /// The user's decision about the microphone.
  package var permission = AudioPermission.granted
  /// Whether the device answers immediately; otherwise its operations wait for `answer`.
  package var answersAtOnce = true
  /// The operations that wait for `answer`.
  private var waiting: [(id: UInt32, operation: AudioDeviceOperation)] = []

  package private(set) var operations: [AudioDeviceOperation] = []
  package private(set) var events: [AudioSessionEvent] = []
  /// The transitions of the session's state machines, as `machine: from -> to`.
  package private(set) var states: [String] = []
  /// The operations, events and transitions in order, without audio.
  package private(set) var log: [String] = []
  package private(set) var blocks: [CapturedBlock] = []
  package private(set) var played: [RenderedAudio] = []
  private var replies: [UInt32: AudioSessionReply] = [:]
  private var delivered: Result<Int, AudioDeviceError>?

  /// Creates a session with its scripted device.
  ///
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

  /// Makes a call while holding the audio session's lock; returns its reply, or nil if the device
  /// has not answered yet.
  @discardableResult
  package func locked(_ call: AudioSessionCall) -> AudioSessionReply? {
    self.call(.lock)
    defer { self.call(.unlock) }
    return self.call(call)
  }

  /// Returns the reply to a call; nil if it has not arrived.
  package func reply(to call: UInt32) -> AudioSessionReply? { replies[call] }

  package func handle(_ event: AudioDeviceEvent) { step(.event(event)) }

  /// Delivers audio and returns the number of accepted frames or an error; nil if the session has
  /// not answered yet.
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

  /// Advances time, handling everything that falls due at its due time.
  package func wait(_ interval: Interval) {
    let end = now + interval
    while let due = session.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  /// Advances time as if the process were suspended: everything that falls due is handled at the
  /// end.
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

  /// Clears the operations, events, transitions and audio recorded so far.
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

// MARK: - VirtualAudioCall

/// An audio session and a call on one clock: one peer sends what the session captures, and the
/// session plays what that peer receives.
package final class VirtualAudioCall {
  /// The session; time and audio must reach it through `run` and `deliver` of the call.
  package let session: VirtualAudioSession
  package let call: VirtualCall
  private let peer: Int
  private let transceiver: UInt32

  /// Connects a session to a peer's transceiver, whose source must be the application.
  package init(
    _ session: VirtualAudioSession, _ call: VirtualCall, peer: Int, transceiver: UInt32
  ) {
    self.session = session
    self.call = call
    self.peer = peer
    self.transceiver = transceiver
    call.onEvent = { [weak self] peer, event in self?.play(event, of: peer) }
  }

  /// Delivers microphone audio to the session, and sends what the session captures.
  package func deliver(_ chunk: PCMChunk) {
    session.deliver(chunk, from: .unit)
    forward()
  }

  /// Advances the session and the call, handling everything that falls due at its due time.
  package func run(for interval: Interval) {
    let end = call.now + interval
    while let due = session.deadline, due <= end {
      call.run(until: due)
      // Received audio may have moved the session's deadline.
      catchUp()
      forward()
    }
    call.run(until: end)
    catchUp()
    forward()
  }

  private func catchUp() { session.wait(call.now - session.now) }

  private func forward() {
    let blocks = session.blocks
    session.clear()
    for captured in blocks {
      call.step(peer, .captured(transceiver: transceiver, .audio(captured.block)))
    }
  }

  private func play(_ event: PeerEvent, of peer: Int) {
    guard peer == self.peer, case .frame(let frame) = event, frame.isInbound,
      case .audio(let block) = frame.decoded
    else { return }
    catchUp()
    session.receive(block, on: frame.transceiver)
  }
}

// MARK: - RecordedVirtualCall

/// A virtual call whose steps are recorded into a take or passed to a sink.
package final class RecordedVirtualCall {
  package let call: VirtualCall
  /// The take's writer; nil if the steps go to a sink.
  let writer: TapeWriter?

  /// Creates a call whose steps go to a sink instead of a take.
  package init(
    seed: UInt64, links: [LinkSettings], configurations: [PeerConfiguration],
    sink: @escaping VirtualCall.StepSink
  ) {
    writer = nil
    call = VirtualCall(seed: seed, links: links, configurations: configurations, sink: sink)
  }

  /// Creates a call and its take, in which peers have the names in `labels`; peers without a label
  /// are not recorded.
  /// - Parameters:
  ///   - only: the only peer to record; nil for all.
  ///   - unixNanoseconds: the wall-clock time at the start.
  package init(
    path: String, seed: UInt64, links: [LinkSettings], labels: [String], label: String = "",
    tags: [String: String] = [:], keepsMedia: Bool = true,
    configurations: [PeerConfiguration] = [], only: Int? = nil,
    unixNanoseconds: Int64 = labEpoch, security: any SecurityFactory = LibrarySecurity()
  ) throws(TapeError) {
    var options = TapeWriter.Options()
    options.label = label
    options.keepsMedia = keepsMedia
    options.tags = tags
    options.startUnixNanoseconds = unixNanoseconds
    options.toolVersion = retakeVersion
    // Virtual time runs faster than any disk can write, so the call waits for the writer.
    options.waitsForDisk = true
    options.queueLimit = 32 << 20
    options.toolchain = try Toolchain.current(for: path)
    let writer = try TapeWriter(path: path, options: options)
    self.writer = writer
    let numbers = labels.enumerated().map { place, label in
      only == nil || only == place ? writer.addPeer(label: label, role: label).actor : 0
    }
    let unrecorded = [UInt32](repeating: 0, count: max(0, links.count - labels.count))
    call = VirtualCall(
      seed: seed, links: links, configurations: configurations,
      unixNanoseconds: unixNanoseconds, peerNumbers: numbers + unrecorded, security: security
    ) { if $0.actor > 0 { writer.record($0) } }
  }

  /// Creates an audio session in the same take.
  package func audioSession(
    _ policy: AudioSessionPolicy = AudioSessionPolicy(), label: String = "audio"
  ) -> VirtualAudioSession {
    VirtualAudioSession(policy, writer: writer, label: label)
  }

  /// Advances virtual time, sampling every peer's stats once per second.
  package func run(for interval: Interval) {
    let end = call.now + interval
    while call.now < end {
      call.run(until: min(end, call.now + .seconds(1)))
      for peer in call.network.links.indices { call.call(peer, .getStats()) }
    }
  }

  /// Writes all queued steps, so that readers of the take find them.
  package func flush() { writer?.flush() }

  /// Completes the take in the middle of the call.
  package func cutOff() throws(TapeError) -> TapeWriter.Summary { try finishedTake() }

  /// Closes the peers and completes the take.
  package func finish() throws(TapeError) -> TapeWriter.Summary {
    for peer in call.network.links.indices { call.call(peer, .close) }
    call.run(for: .milliseconds(200))
    return try finishedTake()
  }

  private func finishedTake() throws(TapeError) -> TapeWriter.Summary {
    guard let writer else { return TapeWriter.Summary() }
    return try writer.finish()
  }
}
