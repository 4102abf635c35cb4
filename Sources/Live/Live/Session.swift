import CSockets
import Media
public import Peer
import RTP
import Synchronization
public import Tape
public import Wire

/// An error that keeps a session from starting.
public enum SessionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take cannot be written.
  case take(TapeError)
  /// The system refused a thread or a descriptor.
  case system(SystemError)

  /// The reason in one sentence.
  public var description: String {
    switch self {
    case .take(let error): error.description
    case .system(let error): error.description
    }
  }
}

/// A summary of a finished recording.
public struct TakeSummary: Hashable, Sendable {
  /// The file's path.
  public var path: String
  /// The total number of steps that the machines in the take made.
  public var steps: Int
  /// The number of datagrams sent and received.
  public var packets: Int
  /// The file's size in bytes.
  public var bytes: Int
  /// The takes that a ring wrote; nil if the session recorded a single take.
  package var parts: [TakeSummary]?
  /// A description of the state change that made a ring write the take; empty for other takes.
  package var words = ""

  package init(path: String, steps: Int, packets: Int, bytes: Int) {
    (self.path, self.steps, self.packets, self.bytes) = (path, steps, packets, bytes)
  }
}

/// A group of peers that share a clock and, if recorded, a take.
public final class Session: Sendable {
  /// How a session records, and which resources its peers may use.
  public struct Options: Sendable {
    /// The take to create; nil records nothing.
    public var takePath: String?
    /// A free-text label in the take.
    public var label = ""
    /// The take's tags by key, such as the site or the build.
    public var tags: [String: String] = [:]
    /// Whether the take keeps encoded frames, unencrypted.
    public var keepsMedia = true
    /// The local addresses on which ICE gathers.
    public var bind = BindPolicy.automatic
    /// The interval between samples of every peer's stats; zero or nil for no samples.
    public var statsInterval: Interval? = .seconds(1)
    /// Receives the steps instead of a take; nil if a take is recorded, or nothing.
    package var sink: (any PeerSink)?

    /// Creates the options of a session that is not recorded.
    public init() {}
  }

  /// The clock that all of the session's instants are read from.
  public let clock: TakeClock
  private let options: Options
  private let loop: MediaLoop
  private let ownsLoop: Bool
  package let tape: TapeWriter?
  private let makeEngine: @Sendable () -> any PeerEngine
  private let connections = Mutex<[WeakConnection]>([])
  private let audioSessions = Mutex<[WeakAudioSession]>([])

  private struct WeakConnection {
    weak var connection: PeerConnection?
  }

  private struct WeakAudioSession {
    weak var session: AudioSession?
  }

  /// Starts a session whose peers run the full client stack.
  public convenience init(_ options: Options = Options()) throws(SessionError) {
    try self.init(options, loop: nil) { TimedPeer() }
  }

  /// Starts a session whose peers run a stack provided by the caller.
  package init(
    _ options: Options, loop sharedLoop: MediaLoop?,
    makeEngine: @escaping @Sendable () -> any PeerEngine
  ) throws(SessionError) {
    self.options = options
    self.makeEngine = makeEngine
    do throws(SystemError) {
      if let sharedLoop { loop = sharedLoop } else { loop = try MediaLoop() }
    } catch {
      throw .system(error)
    }
    ownsLoop = sharedLoop == nil
    clock = TakeClock()
    guard let path = options.takePath, options.sink == nil else {
      tape = nil
      options.sink?.begin(clock.wallClock)
      return
    }
    var tapeOptions = TapeWriter.Options()
    tapeOptions.label = options.label
    tapeOptions.tags = options.tags
    tapeOptions.keepsMedia = options.keepsMedia
    tapeOptions.toolVersion = retakeVersion
    tapeOptions.startUnixNanoseconds = clock.wallClock.unixNanosecondsAtZero
    do throws(TapeError) {
      tapeOptions.toolchain = try Toolchain.current(for: path)
      tape = try TapeWriter(path: path, options: tapeOptions)
    } catch {
      throw .take(error)
    }
  }

  /// Creates a peer with its seed, clock and interface addresses.
  /// - Parameters:
  ///   - label: the peer's name in the take and in reports.
  ///   - role: the peer's role in this session: `caller`, `echo`, ...
  ///   - configuration: the peer's behaviour, as fixed in the take.
  ///   - prepare: runs before the peer's first step, to subscribe to all events.
  public func makePeer(
    label: String, role: String = "", configuration: PeerConfiguration = PeerConfiguration(),
    prepare: (PeerConnection) -> Void = { _ in }
  ) -> PeerConnection {
    makePeer(
      label: label, role: role, configuration: configuration, makeEngine: makeEngine,
      prepare: prepare)
  }

