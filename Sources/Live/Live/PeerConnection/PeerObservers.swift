import Flow
import Peer
import SCTP
import Synchronization
import Wire

/// The application's view of a peer: states, counters, and events.
///
/// Every event goes to the streams, then to the listeners in the order in which they were added.
/// The first listener is the registry of track objects, which calls the delegate; interfaces built
/// on the connection add their own listeners.
///
/// The loop's thread writes, and any thread may read. Both the driver and the connection hold this
/// object.
final class PeerObservers: Sendable {
  private struct State {
    var states = PeerConnectionStates()
    var counters = MediaCounters()
    var levels = TrackLevels()
    var demand = KeyframeDemand()
    var events = Readers<PeerConnectionEvent>()
    var stateReaders = Readers<PeerConnectionStates>()
    var media: [Int: @Sendable (ReceivedMedia) -> Void] = [:]
    var listeners: [@Sendable (PeerConnectionNews) -> Void] = []
    /// Whether a listener receives data channel messages as they arrive.
    var takesMessages = false
    /// Open channels, in order of creation.
    var channels: [DataChannel] = []
    var lastID = 0
    var isFinished = false
  }

  /// The maximum number of events buffered for a slow reader; if there are more, the oldest are
  /// dropped.
  private static let eventsMaximum = 4096

  private let state = Mutex(State())
  /// Track and stream objects, and the delegate.
  let registry = TrackRegistry()
  private let port: DataChannelPort?

  /// Creates observers whose data channels call the peer through a port; without a port, they can
  /// only receive.
  init(port: DataChannelPort? = nil) {
    self.port = port
    state.withLock { $0.listeners = [{ [registry] in registry.receive($0) }] }
  }

  var states: PeerConnectionStates { state.withLock { $0.states } }
  var counters: MediaCounters { state.withLock { $0.counters } }
  var audioLevels: [TrackLevel] { state.withLock { $0.levels.all } }
  var occupantLevels: [TrackLevel] { state.withLock { $0.levels.ofOccupants } }

  func keyframeRequests(on transceiver: UInt32) -> Int? {
    state.withLock { $0.demand.count(on: transceiver) }
  }

  // MARK: Called by the loop

  func observe(_ event: PeerEvent, at now: Instant) {
    if case .frame(let frame) = event {
      observe(frame, at: now)
      return
    }
    if observeData(event) { return }
    notify { state in
      if case .state(let transition) = event { state.states.apply(transition) }
      if case .audioSlot(let track, let isHeld) = event {
        state.levels.record(track, isHeld: isHeld)
      }
      if case .trackEnded(let transceiver) = event { state.levels.forget(transceiver) }
      if case .rtcp(let block) = event { state.demand.observe(block) }
      return PeerConnectionEvent(event, states: state.states).map { .event($0) }
    }
  }

  private func notify(_ event: PeerConnectionEvent) { notify { _ in .event(event) } }

  /// Applies a change, then notifies streams and listeners of the resulting event or message, if
  /// any.
  ///
  /// Only called on the loop's thread.
  private func notify(_ make: (inout State) -> PeerConnectionNews?) {
    // Yielding under the lock keeps a new stream's first value and later values in order.
    let heard = state.withLock { state -> Heard? in
      guard let news = make(&state) else { return nil }
      if case .event(let event) = news {
        state.events.yield(event)
        if event.isState { state.stateReaders.yield(state.states) }
      }
      return Heard(news: news, listeners: state.listeners)
    }
    guard let heard else { return }
    for listener in heard.listeners { listener(heard.news) }
  }

  /// An event or message with its listeners, for use outside the lock: listeners may read states.
  private struct Heard {
    var news: PeerConnectionNews
    var listeners: [@Sendable (PeerConnectionNews) -> Void]
  }

  /// Handles a data channel's event; returns false for other events.
  private func observeData(_ event: PeerEvent) -> Bool {
    switch event {
    case .dataChannel(let record):
      guard let (channel, isNew) = channel(of: record) else { return true }
      channel.follow(record)
      if isNew, record.isRemote { notify(.dataChannel(channel)) }
      if !isNew || record.state != .connecting { notify(.dataChannelState(channel, record.state)) }
    case .message(let message):
      guard let channel = channel(message.channel) else { return true }
      if state.withLock({ $0.takesMessages }) {
        notify { _ in .message(channel, DataChannelMessage(message)) }
      } else if !channel.receive(message) {
        notify(.dataChannelError(channel, "the application left more than 64 MiB unread"))
      }
    case .bufferedAmountLow(let number):
      if let channel = channel(number) { notify(.bufferedAmountLow(channel)) }
    case .dataChannelError(let number, let reason):
      if let channel = channel(number) { notify(.dataChannelError(channel, reason)) }
    default: return false
    }
    return true
  }

  /// Returns a record's channel, created if new; nil once the connection is finished.
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

  private func observe(_ frame: FrameRecord, at now: Instant) {
    let sinks = state.withLock { state in
      state.counters.count(frame)
      state.levels.add(frame)
      state.demand.observe(frame)
      return frame.isInbound ? Array(state.media.values) : []
    }
    guard frame.isInbound, let media = ReceivedMedia(frame, at: now) else { return }
    for sink in sinks { sink(media) }
    registry.deliver(media)
  }

