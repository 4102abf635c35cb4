import Peer
import Synchronization
import Wire

/// What the application sees of a peer: states, counters, and streams of what happens.
///
/// The loop's thread writes, any thread reads. It outlives neither side's interest: the driver
/// holds it to tell, the connection holds it to ask.
final class PeerObservers: Sendable {
  private struct State {
    var states = PeerConnectionStates()
    var counters = MediaCounters()
    var levels = TrackLevels()
    var events: [Int: AsyncStream<PeerConnectionEvent>.Continuation] = [:]
    var stateStreams: [Int: AsyncStream<PeerConnectionStates>.Continuation] = [:]
    var media: [Int: @Sendable (ReceivedMedia) -> Void] = [:]
    var lastID = 0
    var isFinished = false
  }

  /// How many events wait for a reader that is slow; the oldest are dropped beyond that.
  private static let eventsMaximum = 4096

  private let state = Mutex(State())

  var states: PeerConnectionStates { state.withLock { $0.states } }
  var counters: MediaCounters { state.withLock { $0.counters } }
  var audioLevels: [TrackLevel] { state.withLock { $0.levels.all } }

  // MARK: The loop's side

  /// Takes note of something the peer tells.
  func observe(_ event: PeerEvent, at now: Instant) {
    if case .frame(let frame) = event {
      observe(frame, at: now)
      return
    }
    // Yielding under the lock keeps what a new stream begins with and what follows in order.
    state.withLock { state in
      if case .state(let transition) = event { state.states.apply(transition) }
      if case .trackEnded(let transceiver) = event { state.levels.forget(transceiver) }
      guard let told = PeerConnectionEvent(event, states: state.states) else { return }
      for stream in state.events.values { stream.yield(told) }
      guard case .state = event else { return }
      for stream in state.stateStreams.values { stream.yield(state.states) }
    }
  }

  private func observe(_ frame: FrameRecord, at now: Instant) {
    let sinks = state.withLock { state in
      state.counters.count(frame)
      state.levels.add(frame)
      return frame.isInbound ? Array(state.media.values) : []
    }
    guard !sinks.isEmpty, let media = ReceivedMedia(frame, at: now) else { return }
    for sink in sinks { sink(media) }
  }

  /// Ends all streams; nothing more is told.
  func finish() {
    let (events, stateStreams) = state.withLock { state in
      let streams = (Array(state.events.values), Array(state.stateStreams.values))
      state.isFinished = true
      state.events = [:]
      state.stateStreams = [:]
      state.media = [:]
      return streams
    }
    for stream in events { stream.finish() }
    for stream in stateStreams { stream.finish() }
  }

  // MARK: The application's side

  /// Everything that is told from now on.
  func eventStream() -> AsyncStream<PeerConnectionEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionEvent.self, bufferingPolicy: .bufferingNewest(PeerObservers.eventsMaximum))
    add(continuation, to: \.events)
    return stream
  }

  /// The present states and the newest ones from now on; states between two reads are left out.
  func stateStream() -> AsyncStream<PeerConnectionStates> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionStates.self, bufferingPolicy: .bufferingNewest(1))
    // The present states go in together with the registration: none may change in between unseen.
    add(continuation, to: \.stateStreams) { $0.states }
    return stream
  }

  private func add<Element>(
    _ continuation: AsyncStream<Element>.Continuation,
    to streams: any WritableKeyPath<State, [Int: AsyncStream<Element>.Continuation]> & Sendable,
    beginningWith first: (State) -> Element? = { _ in nil }
  ) {
    let id: Int? = state.withLock { state in
      if let first = first(state) { continuation.yield(first) }
      guard !state.isFinished else { return nil }
      state.lastID += 1
      state[keyPath: streams][state.lastID] = continuation
      return state.lastID
    }
    guard let id else {
      continuation.finish()
      return
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { state in state[keyPath: streams][id] = nil }
    }
  }

  /// Calls a closure with all media from now on, on the loop's thread; gives a number to end it
  /// with.
  func addMediaSink(_ sink: @escaping @Sendable (ReceivedMedia) -> Void) -> Int {
    state.withLock { state in
      state.lastID += 1
      if !state.isFinished { state.media[state.lastID] = sink }
      return state.lastID
    }
  }

  func removeMediaSink(_ id: Int) { state.withLock { $0.media[id] = nil } }
}