  /// Creates a peer that uses an application's codecs; the take's genesis lists them by name.
  package func makePeer(
    label: String, configuration: PeerConfiguration, encoders: (any VideoEncoderFactory)?,
    decoders: (any VideoDecoderFactory)?, prepare: (PeerConnection) -> Void
  ) -> PeerConnection {
    var configuration = configuration
    let own = FactoryCodecs(encoders, decoders).applicationCodecs
    if !own.isEmpty { configuration.ownCodecs = own }
    return makePeer(
      label: label, role: "", configuration: configuration,
      makeEngine: { TimedPeer(codecs: FactoryCodecs(encoders, decoders)) }, prepare: prepare)
  }

  private func makePeer(
    label: String, role: String, configuration: PeerConfiguration,
    makeEngine: @escaping @Sendable () -> any PeerEngine, key: MediaLoop.PeerKey? = nil,
    forward: PeerDriver.Forward? = nil, prepare: (PeerConnection) -> Void
  ) -> PeerConnection {
    let number =
      tape?.addPeer(label: label, role: role) ?? options.sink?.addPeer(label: label, role: role)
      ?? (actor: 0, peer: 0)
    var configuration = configuration
    if configuration.decoders == nil {
      configuration.decoders = LibraryCodecs.furtherDecoders
    }
    configuration.codecs = configuration.codecs ?? Codec.offeredNames
    configuration.limitationFollowsTarget = configuration.limitationFollowsTarget ?? true
    configuration.hasCompleteStatistics = configuration.hasCompleteStatistics ?? true
    configuration.receivesAllOffered = configuration.receivesAllOffered ?? true
    configuration.awaitsSlowPaths = configuration.awaitsSlowPaths ?? true
    configuration.ignoresUnusedTransports = configuration.ignoresUnusedTransports ?? true
    configuration.encoders = configuration.encoders ?? configuration.furtherEncoders
    configuration.takesOfferedLayers = configuration.takesOfferedLayers ?? true
    let key = key ?? loop.nextKey()
    let observers = PeerObservers(port: DataChannelPort(mailbox: loop.mailbox, key: key))
    let setup = PeerSetup(
      key: key, makeEngine: makeEngine,
      genesis: Genesis(
        seed: drawSeed(), wallClock: clock.wallClock, configuration: configuration),
      bind: options.bind, clock: clock, recorder: recorder, actor: number.actor,
      statsInterval: options.statsInterval,
      observer: { event, now in observers.observe(event, at: now) }, forward: forward)
    let connection = PeerConnection(
      label: label, number: number.peer, loop: loop, key: key, observers: observers)
    prepare(connection)
    _ = loop.mailbox.post(.add(setup))
    connections.withLock { connections in
      connections.removeAll { $0.connection == nil }
      connections.append(WeakConnection(connection: connection))
    }
    return connection
  }

  /// Receives the steps of the peers; nil if nothing is recorded.
  private var recorder: (any StepSink)? {
    if let tape { return tape }
    return options.sink
  }

  /// Creates the two legs of a relay: what one receives, the other sends.
  /// - Parameters:
  ///   - near: the first leg's configuration; legs negotiate nothing themselves.
  ///   - far: the second leg's configuration.
  ///   - onPacket: called on the loop's thread with every decrypted packet, a flag that is true if
  ///     it arrived on the second leg, and a closure that sends it on the other leg, now or later.
  package func makeRelay(
    labels: (String, String), near: PeerConfiguration = PeerConfiguration(),
    far: PeerConfiguration = PeerConfiguration(),
    onPacket:
      @escaping @Sendable (
        RelayedPacket, _ isSecond: Bool, Instant,
        _ send: @escaping @Sendable (RelayedPacket) -> Void
      ) -> Void
  ) -> (PeerConnection, PeerConnection) {
    let keys = [loop.nextKey(), loop.nextKey()]
    let mailbox = loop.mailbox
    let legs = [(labels.0, near), (labels.1, far)].enumerated().map { index, leg in
      let label = leg.0
      var configuration = leg.1
      configuration.relays = true
      return makePeer(
        label: label, role: "relay", configuration: configuration, makeEngine: makeEngine,
        key: keys[index],
        forward: { packet, now in
          onPacket(packet, index == 1, now) { packet in
            _ = mailbox.post(.input(keys[1 - index], .relayed(packet)))
          }
        }, prepare: { _ in })
    }
    return (legs[0], legs[1])
  }

