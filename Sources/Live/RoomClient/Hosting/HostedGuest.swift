import JSEP
import Live
import Media
import Peer
import Room
import SDP
import Signaling
import Synchronization
import Wire

/// A participant at the server: its socket and connections.
final class HostedGuest: Sendable {
  /// The destination of a participant's forwarded media.
  struct Target: Sendable {
    let connection: PeerConnection
    let transceiver: UInt32
    let media: UInt32
    /// Selects the voices forwarded to this target; nil for all.
    let gate: VoiceGate?
    /// Scales forwarded video to the profile that the participant selected.
    let fit: VideoFit
    var divisor = 1
  }

  /// An m-section for media sent to the participant.
  private struct Place {
    var transceiver: UInt32
    var kind: MediaKind
    /// The media sent in the section; nil if the section is free.
    var media: UInt32?
    let fit: VideoFit
  }

  private struct State {
    var outbox: GuestOutbox
    /// Callers waiting until everything is sent.
    var flushes: [CheckedContinuation<Void, Never>] = []
    /// The number of times that the socket has changed.
    var ways = 0
    var allowance: SpeechAllowance
    var up: PeerConnection?
    var down: PeerConnection?
    var upTransceivers: [String: UInt32] = [:]
    var places: [Place] = []
    /// The media to send; changes wait while an offer is unanswered.
    var wanted: [RoomMedia] = []
    var isOffering = false
    var needsRestart = false
    var subscription: MediaSubscription?
    var routes: [UInt32: [Target]] = [:]
    /// The longer side of the largest frame received so far, in pixels, by transceiver.
    var sides: [UInt32: Int] = [:]
    var reportTalking: (@Sendable (Bool) -> Void)?
    var isOver = false
    /// How many bytes of recorded signaling the participant has sent.
    var signalingBytes = 0
  }

  let id: String
  let room: String
  /// Identifies the session when it resumes on another socket.
  let session: String
  private let live: Session
  private let configuration: PeerConfiguration
  private let state: Mutex<State>
  /// Selects the voices that the participant receives; nil if it receives all.
  private let gate = Mutex<VoiceGate?>(nil)

  init(
    id: String, room: String, session: String, socket: WebSocket, live: Session,
    options: RoomHost.Options, voices: UInt32?
  ) {
    self.id = id
    self.room = room
    self.session = session
    self.live = live
    configuration = options.connection
    state = Mutex(
      State(
        outbox: GuestOutbox(socket),
        allowance: SpeechAllowance(bytesPerSecond: max(1, options.speechBytesPerSecond))))
    guard let voices else { return }
    let made = VoiceGate(count: Int(clamping: voices)) { [weak self] in self?.send(.voices($0)) }
    gate.withLock { $0 = made }
  }

  /// Sets the voices to select from, if the participant receives only selected voices.
  func setVoices(_ voices: [(media: UInt32, isAlwaysOn: Bool)]) {
    gate.withLock { $0 }?.setVoices(voices)
  }

  // MARK: Messages to the participant

  func send(_ notice: RoomNotice) { send(notice.text) }

  /// Queues a message; returns false if it is dropped.
  @discardableResult
  func send(_ text: String, isMessage: Bool = false) -> Bool {
    switch state.withLock({ $0.outbox.append(text, isMessage: isMessage) }) {
    case .waits: return true
    case .begins:
      Task { await sendAll() }
      return true
    case .leftOut: return false
    case .isOver(let socket):
      socket.post(close: .policyViolation, reason: "the participant reads too slowly")
      return false
    }
  }

  private func sendAll() async {
    while let (socket, text) = state.withLock({ $0.outbox.next() }) {
      // Sending fails if the socket is closed; the loop that serves the socket notices its end.
      try? await socket.send(.text(text))
      state.withLock { $0.outbox.didSend(text, over: socket) }
    }
    resumeFlushes()
  }

  /// Waits until the last message is sent, for at most a second.
  ///
  /// So a participant that does not read delays the caller by a second at most.
  func flush() async {
    let limit = Task { [weak self] in
      guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
      self?.resumeFlushes()
    }
    await withCheckedContinuation { continuation in
      let isSent = state.withLock { state in
        if !state.outbox.isEmpty { state.flushes.append(continuation) }
        return state.outbox.isEmpty
      }
      if isSent { continuation.resume() }
    }
    limit.cancel()
  }

  private func resumeFlushes() {
    let flushes = state.withLock { state in
      defer { state.flushes = [] }
      return state.flushes
    }
    for flush in flushes { flush.resume() }
  }

  /// Counts bytes sent to others on the participant's behalf; returns how long to wait before
  /// reading its next message.
  func spend(_ bytes: Int) -> Duration { state.withLock { $0.allowance.spend(bytes) } }