  /// Ends all streams; nothing more is reported.
  func finish() {
    let channels = state.withLock { state in
      defer { state.channels = [] }
      state.isFinished = true
      state.events.finish()
      state.stateReaders.finish()
      state.media = [:]
      state.listeners = []
      return state.channels
    }
    for channel in channels { channel.finish() }
    registry.finish()
  }

  // MARK: Called by the application

  /// Open channels, oldest first.
  var channels: [DataChannel] { state.withLock { $0.channels } }

  func channel(_ number: UInt32) -> DataChannel? {
    state.withLock { state in state.channels.first { $0.number == number } }
  }

  /// Returns a stream of events from now on.
  func eventStream() -> AsyncStream<PeerConnectionEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionEvent.self, bufferingPolicy: .bufferingNewest(PeerObservers.eventsMaximum))
    state.withLock { state in
      guard !state.isFinished else { return continuation.finish() }
      state.events.add(continuation)
    }
    return stream
  }

  /// Returns a stream of the current states and all later ones; a slow reader skips states.
  func stateStream() -> AsyncStream<PeerConnectionStates> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PeerConnectionStates.self, bufferingPolicy: .bufferingNewest(1))
    // Yield the current states and register the reader under one lock, so that no change is missed
    // in between.
    state.withLock { state in
      continuation.yield(state.states)
      guard !state.isFinished else { return continuation.finish() }
      state.stateReaders.add(continuation)
    }
    return stream
  }

  /// Calls a closure with all media on the loop's thread; returns the number with which to remove
  /// it.
  func addMediaSink(_ sink: @escaping @Sendable (ReceivedMedia) -> Void) -> Int {
    state.withLock { state in
      state.lastID += 1
      if !state.isFinished { state.media[state.lastID] = sink }
      return state.lastID
    }
  }

  /// Calls a closure with every event and message on the loop's thread.
  ///
  /// From then on, data channel messages do not wait in `DataChannel.messages`.
  func listen(_ listener: @escaping @Sendable (PeerConnectionNews) -> Void) {
    state.withLock { state in
      guard !state.isFinished else { return }
      state.listeners.append(listener)
      state.takesMessages = true
    }
  }

  func removeMediaSink(_ id: Int) { state.withLock { $0.media[id] = nil } }
}

/// Counts the key frames that the peer has requested from each transceiver's video.
struct KeyframeDemand {
  private var streams: [(transceiver: UInt32, ssrc: UInt32, count: Int)] = []

  /// Updates the SSRC of a transceiver's sent video from the record of a sent frame; ignores other
  /// frames.
  mutating func observe(_ frame: FrameRecord) {
    guard frame.kind == .video, !frame.isInbound else { return }
    guard let index = streams.firstIndex(where: { $0.transceiver == frame.transceiver }) else {
      streams.append((frame.transceiver, frame.ssrc, 0))
      return
    }
    streams[index].ssrc = frame.ssrc
  }

  /// Counts received PLI and FIR messages (RFC 4585 section 6.3.1, RFC 5104 section 4.3.1).
  mutating func observe(_ block: RTCPRecord) {
    guard block.isInbound, block.type == "pli" || block.type == "fir",
      let index = streams.firstIndex(where: { $0.ssrc == block.ssrc })
    else { return }
    streams[index].count += 1
  }

  /// Returns the number of requests; nil before the first frame is sent.
  func count(on transceiver: UInt32) -> Int? {
    streams.first { $0.transceiver == transceiver }?.count
  }
}

// MARK: - Readers

/// Distributes events to any number of streams.
///
/// The owner protects it with a lock, so that all readers see events in the same order. Cancelling
/// a reader's task calls `onTermination` while the task's record is locked, and yielding locks that
/// record while the owner's lock is held. To avoid a deadlock, `onTermination` must not lock
/// anything: it only marks the reader as gone, and the reader is removed later.
struct Readers<Element: Sendable>: Sendable {
  private final class Reader: Sendable {
    let continuation: AsyncStream<Element>.Continuation
    private let isGone = Atomic(false)

    init(_ continuation: AsyncStream<Element>.Continuation) { self.continuation = continuation }

    var isHere: Bool { !isGone.load(ordering: .relaxed) }
    func leave() { isGone.store(true, ordering: .relaxed) }
  }

  private var readers: [Reader] = []

  /// The number of readers; a reader whose stream has ended counts until the next event or reader.
  var count: Int { readers.count }

  /// Adds a reader, and removes readers whose streams have ended.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) {
    readers.removeAll { !$0.isHere }
    let reader = Reader(continuation)
    readers.append(reader)
    continuation.onTermination = { [weak reader] _ in reader?.leave() }
  }

  /// Passes an element to all readers.
  mutating func yield(_ element: Element) {
    for reader in readers { reader.continuation.yield(element) }
    readers.removeAll { !$0.isHere }
  }

  /// Ends all streams.
  mutating func finish() {
    for reader in readers { reader.continuation.finish() }
    readers = []
  }
}
