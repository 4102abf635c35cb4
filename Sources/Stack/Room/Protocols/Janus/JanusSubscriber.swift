import Peer
import SDP
import Wire

/// Media from other participants in a videoroom: its connection and subscriptions.
///
/// Only one subscription, unsubscription or ICE restart is in progress at a time; if it needs a
/// local answer, it lasts until the server has accepted the answer.
struct JanusSubscriber: Sendable {
  private enum Job: Sendable {
    case subscribe(ActionID?, [MediaID])
    case unsubscribe(ActionID?, [MediaID])
    case restart
  }

  private enum Phase: String {
    case idle
    /// Waiting for the handle.
    case attaching
    /// Waiting for the server's offer.
    case asked
    /// Waiting for the connection's answer.
    case answering
    /// Waiting for the server to accept the answer.
    case answered
  }

  private struct Stream: Sendable {
    var mid: String
    var media: MediaID
  }

  private var connection: ConnectionID?
  private var phase = Phase.idle
  private var isJoined = false
  private var privateID: Int64?
  private var jobs: [Job] = []
  private var job: Job?
  /// An offer that arrived while the previous one was being answered.
  private var nextOffer: (data: JSONValue, offer: SessionDescription)?
  /// The media that the room wants, whether or not it is being received.
  private var wanted: [MediaID] = []
  private var streams: [Stream] = []

  var status: [(name: String, value: String)] {
    [
      ("subscriber", phase.rawValue), ("received", String(streams.count)),
      ("jobs", String(jobs.count)),
    ]
  }

  // MARK: Intents

  mutating func subscribe(_ action: ActionID, _ media: [MediaID], _ desk: inout JanusDesk) {
    let unknown = media.filter { desk.roster.media($0) == nil }
    guard unknown.isEmpty else {
      return desk.emit(
        action,
        SignalingFailure(.noSuchMedia, "nobody publishes such media", media: unknown.first))
    }
    jobs.append(.subscribe(action, media))
    proceed(&desk)
  }

  mutating func unsubscribe(_ action: ActionID, _ media: [MediaID], _ desk: inout JanusDesk) {
    jobs.append(.unsubscribe(action, media))
    proceed(&desk)
  }

  mutating func set(
    _ profile: VideoProfile, _ action: ActionID, _ media: MediaID, _ desk: inout JanusDesk
  ) {
    let layers: [VideoProfile] = [.low, .mid, .high]
    guard let layer = layers.firstIndex(of: profile),
      desk.roster.media(media)?.media.profiles.isEmpty == false
    else {
      return desk.emit(
        action, SignalingFailure(.noProfiles, "the video has no layers", media: media))
    }
    let number = JSONValue.integer(Int64(layer))
    // `substream` is for simulcast, `spatial_layer` for scalable coding; the server uses the one
    // that applies.
    configure(
      media, [("substream", number), ("spatial_layer", number)], .profile, action, &desk)
  }

  mutating func pause(
    _ isPaused: Bool, _ action: ActionID, _ media: MediaID, _ desk: inout JanusDesk
  ) {
    configure(media, [("send", .flag(!isPaused))], .pause, action, &desk)
  }

  private func configure(
    _ media: MediaID, _ members: [(String, JSONValue)], _ setting: JanusSetting,
    _ action: ActionID, _ desk: inout JanusDesk
  ) {
    guard let stream = streams.first(where: { $0.media == media }) else {
      return desk.emit(
        action, SignalingFailure(.notSubscribed, "the media is not received", media: media))
    }
    let all = [("mid", JSONValue.text(stream.mid))] + members
    let value = JSONValue.object(all.map { JSONValue.Member($0, $1) })
    desk.ask(
      .configure(action, setting), of: .subscriber,
      .members(("request", "configure"), ("streams", .list([value]))))
  }

  mutating func restart(_ connection: ConnectionID, _ desk: inout JanusDesk) {
    guard connection == self.connection else { return }
    jobs.append(.restart)
    proceed(&desk)
  }

  // MARK: Requests

