import Peer
import SCTP
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
    var demand = KeyframeDemand()
    var events = Readers<PeerConnectionEvent>()
    var stateReaders = Readers<PeerConnectionStates>()
    var media: [Int: @Sendable (ReceivedMedia) -> Void] = [:]
    var listener: (@Sendable (PeerConnectionNews) -> Void)?
    /// The channels that are not closed, in order of creation.
    var channels: [DataChannel] = []
    var lastID = 0
    var isFinished = false
  }

  /// How many events wait for a reader that is slow; the oldest are dropped beyond that.
  private static let eventsMaximum = 4096

  private let state = Mutex(State())
  private let port: DataChannelPort?

  /// Creates observers whose data channels call the peer by a port; without one they can only
  /// listen.
  init(port: DataChannelPort? = nil) { self.port = port }

  var states: PeerConnectionStates { state.withLock { $0.states } }
  var counters: MediaCounters { state.withLock { $0.counters } }
  var audioLevels: [TrackLevel] { state.withLock { $0.levels.all } }
  var occupantLevels: [TrackLevel] { state.withLock { $0.levels.ofOccupants } }

  func keyframeRequests(on transceiver: UInt32) -> Int? {
    state.withLock { $0.demand.count(on: transceiver) }
  }

  // MARK: The loop's side

  /// Takes note of something the peer tells.
  func observe(_ event: PeerEvent, at now: Instant) {
    if case .frame(let frame) = event {
      observe(frame, at: now)
      return
    }
    if observeData(event) { return }
    // Yielding under the lock keeps what a new stream begins with and what follows in order.
    let heard = state.withLock { state -> Heard? in
      if case .state(let transition) = event { state.states.apply(transition) }
      if case .audioSlot(let track, let isHeld) = event {
        state.levels.note(track, isHeld: isHeld)
      }
      if case .trackEnded(let transceiver) = event { state.levels.forget(transceiver) }
      if case .rtcp(let block) = event { state.demand.note(block) }
      guard let told = PeerConnectionEvent(event, states: state.states) else { return nil }
      state.events.yield(told)
      if case .state = event { state.stateReaders.yield(state.states) }
      return state.listener.map { ($0, told) }
    }
    if let heard { heard.listener(.event(heard.event)) }
  }

  /// A listener and what it hears, outside the lock: it may ask for states.
  private typealias Heard = (
    listener: @Sendable (PeerConnectionNews) -> Void, event: PeerConnectionEvent
  )

  /// Takes note of what is told of a data channel; false when the event is about something else.
  private func observeData(_ event: PeerEvent) -> Bool {
    switch event {
    case .dataChannel(let record):
      guard let (channel, isNew) = channel(of: record) else { return true }
      channel.follow(record)
      if isNew, record.isRemote { yield(.dataChannel(channel)) }
      if !isNew || record.state != .connecting { yield(.dataChannelState(channel, record.state)) }
    case .message(let message):
      guard let channel = channel(message.channel) else { return true }
      if let listener = state.withLock({ $0.listener }) {
        listener(.message(channel, DataChannelMessage(message)))
      } else if !channel.take(message) {
        yield(.dataChannelError(channel, "the application left more than 64 MiB unread"))
      }
    case .bufferedAmountLow(let number):
      if let channel = channel(number) { yield(.bufferedAmountLow(channel)) }
    case .dataChannelError(let number, let reason):
      if let channel = channel(number) { yield(.dataChannelError(channel, reason)) }
    default: return false
    }
    return true
  }

  /// The channel of a record, made when it is new; nil when the connection is finished.
  private func channel(of record: DataChannelRecord) -> (DataChannel, isNew: Bool)? {
    state.withLock { state in
      guard !state.isFinished else { return nil }
      if let index = state.channels.firstIndex(where: { $0.number == record.channel }) {
        let channel = state.channels[index]
        if record.state == .closed { state.channels.remove(at: index) }
        return (channel, false)
      }
      let channel = DataChannel(record, port: port)
      if record.state != .closed { state.channels.append(channel) }
      return (channel, true)
    }
  }

  private func yield(_ event: PeerConnectionEvent) {
    let listener = state.withLock { state in
      state.events.yield(event)
      return state.listener
    }
    listener?(.event(event))
  }

  private func observe(_ frame: FrameRecord, at now: Instant) {
    let sinks = state.withLock { state in
      state.counters.count(frame)
      state.levels.add(frame)
      state.demand.note(frame)
      return frame.isInbound ? Array(state.media.values) : []
    }
    guard !sinks.isEmpty, let media = ReceivedMedia(frame, at: now) else { return }
    for sink in sinks { sink(media) }
  }

  /// Ends all streams; nothing more is told.
  func finish() {
    let channels = state.withLock { state in
      defer { state.channels = [] }
      state.isFinished = true
      state.events.finish()
      state.stateReaders.finish()
      state.media = [:]
      state.listener = nil
      return state.channels
    }
    for channel in channels { channel.finish() }
  }

  // MARK: The application's side

  /// The data channels that are not closed, oldest first.
  var channels: [DataChannel] { state.withLock { $0.channels } }

  func channel(_ number: UInt32) -> DataChannel? {
    state.withLock { state in state.channels.first { $0.number == number } }
  }

  /// Everything that is told from now on.
  func eventStream() -> AsyncStream<PeerConnectionEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionEvent.self, bufferingPolicy: .bufferingNewest(PeerObservers.eventsMaximum))
    state.withLock { state in
      guard !state.isFinished else { return continuation.finish() }
      state.events.add(continuation)
    }
    return stream
  }

  /// The present states and the newest ones from now on; states between two reads are left out.
  func stateStream() -> AsyncStream<PeerConnectionStates> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionStates.self, bufferingPolicy: .bufferingNewest(1))
    // The present states go in together with the registration: none may change in between unseen.
    state.withLock { state in
      continuation.yield(state.states)
      guard !state.isFinished else { return continuation.finish() }
      state.stateReaders.add(continuation)
    }
    return stream
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

  /// Calls a closure with all news from now on, on the loop's thread.
  func listen(_ listener: @escaping @Sendable (PeerConnectionNews) -> Void) {
    state.withLock { if !$0.isFinished { $0.listener = listener } }
  }

  func removeMediaSink(_ id: Int) { state.withLock { $0.media[id] = nil } }
}
