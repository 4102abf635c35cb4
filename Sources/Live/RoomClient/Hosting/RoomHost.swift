package import Live
package import Peer
import Room
package import Signaling
import Wire

/// The server for Retake's own rooms: receives each participant's media, decodes it, and forwards
/// it to the others over a session's connections.
package actor RoomHost {
  private let session: Session
  private let options: Options
  private var rooms: [String: HostedRoom] = [:]
  /// Participants by their session identifiers.
  private var guests: [String: HostedGuest] = [:]
  /// The number of attempts to enter a room; participants who chose no identifier are named after
  /// it.
  ///
  /// Attempts that the room refuses count too: if another participant chose the name, the next
  /// attempt must get a different one.
  private var lastNumber = 0
  private var lastMedia: UInt32 = 0
  /// How many participants have joined so far.
  package private(set) var guestCount = 0
  /// Issued tokens and the times at which they expire.
  private var tokens: [String: Instant] = [:]

  private static let tokensMaximum = 10_000
  /// How many more WebSockets than participants may be open, for clients that have not yet joined
  /// or resumed.
  private static let spareSockets = 32
  private static let tokenSeconds: Int64 = 3_600
  private var socketCount = 0
  private var signalingBytes = 0

  package init(session: Session, options: Options = Options()) {
    self.session = session
    self.options = options
  }

  package static var subprotocols: [String] { [RoomRequest.subprotocol] }

  /// Returns a token for a key and a secret, `{"token", "expiresIn"}`, or a refusal.
  ///
  /// If no tokens are required, every client gets a token that the server ignores, so that clients
  /// can sign in anyway.
  package func token(_ body: [UInt8]) -> HTTPResponse {
    guard let secret = options.secret else { return Self.response(token: drawToken()) }
    guard let value = try? JSONValue(parsing: String(decoding: body, as: UTF8.self)),
      let key = value["key"]?.text, let given = value["secret"]?.text,
      "\(key):\(given)".utf8.equalsInConstantTime(secret.utf8)
    else { return .refusal(403, "the key or the secret is wrong") }
    let now = session.clock.now
    tokens = tokens.filter { $0.value > now }
    guard tokens.count < RoomHost.tokensMaximum else {
      return .refusal(503, "there are too many tokens; ask again later")
    }
    let token = drawToken()
    tokens[token] = now + .seconds(RoomHost.tokenSeconds)
    return Self.response(token: token)
  }

  private func drawToken() -> String { hexadecimal(drawSeed().prefix(16)) }

  private static func response(token: String) -> HTTPResponse {
    HTTPResponse(json: "{\"token\":\"\(token)\",\"expiresIn\":\(tokenSeconds)}")
  }

  /// Closes all rooms, after notifying each participant that the server is shutting down.
  package func close() async {
    let all = Array(guests.values)
    guests = [:]
    rooms = [:]
    for guest in all {
      guest.send(.ended(RoomEnding(.destroyed, message: "the server ends")))
    }
    // Flush concurrently, so that participants that do not read delay the end by only one second in
    // total.
    await withTaskGroup(of: Void.self) { group in
      for guest in all { group.addTask { await guest.flush() } }
    }
    for guest in all { await guest.end() }
  }

  // MARK: Sockets

  /// Serves one participant's socket until it ends.
  package func serve(_ socket: WebSocket) async {
    guard socketCount < options.guestsMaximum + RoomHost.spareSockets else {
      return socket.post(close: .tryAgainLater, reason: "too many connections; try again later")
    }
    socketCount += 1
    defer { socketCount -= 1 }
    await talk(socket)
  }

  /// Returns the first message; nil if none arrives in time.
  private func firstMessage(_ socket: WebSocket) async -> SignalingFrame? {
    let seconds = options.joinSeconds
    return await withTaskGroup(of: SignalingFrame?.self) { group in
      group.addTask { await socket.receive() }
      group.addTask {
        try? await Task.sleep(for: .seconds(seconds))
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  private func talk(_ socket: WebSocket) async {
    guard case .text(let text)? = await firstMessage(socket),
      case .join(let join, let resumes)? = try? RoomRequest(parsing: text)
    else { return refuse(socket, RoomFault(.unreadableMessage, "the first message must be join")) }
    guard let guest = admit(join, resumes, socket) else { return }
    while let frame = await socket.receive() {
      // Stop reading if the participant has left or now uses another socket.
      guard isPresent(guest), guest.isHeard(on: socket) else { break }
      guard case .text(let text) = frame else { continue }
      var sent = 0
      do throws(JSONError) {
        let request = try RoomRequest(parsing: text)
        guard !request.isRecorded || admits(text, of: guest) else {
          refuse(
            socket, RoomFault(.invalidState, "more was negotiated than one recording can hold"))
          return await remove(guest, .left)
        }
        sent = await handle(request, guest)
      } catch {
        guest.send(.error(RoomFault(.unreadableMessage, error.reason), isCritical: false))
      }
      guard isPresent(guest) else { break }
      let pause = guest.spend(sent)
      if pause > .zero { try? await Task.sleep(for: pause) }
    }
    guard isPresent(guest) else {
      await guest.flush()
      return socket.post(close: .normal)
    }
    guard let loss = guest.lose(socket) else { return }
    try? await Task.sleep(for: .seconds(options.graceSeconds))
    if guest.isLost(since: loss) { await remove(guest, .timedOut) }
  }

  /// Returns whether a participant is still present.
  private func isPresent(_ guest: HostedGuest) -> Bool { guests[guest.session] === guest }

  /// Counts a participant's recorded bytes; returns false if there are too many.
  private func admits(_ text: String, of guest: HostedGuest) -> Bool {
    let count = text.utf8.count
    guard guest.counts(count, atMost: options.guestSignalingBytes),
      signalingBytes + count <= options.signalingBytes
    else { return false }
    signalingBytes += count
    return true
  }

  private func refuse(_ socket: WebSocket, _ fault: RoomFault) {
    socket.post(.text(RoomNotice.error(fault, isCritical: true).text))
    socket.post(close: .normal)
  }

  private func admit(_ join: RoomJoin, _ resumes: String?, _ socket: WebSocket) -> HostedGuest? {
    if let resumes, let known = guests[resumes] {
      known.resume(socket)
      let members = rooms[known.room]?.list(without: known.id) ?? []
      known.send(
        .joined(
          participant: known.id, session: known.session, isResumed: true, members: members,
          ICEServers()))
      known.repeatVoices()
      return known
    }
    if options.secret != nil, let fault = fault(of: join.token) {
      refuse(socket, fault)
      return nil
    }
    guard guests.count < options.guestsMaximum else {
      refuse(
        socket,
        RoomFault(
          .joinRefused, "all \(options.guestsMaximum) places that --guests allows are taken"))
      return nil
    }
    guard guestCount < options.entriesMaximum else {
      refuse(
        socket,
        RoomFault(
          .joinRefused,
          "\(options.entriesMaximum) participants have entered, which is all that one recording "
            + "can hold"))
      return nil
    }
    lastNumber += 1
    let id = join.participant ?? "p\(lastNumber)"
    var room = rooms[join.room] ?? HostedRoom()
    let (notices, fault) = room.enter(id, join)
    if let fault {
      refuse(socket, fault)
      return nil
    }
    guestCount += 1
    rooms[join.room] = room
    let guest = HostedGuest(
      id: id, room: join.room, session: hexadecimal(drawSeed().prefix(16)), socket: socket,
      live: session, options: options, voices: join.voices)
    guests[guest.session] = guest
    guest.listen { [weak self, weak guest] isTalking in
      guard let self, let guest else { return }
      Task { await self.reportTalking(guest, isTalking) }
    }
    guest.send(
      .joined(
        participant: id, session: guest.session, isResumed: false, members: room.list(without: id),
        ICEServers()))
    send(notices, in: join.room)
    Task { await refresh(guest) }
    return guest
  }

  /// Returns why a token is refused; nil if it is valid.
  private func fault(of token: String?) -> RoomFault? {
    guard let token else { return RoomFault(.notSignedIn, "a token is needed to enter") }
    guard let end = tokens[token] else {
      return RoomFault(.tokenExpired, "the token is not valid")
    }
    return end > session.clock.now ? nil : RoomFault(.tokenExpired, "the token has expired")
  }

  private func reportTalking(_ guest: HostedGuest, _ isTalking: Bool) {
    send(rooms[guest.room]?.talking(guest.id, isTalking) ?? [], in: guest.room)
  }

  private func remove(_ guest: HostedGuest, _ cause: LeaveCause) async {
    guard guests.removeValue(forKey: guest.session) != nil else { return }
    let notices = rooms[guest.room]?.leave(guest.id, cause) ?? []
    if rooms[guest.room]?.isEmpty == true { rooms[guest.room] = nil }
    send(notices, in: guest.room)
    await guest.end()
    await refreshAll(in: guest.room)
  }

  /// Sends notices to their recipients; returns the largest number of bytes sent to any recipient.
  @discardableResult
  private func send(_ notices: [HostedRoom.Notice], in room: String) -> Int {
    var sent: [String: Int] = [:]
    var (last, text): (RoomNotice?, String) = (nil, "")
    for notice in notices {
      // Most notices are identical to the previous one, so reuse its text.
      if last != notice.notice { (last, text) = (notice.notice, notice.notice.text) }
      guest(notice.to, in: room)?.send(text)
      sent[notice.to, default: 0] += text.utf8.count
    }
    return sent.values.max() ?? 0
  }

  /// Passes a message on; returns a fault for the sender if any recipients miss it because too much
  /// is queued for them.
  private func pass(_ notices: [HostedRoom.Notice], in room: String) -> (RoomFault?, sent: Int) {
    guard let text = notices.first?.notice.text else { return (nil, 0) }
    let missed = notices.filter { notice in
      guest(notice.to, in: room)?.send(text, isMessage: true) == false
    }
    guard let first = missed.first else { return (nil, text.utf8.count) }
    let others = missed.count > 1 ? " and \(missed.count - 1) more" : ""
    return (
      RoomFault(
        .messageFailed, "\(first.to)\(others) reads too slowly and did not get the message"),
      text.utf8.count
    )
  }

  private func guest(_ id: String, in room: String) -> HostedGuest? {
    guests.values.first { $0.id == id && $0.room == room }
  }

  // MARK: Requests

  /// Handles a participant's request; returns the largest number of bytes sent to any other
  /// participant.
  private func handle(_ request: RoomRequest, _ guest: HostedGuest) async -> Int {
    switch request {
    case .join:
      let fault = RoomFault(.invalidState, "the room is entered")
      guest.send(.error(fault, isCritical: false))
    case .offer(let number, let sdp, let media): return await publish(sdp, media, number, guest)
    case .answer(let sdp):
      await guest.receive(answer: sdp)
      await refresh(guest)
    case .candidate(let connection, let candidate): await guest.add(candidate, to: connection)
    case .stop(let number): return await stop(number, guest)
    case .update(let media):
      let notices = change(guest.room) { $0.change(media, of: guest.id) }
      connectRoutes(in: guest.room)
      return send(notices ?? [], in: guest.room)
    case .subscribe(let number, let media):
      answer(number, guest) { $0.want(media, true, of: guest.id) }
      await refresh(guest)
    case .unsubscribe(let number, let media):
      answer(number, guest) { $0.want(media, false, of: guest.id) }
      await refresh(guest)
    case .profile(let number, let media, let profile):
      answer(number, guest) { $0.choose(profile, media, of: guest.id) }
      connectRoutes(in: guest.room)
    case .pause(let number, let media, let isPaused):
      answer(number, guest) { $0.pause(media, isPaused, of: guest.id) }
      await refresh(guest)
    case .message(let number, let message):
      let passed = change(guest.room) { $0.message(message, from: guest.id) }
      let (missed, sent) = pass(passed?.notices ?? [], in: guest.room)
      guest.send(.result(request: number, passed?.fault ?? missed))
      return sent
    case .restart:
      guest.restartDown()
      await refresh(guest)
    case .renew: break
    case .leave:
      guest.send(.ended(RoomEnding(.disconnected)))
      await remove(guest, .left)
    }
    return 0
  }

  /// Changes an existing room and returns the closure's result.
  private func change<Value>(_ room: String, _ change: (inout HostedRoom) -> Value) -> Value? {
    guard var changed = rooms[room] else { return nil }
    rooms[room] = nil
    defer { rooms[room] = changed }
    return change(&changed)
  }

  /// Changes a room and answers the request, with a fault if the change is refused.
  private func answer(
    _ request: UInt32, _ guest: HostedGuest, _ change: (inout HostedRoom) -> RoomFault?
  ) {
    let fault: RoomFault? = self.change(guest.room, change) ?? nil
    guest.send(.result(request: request, fault))
  }

  private func publish(
    _ sdp: String, _ media: [RoomLocalMedia], _ number: UInt32, _ guest: HostedGuest
  ) async -> Int {
    do throws(PeerError) {
      try await guest.receive(offer: sdp, media)
    } catch {
      guest.send(
        .result(request: number, RoomFault(.remoteDescriptionFailed, error.message)))
      return 0
    }
    // The participant may have left while its offer was answered.
    guard isPresent(guest) else { return 0 }
    let changed = change(guest.room) { room in
      room.publish(media, of: guest.id) {
        lastMedia &+= 1
        return lastMedia
      }
    }
    guard let changed, changed.fault == nil else {
      guest.send(.result(request: number, changed?.fault))
      return 0
    }
    send(changed.notices.filter { $0.to == guest.id }, in: guest.room)
    guest.send(.result(request: number, nil))
    let sent = send(changed.notices.filter { $0.to != guest.id }, in: guest.room)
    await refreshAll(in: guest.room)
    return sent
  }

  private func stop(_ number: UInt32, _ guest: HostedGuest) async -> Int {
    let changed = change(guest.room) { $0.publish([], of: guest.id) { 0 } }
    await guest.stop()
    guest.send(.result(request: number, nil))
    let sent = send((changed?.notices ?? []).filter { $0.to != guest.id }, in: guest.room)
    await refreshAll(in: guest.room)
    return sent
  }

  // MARK: Forwarding

  private func refreshAll(in room: String) async {
    for guest in guests.values.filter({ $0.room == room }).sorted(by: { $0.id < $1.id }) {
      await refresh(guest)
    }
  }

  /// Updates the media sent to a participant.
  private func refresh(_ guest: HostedGuest) async {
    guard let room = rooms[guest.room] else { return }
    let wanted = room.wanted(by: guest.id)
    await guest.offer(wanted.map(\.media))
    connectRoutes(in: guest.room)
  }

  private func connectRoutes(in name: String) {
    guard let room = rooms[name] else { return }
    let present = guests.values.filter { $0.room == name }
    for source in present {
      var routes: [UInt32: [HostedGuest.Target]] = [:]
      for media in room.media where media.owner == source.id {
        guard let from = source.transceiver(mid: media.mid) else { continue }
        routes[from] = present.compactMap { target in
          guard target !== source, room.flows(media.media.number, to: target.id) else {
            return nil
          }
          var found = target.target(of: media.media.number)
          found?.divisor = room.divisor(of: media.media.number, for: target.id)
          return found
        }
      }
      source.setRoutes(routes)
      source.setVoices(room.voices(for: source.id))
    }
  }
}

// MARK: - Options

extension RoomHost {
  /// A room host's limits, its secret and its connections' base configuration.
  package struct Options: Sendable {
    /// The connections' base configuration.
    package var connection = PeerConfiguration()
    /// The key and secret that tokens require, as `key:secret`; nil to let every client in without
    /// a token.
    package var secret: String?
    /// The time within which a disconnected participant may return, in seconds.
    package var graceSeconds = 15.0
    /// The maximum number of bytes per second that a participant can make the room send to each of
    /// the others.
    package var speechBytesPerSecond = SpeechAllowance.usualBytesPerSecond
    /// The maximum number of participants in all rooms together.
    package var guestsMaximum = 50
    /// The maximum number of times that participants may join in total, because each join adds rows
    /// to the take.
    package var entriesMaximum = 10_000
    /// The maximum number of bytes of recorded descriptions and candidates, per participant and in
    /// total.
    package var guestSignalingBytes = 16 << 20
    package var signalingBytes = 256 << 20
    /// How long a WebSocket may wait before it sends the join message, in seconds.
    package var joinSeconds = 10.0

    package init() {}
  }
}

extension RoomRequest {
  /// Whether the request is passed to a connection and therefore recorded.
  var isRecorded: Bool {
    switch self {
    case .offer, .answer, .candidate, .restart, .stop: true
    default: false
    }
  }
}