  func listen(_ tell: @escaping @Sendable (Bool) -> Void) {
    state.withLock { $0.reportTalking = tell }
  }

  /// Sends the participant the selected voices again.
  func repeatVoices() { gate.withLock { $0 }?.repeatReport() }

  /// Returns whether a socket is the participant's current socket.
  func isHeard(on socket: WebSocket) -> Bool { state.withLock { $0.outbox.socket === socket } }

  /// Records that a socket was lost; returns a number for `isLost(since:)`, or nil if the
  /// participant uses another socket.
  func lose(_ socket: WebSocket) -> Int? {
    state.withLock { state in
      if state.outbox.socket === socket {
        _ = state.outbox.exchange(nil)
        state.ways += 1
      }
      return state.outbox.socket == nil ? state.ways : nil
    }
  }

  /// Resumes on another socket; the former socket is closed and ignored.
  func resume(_ socket: WebSocket) {
    let former = state.withLock { state in
      state.isOffering = false
      state.ways += 1
      return state.outbox.exchange(socket)
    }
    former?.post(close: .goingAway, reason: "the session continues on another connection")
  }

  /// Returns whether the participant has not reconnected since it lost its socket.
  func isLost(since loss: Int) -> Bool {
    state.withLock { $0.outbox.socket == nil && $0.ways == loss }
  }

  /// Counts recorded bytes; returns false if there are too many.
  func counts(_ count: Int, atMost maximum: Int) -> Bool {
    state.withLock { state in
      state.signalingBytes += count
      return state.signalingBytes <= maximum
    }
  }

  /// Closes the participant's connections; its socket is closed by the task that serves the socket.
  func end() async {
    let (up, down) = state.withLock { state in
      defer {
        (state.up, state.down, state.subscription, state.routes) = (nil, nil, nil, [:])
        state.isOver = true
      }
      return (state.up, state.down)
    }
    await up?.close()
    await down?.close()
  }

  private func makePeer(_ side: RoomConnection) -> PeerConnection {
    var configuration = configuration
    configuration.establishmentTimeoutMilliseconds = 0
    let peer = live.makePeer(
      label: "\(id) \(side.rawValue)", role: "room \(side.rawValue)", configuration: configuration)
    let events = peer.events
    Task { [weak self] in
      for await event in events {
        switch event {
        case .iceCandidate(let candidate): self?.send(.candidate(side, candidate))
        case .speechBegan(let track) where side == .up && track.isInbound: self?.reportTalking(true)
        case .speechEnded(let track) where side == .up && track.isInbound:
          self?.reportTalking(false)
        default: break
        }
      }
    }
    return peer
  }

  private func reportTalking(_ isTalking: Bool) { state.withLock { $0.reportTalking }?(isTalking) }

  // MARK: Requests from the participant

  func receive(offer sdp: String, _ media: [RoomLocalMedia]) async throws(PeerError) {
    let known = state.withLock { $0.up }
    let up = known ?? makePeer(.up)
    if known == nil {
      let subscription = up.onMedia { [weak self] in self?.forward($0) }
      let isOver = state.withLock { state in
        if !state.isOver { (state.up, state.subscription) = (up, subscription) }
        return state.isOver
      }
      // The participant may have left meanwhile.
      if isOver { return await up.close() }
    }
    try await up.setRemoteDescription(SessionDescription(type: .offer, sdp: sdp))
    try await up.setLocalDescription()
    let transceivers = try await up.transceivers
    state.withLock { state in
      state.upTransceivers = [:]
      for info in transceivers { if let mid = info.mid { state.upTransceivers[mid] = info.id } }
    }
    guard let answer = try await up.localDescription else { return }
    send(.answer(sdp: answer.sdp))
  }

  func stop() async {
    let up = state.withLock { state in
      defer { (state.up, state.subscription, state.routes) = (nil, nil, [:]) }
      return state.up
    }
    await up?.close()
  }

  func transceiver(mid: String) -> UInt32? { state.withLock { $0.upTransceivers[mid] } }
  func setRoutes(_ routes: [UInt32: [Target]]) { state.withLock { $0.routes = routes } }

  /// Forwards received media, on the loop's thread.
  private func forward(_ media: ReceivedMedia) {
    let (targets, side) = state.withLock { state in
      if case .videoFrame(let frame) = media.content {
        let side = max(frame.width, frame.height)
        state.sides[media.transceiver] = max(side, state.sides[media.transceiver] ?? 0)
      }
      return (state.routes[media.transceiver] ?? [], state.sides[media.transceiver] ?? 0)
    }
    for target in targets {
      switch media.content {
      case .audio(let block): pass(block, media, to: target)
      case .videoFrame(let frame):
        target.fit.fit(
          side: max(frame.width, frame.height), full: side, divisor: target.divisor)
        target.connection.send(frame, on: target.transceiver)
      case .encodedVideo(let chunk): target.connection.send(chunk, on: target.transceiver)
      }
    }
  }