  private mutating func proceed(_ desk: inout JanusDesk) {
    guard phase == .idle, desk.isEntered else { return }
    if let next = nextOffer.take() { return answer(next.data, next.offer, &desk) }
    guard !jobs.isEmpty else { return }
    let next = jobs.removeFirst()
    job = next
    switch next {
    case .subscribe(_, let media):
      guard desk.session.has(.subscriber) else {
        phase = .attaching
        return desk.attach(JanusVideoRoom.name, as: .subscriber)
      }
      ask(media, &desk)
    case .unsubscribe(_, let media):
      wanted.removeAll { media.contains($0) }
      let mids = streams.filter { media.contains($0.media) }
        .map { JSONValue.members(("sub_mid", .text($0.mid))) }
      guard isJoined, !mids.isEmpty else { return finish(nil, &desk) }
      phase = .asked
      desk.ask(
        .subscription, of: .subscriber,
        .members(("request", "unsubscribe"), ("streams", .list(mids))))
    case .restart:
      guard isJoined else { return finish(nil, &desk) }
      phase = .asked
      desk.ask(
        .configure(nil, .restart), of: .subscriber,
        .members(("request", "configure"), ("restart", true)))
    }
  }

  mutating func attached(privateID: Int64?, _ desk: inout JanusDesk) {
    self.privateID = privateID
    guard phase == .attaching, case .subscribe(_, let media)? = job else { return }
    ask(media, &desk)
  }

  private mutating func ask(_ media: [MediaID], _ desk: inout JanusDesk) {
    // Do not request media that is no longer published.
    let places = media.compactMap { id in
      desk.roster.media(id).map { found in
        JSONValue.members(
          ("feed", .identifier(found.media.owner)), ("mid", .text(found.key)))
      }
    }
    guard !places.isEmpty else {
      return finish(
        SignalingFailure(.noSuchMedia, "nobody publishes such media", media: media.first), &desk)
    }
    phase = .asked
    wanted += media.filter { !wanted.contains($0) }
    if isJoined {
      desk.ask(
        .subscription, of: .subscriber,
        .members(("request", "subscribe"), ("streams", .list(places))))
    } else {
      desk.ask(
        .subscription, of: .subscriber,
        .members(
          ("request", "join"), ("ptype", "subscriber"), ("room", .identifier(desk.join.room)),
          ("private_id", privateID.map { .integer($0) }),
          ("pin", desk.options["pin"].map { .text($0) }), ("streams", .list(places))))
    }
  }

  /// Finishes the current request and starts the next.
  private mutating func finish(_ failure: SignalingFailure?, _ desk: inout JanusDesk) {
    phase = .idle
    switch job.take() {
    case .subscribe(let action, let media)?:
      if failure != nil { wanted.removeAll { media.contains($0) } }
      if let action { desk.emit(action, failure) }
    case .unsubscribe(let action, _)?: if let action { desk.emit(action, failure) }
    case .restart?, nil: if let failure { desk.emit(.failed(failure)) }
    }
    proceed(&desk)
  }

  // MARK: Server