  /// Creates one leg of a relay; the caller itself acts as the other leg.
  /// - Parameters:
  ///   - onState: called on the loop's thread with the states after each change.
  ///   - forward: called on the loop's thread with every received packet, decrypted.
  package func makeLeg(
    label: String, role: String, configuration: PeerConfiguration,
    onState: @escaping @Sendable (PeerConnectionStates) -> Void,
    forward: @escaping PeerDriver.Forward
  ) -> PeerConnection {
    var configuration = configuration
    configuration.relays = true
    return makePeer(
      label: label, role: role, configuration: configuration, makeEngine: makeEngine,
      forward: forward,
      prepare: { leg in
        leg.observers.listen { [weak observers = leg.observers] news in
          guard case .event(let event) = news, event.isState, let observers else { return }
          onState(observers.states)
        }
      })
  }

  /// Registers an audio session, to stop it at the end.
  func register(_ session: AudioSession) {
    audioSessions.withLock { sessions in
      sessions.removeAll { $0.session == nil }
      sessions.append(WeakAudioSession(session: session))
    }
  }

  /// Closes all peers but ends nothing else, so that an observer still sees their last packets.
  package func closeConnections() async {
    let open = connections.withLock { $0.compactMap { $0.connection } }
    for connection in open { await connection.close() }
  }

  /// Closes all peers, stops the audio sessions with their devices, ends the loop unless it is
  /// shared, and completes the take.
  /// - Returns: the take's summary, or nil if nothing was recorded.
  /// - Throws: `TapeError` if writing failed; everything written before stays valid.
  @discardableResult
  public func finish() async throws(TapeError) -> TakeSummary? {
    let open = connections.withLock { connections in
      defer { connections = [] }
      return connections.compactMap { $0.connection }
    }
    for connection in open { await connection.close() }
    for connection in open { await connection.retire() }
    for entry in audioSessions.withLock({ $0 }) { entry.session?.stop() }
    if ownsLoop { await loop.stop() }
    guard let tape else { return await options.sink?.finish(options.takePath ?? "") }
    let result = await withCheckedContinuation { continuation in
      tape.finish { continuation.resume(returning: $0) }
    }
    let summary = try result.get()
    return TakeSummary(
      path: options.takePath ?? "", steps: summary.steps, packets: summary.packets,
      bytes: summary.bytes)
  }
}

// MARK: - Stack

extension Session {
  /// Starts a session, which is recorded if the options have a path.
  /// - Parameter loop: a loop shared with other sessions; nil creates one.
  /// - Throws: `SessionError` if the take or the thread cannot be created.
  public convenience init(_ options: Options, loop: MediaLoop? = nil) throws(SessionError) {
    // Every peer has its own codecs, which stay on the loop's thread.
    try self.init(options, loop: loop) { TimedPeer() }
  }
}

/// Draws a peer's 32-byte secret seed from the kernel's generator (getrandom).
package func drawSeed() -> [UInt8] {
  var generator = SystemRandomNumberGenerator()
  return (0..<Entropy.seedLength).map { _ in generator.next() }
}

/// A take's clock: nanoseconds of CLOCK_MONOTONIC since the take's zero, and one reading of the
/// wall clock.
///
/// The wall clock is read only once, so stepping or slewing it never affects a peer.
public struct TakeClock: Sendable {
  /// The UTC time at the take's zero.
  public let wallClock: WallClock
  private let zeroNanoseconds: Int64
  private let monotonicNanoseconds: @Sendable () -> Int64

  /// Starts a clock at zero.
  public init() {
    self.init(
      unixNanoseconds: csockets_realtime_ns(), monotonicNanoseconds: { csockets_monotonic_ns() })
  }

  /// Starts a clock over another source of monotonic nanoseconds, for tests.
  package init(unixNanoseconds: Int64, monotonicNanoseconds: @escaping @Sendable () -> Int64) {
    zeroNanoseconds = monotonicNanoseconds()
    wallClock = WallClock(unixNanosecondsAtZero: unixNanoseconds)
    self.monotonicNanoseconds = monotonicNanoseconds
  }

  /// The current instant.
  public var now: Instant { instant(monotonicNanoseconds: monotonicNanoseconds()) }

  /// Converts a CLOCK_MONOTONIC reading to an instant; zero if it precedes the take.
  func instant(monotonicNanoseconds: Int64) -> Instant {
    Instant(nanoseconds: max(0, monotonicNanoseconds - zeroNanoseconds))
  }

  /// The reading of CLOCK_MONOTONIC at an instant; saturates.
  package func monotonicNanoseconds(at instant: Instant) -> Int64 {
    let (sum, overflow) = zeroNanoseconds.addingReportingOverflow(instant.nanoseconds)
    return overflow ? .max : sum
  }
}