  private func pass(_ block: AudioBlock, _ media: ReceivedMedia, to target: Target) {
    guard let gate = target.gate else {
      target.connection.send(block, on: target.transceiver)
      return
    }
    let level = media.isConcealed ? nil : media.audioLevel ?? block.level
    if let passed = gate.pass(block, level: level, of: target.media, at: media.at) {
      target.connection.send(passed, on: target.transceiver)
    }
  }

  // MARK: Media to the participant

  func target(of media: UInt32) -> Target? {
    state.withLock { state in
      guard let down = state.down,
        let place = state.places.first(where: { $0.media == media })
      else { return nil }
      return Target(
        connection: down, transceiver: place.transceiver, media: media,
        gate: gate.withLock { $0 }, fit: place.fit)
    }
  }

  func restartDown() { state.withLock { $0.needsRestart = true } }

  /// Offers the wanted media if it has changed or ICE has to restart, unless an offer is
  /// unanswered.
  func offer(_ wanted: [RoomMedia]) async {
    let begins = state.withLock { state in
      state.wanted = wanted
      guard !state.isOver, !state.isOffering else { return false }
      let present = state.places.compactMap(\.media).sorted()
      guard state.needsRestart || present != wanted.map(\.number).sorted() else { return false }
      state.isOffering = true
      return true
    }
    guard begins else { return }
    do throws(PeerError) {
      try await describe(wanted)
    } catch {
      state.withLock { $0.isOffering = false }
      send(.error(RoomFault(.offerFailed, error.message), isCritical: false))
    }
  }

  private func describe(_ wanted: [RoomMedia]) async throws(PeerError) {
    let (known, restarts) = state.withLock { state in
      defer { state.needsRestart = false }
      return (state.down, state.needsRestart && state.down != nil)
    }
    let down = known ?? makePeer(.down)
    if known == nil {
      let isOver = state.withLock { state in
        if !state.isOver { state.down = down }
        return state.isOver
      }
      if isOver { return await down.close() }
    }
    let numbers = wanted.map(\.number)
    for place in state.withLock({ $0.places }) {
      guard let media = place.media, !numbers.contains(media) else { continue }
      try await down.setDirection(.inactive, of: place.transceiver)
      setPlace(place.transceiver) { $0.media = nil }
    }
    for media in wanted where target(of: media.number) == nil {
      let free = state.withLock { state in
        state.places.first { $0.media == nil && $0.kind == media.kind }?.transceiver
      }
      if let free {
        try await down.setDirection(.sendonly, of: free)
        setPlace(free) { $0.media = media.number }
      } else {
        let info = try await down.addTransceiver(
          media.kind, direction: .sendonly, source: .application, streamIDs: ["room"])
        state.withLock {
          $0.places.append(
            Place(
              transceiver: info.id, kind: media.kind, media: media.number,
              fit: VideoFit(down, info.id)))
        }
      }
    }
    try await down.setLocalDescription(try await down.createOffer(iceRestart: restarts))
    guard let offer = try await down.localDescription else { return }
    let transceivers = try await down.transceivers
    let places = state.withLock { $0.places }.compactMap { place -> RoomPlace? in
      guard let media = place.media,
        let mid = transceivers.first(where: { $0.id == place.transceiver })?.mid
      else { return nil }
      return RoomPlace(number: media, mid: mid)
    }
    send(.offer(sdp: offer.sdp, media: places))
  }

  private func setPlace(_ transceiver: UInt32, _ change: (inout Place) -> Void) {
    state.withLock { state in
      guard let index = state.places.firstIndex(where: { $0.transceiver == transceiver }) else {
        return
      }
      change(&state.places[index])
    }
  }

  func receive(answer sdp: String) async {
    guard let down = state.withLock({ $0.down }) else { return }
    do throws(PeerError) {
      try await down.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
    } catch {
      send(.error(RoomFault(.remoteDescriptionFailed, error.message), isCritical: false))
    }
    state.withLock { $0.isOffering = false }
  }

  func add(_ candidate: CandidateInit?, to side: RoomConnection) async {
    let connection = state.withLock { side == .up ? $0.up : $0.down }
    // Ignore the error: the connection counts invalid candidates itself.
    try? await connection?.addICECandidate(candidate)
  }
}

extension AudioBlock {
  /// The block's level in -dBov.
  fileprivate var level: UInt8 {
    let loudness = Loudness(samples: samples, channels: channels)
    return AudioMeter.level(energy: loudness.energy, frameCount: frameCount)
  }
}
