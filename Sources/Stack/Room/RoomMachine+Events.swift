import Peer
import Wire

// Events from signaling, connections and the process that shares a screen.
extension RoomMachine {
  mutating func handle(
    _ event: SignalingEvent, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    switch event {
    case .progress(let stage): reach(stage, into: &outbox)
    case .joined(let room): enter(room, at: now, into: &outbox)
    case .participantEntered(let info):
      if enter(info, into: &outbox) {
        outbox.append(.event(.participantEntered(info.id)))
        publish(info.media, at: now, into: &outbox)
      }
    case .participantLeft(let id, let cause): leave(id, cause, into: &outbox)
    case .published(_, let media): publish(media, at: now, into: &outbox)
    case .unpublished(_, let media): for id in media { unpublish(id, into: &outbox) }
    case .mediaChanged(let media):
      if people.change(media), let changed = people.media(media.id) {
        outbox.append(.event(.remoteStateChanged(changed)))
        outbox.append(pool.exempt(changed))
      }
    case .talking(let participant, let isTalking, let level):
      outbox.append(.event(.talking(participant: participant, isTalking, level: level)))
    case .voices(let media): outbox.append(pool.setVoices(media))
    case .assigned(let media, let connection, let mid):
      assign(media, connection, mid, into: &outbox)
    case .unassigned(let media): outbox.append(pool.unassign(media, people, links))
    case .localPublished(let id, let media): outbox.append(localMedia.confirm(id, as: media))
    case .localUnpublished(let id): outbox.append(localMedia.withdraw(id))
    case .localMuted(let id, let isMuted): outbox.append(localMedia.setMuted(isMuted, id))
    case .result(let id, let failure):
      if let action = actions.end(id) { settle(action, failure, into: &outbox) }
    case .message(let message): outbox.append(.event(.message(message)))
    case .notification(let type, let text):
      outbox.append(.event(.notification(type: type, text)))
    case .redirected(let url): outbox.append(.event(.redirected(url)))
    case .reconnecting(let attempt, let reason):
      outbox.append(.event(.reconnecting(attempt: attempt, reason: reason)))
    case .reconnected: outbox.append(.event(.reconnected))
    case .failed(let failure):
      if failure.isCritical {
        life.fail()
        outbox.append(waiting.refuse(failure))
      }
      outbox.append(.event(.failed(failure)))
    case .ended(let ending): finish(ending, at: now, into: &outbox)
    }
  }

  private mutating func reach(_ stage: JoinStage, into outbox: inout Outbox<RoomOutput>) {
    let milestone: RoomLife.Milestone =
      switch stage {
      case .opened: .opened
      case .attached: .attached
      case .joining: .joining
      }
    if let told = life.reach(milestone) { outbox.append(told) }
  }

  // MARK: Participants

  private mutating func enter(
    _ room: JoinedRoom, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    guard life.state == .connecting else { return }
    if let change = people.enter(room.participant, name: people.localName, isLocal: true) {
      outbox.append(.person(change))
    }
    if let me = people.local { outbox.append(localMedia.enter(as: me.number, over: links)) }
    var media: [PublishedMedia] = []
    for info in room.participants where enter(info, into: &outbox) { media += info.media }
    if let told = life.reach(.done) { outbox.append(told) }
    if let entered = life.enter(.connected, at: now) { outbox.append(entered) }
    outbox.append(.event(.connected([room.participant] + people.others.map(\.id))))
    outbox.append(waiting.enter())
    announce(localMedia.removeDeferred(), call: nil, at: now, into: &outbox)
    publish(media, at: now, into: &outbox)
  }

  /// Records a remote participant; returns false if it is already present or there are too many.
  private mutating func enter(_ info: ParticipantInfo, into outbox: inout Outbox<RoomOutput>)
    -> Bool
  {
    guard let change = people.enter(info.id, name: info.displayName) else { return false }
    outbox.append(.person(change))
    return true
  }

  private mutating func leave(
    _ id: String, _ cause: LeaveCause, into outbox: inout Outbox<RoomOutput>
  ) {
    guard people.person(id)?.isLocal == false else { return }
    for media in people.media(of: id) { unpublish(media.id, into: &outbox) }
    guard let change = people.leave(id) else { return }
    outbox.append(.person(change))
    outbox.append(.event(.participantLeft(id, cause)))
  }

