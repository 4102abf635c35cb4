import FoundationEssentials
import ICE
package import Live
import Media
import Page
import Peer
package import SDP
import Secure
package import Signaling
import Stats
package import Tape
import Wire

/// Runs the calls of `record serve`: one peer per call, in one shared take or in a take per call.
package actor CallService: CallHandling {
  /// Yields whenever a call that began has ended.
  package nonisolated let endedCalls: AsyncStream<Void>
  private let ended: AsyncStream<Void>.Continuation
  private let options: CallRecordingOptions
  private let callsMaximum: Int
  private let connectionLimit: Duration
  let plan: SendPlan
  private var takes: CallTakes
  /// Running calls by their identifiers.
  private var calls: [String: Call] = [:]
  /// Tasks that close ended calls, by call number.
  private var farewells: [Int: Task<Void, Never>] = [:]
  private var nextNumber = 1
  private var tally = CallTally()
  private var endedTakes = EndedTakes()
  package nonisolated let failures: SendFailures
  private let devices: LocalDevices?
  private var isDrawing = false

  struct Call {
    var id: String
    var number: Int
    var peer: CallPeer
    var session: Session
    var path: String
    /// The WHIP or WHEP state of the call; nil if the call uses other signaling.
    var exchange: SessionExchange?
  }

  /// - Parameters:
  ///   - callsMaximum: the maximum number of simultaneous calls.
  ///   - connectionLimit: how long a peer has to connect.
  ///   - failures: receives failures to send media.
  package init(
    options: CallRecordingOptions, plan: SendPlan, callsMaximum: Int, connectionLimit: Duration,
    failures: SendFailures
  ) throws(TapeError) {
    self.options = options
    self.plan = plan
    self.failures = failures
    devices = plan.devices.isEmpty ? nil : LocalDevices(plan.devices, telling: failures)
    self.callsMaximum = callsMaximum
    self.connectionLimit = connectionLimit
    (endedCalls, ended) = AsyncStream<Void>.makeStream()
    takes = try CallTakes(options)
  }

  /// Creates the shared take, or the threads for separate takes, and allows calls.
  ///
  /// Call this once the server is listening, so that no take is created if the port is already in
  /// use.
  package func open() throws(TapeError) { try takes.open() }

  /// Returns the session that records rooms: the shared session, or a session just for rooms.
  package func roomSession() throws(TapeError) -> (session: Session, path: String) {
    try takes.roomTake()
  }

  /// Mentions the number of room participants in the summary if there were no calls.
  package func record(guests: Int) { tally.record(guests: guests) }

  /// Returns whether `session` records all calls.
  package func isShared(_ session: Session) -> Bool { takes.shared?.session === session }

  // MARK: CallHandling

  package func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription {
    let call = try makeCall(role: "answerer")
    do {
      let answer = try await call.peer.answer(SessionDescription(type: .offer, sdp: sdp))
      return CallDescription(id: call.id, sdp: answer.sdp, type: answer.type.rawValue)
    } catch {
      await end(call.id, isRefused: true)
      throw CallRefusal(error)
    }
  }

  package func makeOffer() async throws(CallRefusal) -> CallDescription {
    let call = try makeCall(role: "offerer")
    do {
      let offer = try await call.peer.offer()
      return CallDescription(id: call.id, sdp: offer.sdp, type: offer.type.rawValue)
    } catch {
      await end(call.id)
      throw CallRefusal(error)
    }
  }

  package func follow(offer sdp: String, call id: String) async throws(CallRefusal)
    -> CallDescription
  {
    try await describe(id) { peer in
      try await peer.answer(SessionDescription(type: .offer, sdp: sdp))
    }
  }

  package func makeOffer(call id: String, changing changes: OfferChanges) async throws(CallRefusal)
    -> CallDescription
  {
    try await describe(id) { peer in try await peer.offer(changing: changes) }
  }

  /// Creates an offer or answer in a running call, which continues if that fails.
  private func describe(
    _ id: String, _ make: @Sendable (CallPeer) async throws -> SessionDescription
  ) async throws(CallRefusal) -> CallDescription {
    let call = try call(id)
    do {
      let description = try await make(call.peer)
      return CallDescription(id: id, sdp: description.sdp, type: description.type.rawValue)
    } catch {
      throw CallRefusal(error)
    }
  }

  package func accept(answer sdp: String, call id: String) async throws(CallRefusal) {
    let call = try call(id)
    do {
      try await call.peer.accept(SessionDescription(type: .answer, sdp: sdp))
    } catch {
      // If a peer's first answer rules out sending the file, the call ends. A running call
      // continues.
      if error is CallRefusal, !call.peer.hasAgreed { await end(id, isRefused: true) }
      throw CallRefusal(error)
    }
  }

  package func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal) {
    let call = try call(id)
    do {
      try await call.peer.connection.addICECandidate(candidate)
    } catch {
      throw CallRefusal(error)
    }
  }

  package func end(call id: String) async throws(CallRefusal) {
    try call(id).peer.record(CallPeer.byeType, "", isInbound: true)
    await end(id)
  }

  package func list() -> CallList {
    CallList(
      limit: callsMaximum,
      recording: takes.name,
      calls: inOrder.map { call in
        CallList.Entry(
          id: call.id, connection: call.peer.connection.connectionState.rawValue, take: call.path)
      })
  }

  private var inOrder: [Call] { calls.values.sorted { $0.number < $1.number } }

  package func stats(call id: String?) async throws(CallRefusal) -> String {
    var parts: [(String, JSONText?)] = []
    for call in inOrder where id == nil || call.id == id {
      let states = call.peer.connection.states
      let report = (try? await call.peer.connection.getStats()) ?? StatsReport()
      let members: [(String, JSONText?)] = [
        ("connection", .text(states.connection.rawValue)),
        ("ice", .text(states.iceConnection.rawValue)), ("dtls", .text(states.dtls.rawValue)),
        ("stats", JSONText(report.json)),
      ]
      parts.append((call.id, .object(members)))
    }
    if let id, parts.isEmpty { throw CallRefusal(.unknownCall, "there is no call \(id)") }
    return JSONText.object(parts).text
  }

  package func page(call id: String) async throws(CallRefusal) -> String {
    guard let path = calls[id]?.path ?? endedTakes.path(of: id) else {
      throw CallRefusal(.unknownCall, "there is no take of call \(id.prefix(100))")
    }
    // Creating a long take's page keeps a processor core, which the calls need, busy for seconds.
    guard !isDrawing else {
      throw CallRefusal(.busy, "another page is being drawn; try again in a moment")
    }
    isDrawing = true
    defer { isDrawing = false }
    // A call's own take is complete only after `conclude(_:)`.
    if takes.shared == nil { for farewell in farewells.values { await farewell.value } }
    do {
      return try await Task.detached(priority: .utility) { try TakePage(path: path).html }.value
    } catch {
      throw CallRefusal(.failure, (error as? TapeError)?.description ?? "\(error)")
    }
  }

  // MARK: Calls

  func call(_ id: String) throws(CallRefusal) -> Call {
    guard let call = calls[id] else {
      throw CallRefusal(.unknownCall, "there is no call \(id)")
    }
    return call
  }

  /// Changes the WHIP or WHEP state of a call, if it is still running.
  func setExchange(_ exchange: SessionExchange, of id: String) { calls[id]?.exchange = exchange }

  /// Creates a new call with its peer.
  ///
  /// If `id` is nil, the call gets a random identifier that cannot be guessed, because anybody who
  /// knows the identifier may read and end the call.
  func makeCall(role: String, transport: String = "http", id: String? = nil)
    throws(CallRefusal) -> Call
  {
    guard takes.isOpen else { throw CallRefusal(.busy, "the recording has not begun; try again") }
    guard calls.count < callsMaximum else {
      throw CallRefusal(
        .busy, "all \(callsMaximum) calls that --calls allows at once are in use; try again later")
    }
    let number = nextNumber
    nextNumber += 1
    let (session, path): (Session, String)
    do {
      (session, path) = try takes.callTake()
    } catch {
      throw CallRefusal(.failure, "\(error)")
    }
    let connection = session.makePeer(
      label: "call \(number)", role: role, configuration: options.peer)
    let peer = CallPeer(
      connection, in: session, sending: plan, devices: devices, transport: transport,
      preferring: options.videoCodec, telling: failures)
    let call = Call(
      id: id ?? "call-\(number)-\(BearerToken.random().text)", number: number, peer: peer,
      session: session, path: path)
    calls[call.id] = call
    Task {
      await peer.waitUntilGone(connectingWithin: connectionLimit)
      await self.end(call.id)
    }
    return call
  }

  /// Ends a call and frees its slot immediately; completes its take unless calls share one.
  ///
  /// - Parameter isRefused: whether the call never began, in which case its take is not remembered.
  func end(_ id: String, isRefused: Bool = false) async {
    guard let call = calls.removeValue(forKey: id) else { return }
    if !isRefused { endedTakes.append(call.path, of: id) }
    let farewell = Task { await conclude(call) }
    farewells[call.number] = farewell
    await farewell.value
    farewells[call.number] = nil
    if !isRefused { ended.yield() }
  }

  /// Closes a call and releases its devices, connection and take.
  private func conclude(_ call: Call) async {
    call.peer.endDevices()
    await call.peer.connection.close()
    await call.peer.connection.retire()
    let peer = RecordingReport.Peer(call.peer.connection)
    if takes.shared == nil {
      await complete(call.session, call.path, [peer], call.peer.mediaSummary)
    } else {
      tally.record(peer, media: call.peer.mediaSummary)
    }
    tally.countEnd()
    if calls.isEmpty || tally.isTrimDue { ProcessMemory.trim() }
  }

  private func complete(
    _ session: Session, _ path: String, _ peers: [RecordingReport.Peer], _ media: String
  ) async {
    do {
      let summary = try await session.finished(path)
      tally.add(summary, peers, media: media)
    } catch {
      tally.fail(error)
    }
  }

  /// Ends all calls and takes, and returns a report.
  package func finish() async throws -> RecordingReport {
    takes.close()
    for id in calls.keys.sorted() { await end(id) }
    for farewell in farewells.values { await farewell.value }
    await takes.loops?.stop()
    if let shared = takes.shared {
      let (peers, media) = tally.shared
      await complete(shared.session, shared.path, peers, media)
    }
    return try tally.conclude()
  }
}