  mutating func handle(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.subscription, .data(let data, let offer)),
      (.configure(nil, .restart), .data(let data, let offer)):
      guard phase == .asked else { return }
      if data["videoroom"]?.text == "attached" { isJoined = true }
      if let offer {
        answer(data, offer, &desk)
      } else {
        assign(data, &desk)
        finish(nil, &desk)
      }
    case (.subscription, .failed(let code, let reason)):
      guard phase == .asked else { return }
      finish(SignalingFailure(.subscribeFailed, janus: code, reason), &desk)
    case (.configure(nil, _), .failed(let code, let reason)):
      guard phase == .asked else { return }
      finish(SignalingFailure(.pathLost, janus: code, reason), &desk)
    case (.start, .data): if phase == .answered { finish(nil, &desk) }
    case (.start, .failed(let code, let reason)):
      guard phase == .answered else { return }
      finish(SignalingFailure(.answerFailed, janus: code, reason), &desk)
    case (.join, .failed(let code, let reason)):
      // The handle could not be attached.
      guard phase == .attaching else { return }
      finish(SignalingFailure(.subscribeFailed, janus: code, reason), &desk)
    case (.configure(let action?, _), .data): desk.emit(action)
    case (.configure(let action?, let setting), .failed(let code, let reason)):
      desk.emit(
        action,
        SignalingFailure(setting == .pause ? .pauseFailed : .profileFailed, janus: code, reason))
    default: break
    }
  }

  /// Handles an unsolicited offer after published media changed.
  mutating func handle(
    _ data: JSONValue, _ offer: SessionDescription?, _ desk: inout JanusDesk
  ) {
    guard let offer, offer.type == .offer, isJoined else {
      if data["videoroom"]?.text == "updated" { assign(data, &desk) }
      return
    }
    guard phase == .idle else {
      nextOffer = (data, offer)
      return
    }
    answer(data, offer, &desk)
  }

  private mutating func answer(
    _ data: JSONValue, _ offer: SessionDescription, _ desk: inout JanusDesk
  ) {
    let connection = connection ?? desk.connect(.down)
    self.connection = connection
    phase = .answering
    assign(data, &desk)
    desk.request(connection, .setRemote(offer))
  }

  /// Assigns media to sections according to the server's list of streams, and unassigns media that
  /// is no longer in the list.
  private mutating func assign(_ data: JSONValue, _ desk: inout JanusDesk) {
    guard let list = data["streams"], let connection = connection else { return }
    var now: [Stream] = []
    for stream in list.elements where stream["active"]?.flag != false {
      guard let mid = stream["mid"]?.text, let owner = stream["feed_id"]?.identifier,
        let key = stream["feed_mid"]?.text,
        let media = desk.roster.media(owner: owner, key: key)?.id,
        !now.contains(where: { $0.media == media })
      else { continue }
      now.append(Stream(mid: mid, media: media))
    }
    for old in streams where !now.contains(where: { $0.media == old.media && $0.mid == old.mid }) {
      desk.emit(.unassigned(old.media))
    }
    for new in now where !streams.contains(where: { $0.media == new.media && $0.mid == new.mid }) {
      desk.emit(.assigned(new.media, connection, mid: new.mid))
    }
    streams = now
  }

  mutating func handle(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    if let connection { desk.request(connection, .addCandidate(candidate)) }
  }

  /// Requests all wanted media again after the server hung up.
  mutating func hangUp(_ reason: String, _ desk: inout JanusDesk) {
    guard connection != nil else { return }
    desk.emit(.failed(SignalingFailure(.connectionClosed, "the server hung up: \(reason)")))
    close(&desk)
    // The handle no longer has a subscription.
    desk.detach(.subscriber)
    isJoined = false
    again(&desk)
  }

  mutating func detached(_ desk: inout JanusDesk) {
    close(&desk)
    isJoined = false
    again(&desk)
  }

  // MARK: Connection

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard connection == self.connection else { return }
    switch report {
    case .description(let answer, _) where phase == .answering && answer.type == .answer:
      phase = .answered
      desk.ask(.start, of: .subscriber, .members(("request", "start")), answer)
    case .refused(let error):
      guard phase == .answering else { return }
      finish(SignalingFailure(.answerFailed, error.message), &desk)
    case .candidate(let candidate): desk.trickle(candidate, to: .subscriber)
    default: break
    }
  }

  // MARK: Losses

  mutating func entered(_ desk: inout JanusDesk) { again(&desk) }

  /// Requests wanted media that is not being received.
  private mutating func again(_ desk: inout JanusDesk) {
    let missing = wanted.filter { media in
      desk.roster.media(media) != nil && !streams.contains { $0.media == media }
    }
    wanted = streams.map(\.media)
    if !missing.isEmpty { jobs.insert(.subscribe(nil, missing), at: 0) }
    proceed(&desk)
  }

  /// Repeats the unanswered request after the session has been resumed.
  mutating func resume(_ desk: inout JanusDesk) {
    guard phase == .asked || phase == .answered || phase == .attaching else { return }
    if let job = job.take() { jobs.insert(job, at: 0) }
    phase = .idle
    proceed(&desk)
  }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    if let job = job.take() { jobs.insert(job, at: 0) }
    for job in jobs {
      switch job {
      case .subscribe(let action?, _), .unsubscribe(let action?, _): desk.emit(action, failure)
      case .subscribe(nil, _), .unsubscribe(nil, _), .restart: break
      }
    }
    jobs = []
  }

  mutating func reset(_ desk: inout JanusDesk) {
    if let job = job.take() { jobs.insert(job, at: 0) }
    close(&desk)
    isJoined = false
  }

  private mutating func close(_ desk: inout JanusDesk) {
    if let job = job.take() { jobs.insert(job, at: 0) }
    phase = .idle
    nextOffer = nil
    for stream in streams { desk.emit(.unassigned(stream.media)) }
    streams = []
    if let connection { desk.request(connection, .close) }
    connection = nil
  }
}