  // MARK: Published media

  private mutating func publish(
    _ media: [PublishedMedia], at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    let news = media.filter { people.publish($0) }
    for media in news { outbox.append(.event(.remotePublished(media))) }
    let audio = news.filter { $0.kind == .audio }.map(\.id)
    guard configuration.subscribesAudio, life.state == .connected, !audio.isEmpty,
      abilities.contains(.subscriptions), !abilities.contains(.audioSelection)
    else { return }
    do throws(SignalingFailure) {
      try subscribe(audio, call: nil, at: now, into: &outbox)
    } catch {
      outbox.append(.event(.failed(error)))
    }
  }

  private mutating func unpublish(_ id: MediaID, into outbox: inout Outbox<RoomOutput>) {
    guard let media = people.media(id) else { return }
    outbox.append(pool.remove(id, people, links))
    _ = people.unpublish(id)
    outbox.append(.event(.remoteUnpublished(media)))
  }

  private mutating func assign(
    _ media: MediaID, _ connection: ConnectionID, _ mid: String,
    into outbox: inout Outbox<RoomOutput>
  ) {
    guard let published = people.media(media), links[connection] != nil else { return }
    outbox.append(pool.assign(published, to: mid, on: connection, people, links))
  }

  // MARK: Replies

  /// Applies the reply to a request, or its time-out.
  mutating func settle(
    _ action: ActionTable.Action, _ failure: SignalingFailure?,
    into outbox: inout Outbox<RoomOutput>
  ) {
    let isRefused = failure != nil
    switch action.kind {
    case .publish(let ids): if isRefused { outbox.append(localMedia.refuse(ids)) }
    case .unpublish(let ids): outbox.append(localMedia.endUnpublishing(ids))
    case .subscribe(let ids): pool.endSubscribing(ids, isRefused: isRefused)
    case .unsubscribe(let ids):
      outbox.append(pool.endUnsubscribing(ids, isRefused: isRefused, people, links))
    case .profile(let id, let profile): if !isRefused { pool.setProfile(profile, of: id) }
    case .pause(let id, let isPaused): if !isRefused { pool.setPaused(isPaused, id) }
    case .message: break
    }
    if let call = action.call {
      outbox.append(.reply(call: call, failure.map { .failed($0) } ?? .done))
    } else if let failure {
      outbox.append(.event(.failed(failure)))
    }
  }

  // MARK: Connections

  mutating func handle(
    _ report: RoomConnectionReport, of id: ConnectionID, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) {
    guard links[id] != nil else { return }
    switch report {
    case .opened(let peer): links.setPeer(peer, of: id)
    case .report(.state(let state)):
      if let former = links.setState(state, of: id, at: now) {
        outbox.append(
          .state(
            machine: "room-connection-\(id.number)", from: former.rawValue, to: state.rawValue))
      }
      if state == .connecting, let told = life.reach(.checking) { outbox.append(told) }
      emit(.connection(id, .state(state)), at: now, into: &outbox)
    case .report(let report):
      if case .refused(let error) = report {
        outbox.append(
          .event(
            .failed(SignalingFailure(.remoteDescriptionFailed, "\(error.name): \(error.message)"))))
      }
      emit(.connection(id, report), at: now, into: &outbox)
    case .sending(let media, let transceiver):
      outbox.append(localMedia.place(media, on: id, transceiver, over: links))
    case .receiving(let mid, let transceiver):
      links.setTransceiver(transceiver, of: mid, on: id)
      outbox.append(pool.receive(mid, by: transceiver, on: id, people, links))
    case .secured: if let told = life.reach(.secured) { outbox.append(told) }
    case .audioSlot(let transceiver, let isHeld):
      outbox.append(pool.recordSlot(isHeld, of: transceiver, on: id))
    }
  }

  // MARK: Screen sharing

  mutating func handle(
    _ report: ShareReport, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    let outcome = share.handle(report, at: now)
    if let order = outcome.order { outbox.append(.share(order)) }
    if let status = outcome.status { outbox.append(.event(.screenShare(status))) }
    if let failure = outcome.failure { outbox.append(.event(.failed(failure))) }
  }
}