extension CallRefusal {
  /// Creates the refusal that reports a failed peer-connection call to the remote peer.
  init(_ error: any Error) {
    if let refusal = error as? CallRefusal {
      self = refusal
      return
    }
    guard let error = error as? PeerError else {
      self.init(.failure, "\(error)")
      return
    }
    switch error.name {
    case "InvalidStateError": self.init(.conflict, error.message)
    case "TimeoutError", "NetworkError": self.init(.failure, error.message)
    default: self.init(.badRequest, error.message)
    }
  }
}

// MARK: - CallTakes

/// The takes for a recorder's calls: one shared take, or one per call.
struct CallTakes {
  private let options: CallRecordingOptions
  /// The path of the take for all calls; empty if each call has a take of its own.
  private let sharedPath: String
  /// The session for all calls, once it has begun; nil if each call has a take of its own.
  private var session: Session?
  /// Threads for calls with takes of their own.
  private(set) var loops: MediaLoopPool?
  /// Whether calls may begin.
  private(set) var isOpen = false

  init(_ options: CallRecordingOptions) throws(TapeError) {
    self.options = options
    sharedPath = options.isFolder ? "" : try options.takePath("serve")
  }

  /// The shared take; nil before recording begins, or if each call has its own take.
  var shared: (session: Session, path: String)? { session.map { ($0, sharedPath) } }

  /// The name of the shared take's file or of the takes' folder, for lists of calls.
  var name: String {
    FileBytes.name(of: options.isFolder ? options.folder : sharedPath)
  }

  /// Creates the shared take, or the threads for separate takes, and lets calls begin.
  mutating func open() throws(TapeError) {
    if options.isFolder {
      do throws(SystemError) {
        loops = try MediaLoopPool(count: ProcessInfo.processInfo.activeProcessorCount)
      } catch {
        throw TapeError(path: "", place: "", reason: error.description, kind: .failed)
      }
    } else {
      session = try Session.recording(options.session(sharedPath))
    }
    isOpen = true
  }

  /// Stops accepting calls.
  mutating func close() { isOpen = false }

  /// Returns the shared take, or a new one for a new call.
  func callTake() throws(TapeError) -> (session: Session, path: String) {
    try take(prefix: "call", on: loops?.next())
  }

  /// Returns the shared take, or a new one for rooms.
  func roomTake() throws(TapeError) -> (session: Session, path: String) {
    try take(prefix: "rooms", on: nil)
  }

  private func take(prefix: String, on loop: @autoclosure () -> MediaLoop?)
    throws(TapeError)
    -> (session: Session, path: String)
  {
    if let shared { return shared }
    let path = try options.takePath(prefix)
    return (try Session.recording(options.session(path), on: loop()), path)
  }
}

/// The takes of ended calls, kept so that their pages can be requested.
struct EndedTakes {
  /// The maximum number of ended calls to remember.
  static let most = 1_000

  /// The ended calls' identifiers and the paths of their takes, oldest first.
  private var takes: [(id: String, path: String)] = []

  /// Adds an ended call's take.
  mutating func append(_ path: String, of id: String) {
    if takes.count == EndedTakes.most { takes.removeFirst() }
    takes.append((id, path))
  }

  /// Returns the path of the take of the last ended call with this identifier; nil if that call is
  /// not remembered.
  func path(of id: String) -> String? { takes.last { $0.id == id }?.path }
}
