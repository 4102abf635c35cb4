import Peer
import RoomSignaling
import Wire

// What the signaling, the connections and the helper tell.
extension RoomMachine {
  mutating func take(
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
        exempt(changed, into: &outbox)
      }
    case .talking(let participant, let isTalking, let level):
      outbox.append(.event(.talking(participant: participant, isTalking, level: level)))
    case .assigned(let media, let connection, let mid):
      assign(media, connection, mid, into: &outbox)
    case .unassigned(let media):
      // Other media may come by the same transceiver.
      if let receiver = pool[media], receiver.isExempt, let connection = receiver.connection,
        let transceiver = receiver.transceiver
      {
        outbox.append(
          .connection(connection, .exemptAudio(transceiver: transceiver, false)))
      }
      lose(media, into: &outbox)
    case .localPublished(let id, let media): confirm(id, media, into: &outbox)
    case .localUnpublished(let id): withdraw(id, into: &outbox)
    case .localMuted(let id, let isMuted):
      guard own[id] != nil else { return }
      own.change(id) { $0.info.isActive = !isMuted }
      outbox.append(.event(.localMediaMuted(id, isMuted)))
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
        if let call = entering.take() { outbox.append(.reply(call: call, .failed(failure))) }
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
    if let change = people.enter(room.participant, name: people.ownName, isLocal: true) {
      outbox.append(.person(change))
    }
    // A connection may carry own media before this side has a name in the room.
    for entry in own.entries { carry(entry.info.id, into: &outbox) }
    var media: [PublishedMedia] = []
    for info in room.participants where enter(info, into: &outbox) { media += info.media }
    if let told = life.reach(.done) { outbox.append(told) }
    if let entered = life.enter(.connected, at: now) { outbox.append(entered) }
    outbox.append(.event(.connected([room.participant] + people.others.map(\.id))))
    if let call = entering.take() { outbox.append(.reply(call: call, .done)) }
    announce(own.takeDeferred(), call: nil, at: now, into: &outbox)
    publish(media, at: now, into: &outbox)
  }

  /// Takes note of another participant; false when that is no news.
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
    // Who is subscribed to it is no longer.
    lose(id, into: &outbox)
    if pool.remove(id) != nil { outbox.append(.event(.remoteUnsubscribed(id))) }
    _ = people.unpublish(id)
    outbox.append(.event(.remoteUnpublished(media)))
  }

  // MARK: What is received

  private mutating func assign(
    _ media: MediaID, _ connection: ConnectionID, _ mid: String,
    into outbox: inout Outbox<RoomOutput>
  ) {
    guard let published = people.media(media), links[connection] != nil else { return }
    if let former = pool.receiver(on: connection, mid: mid), former.media != media {
      lose(former.media, into: &outbox)
    }
    if pool[media] == nil {
      // It comes without having been asked for: the service chooses.
      do throws(SignalingFailure) {
        if let size = try pool.take(media, isVideo: published.kind == .video) {
          outbox.append(.event(.receiversGrown(size)))
        }
      } catch {
        outbox.append(.event(.failed(error)))
        return
      }
    } else if let known = pool[media], known.connection != connection || known.mid != mid {
      lose(media, into: &outbox)
    }
    let transceiver = links.transceiver(of: mid, on: connection)
    pool.change(media) { receiver in
      if receiver.phase == .subscribing { receiver.phase = .subscribed }
      (receiver.connection, receiver.mid, receiver.transceiver) = (connection, mid, transceiver)
    }
    carry(media, into: &outbox)
  }

  /// Media whose section and transceiver are known is carried from now on.
  private mutating func carry(_ media: MediaID, into outbox: inout Outbox<RoomOutput>) {
    guard let receiver = pool[media], !receiver.isCarried, let place = carried(receiver),
      let connection = receiver.connection
    else { return }
    let hasSlots = hasAudioSlots
    let isAlwaysOn = people.media(media)?.isAlwaysOn == true
    let isHeard = !receiver.isVideo && (!hasSlots || isAlwaysOn)
    pool.change(media) { receiver in
      receiver.isCarried = true
      receiver.isOccupant = isHeard
      receiver.isExempt = isHeard && hasSlots
    }
    outbox.append(.person(.carried(place)))
    outbox.append(
      .event(.remoteSubscribed(media, connection, transceiver: place.transceiver)))
    if isHeard, hasSlots {
      outbox.append(
        .connection(connection, .exemptAudio(transceiver: place.transceiver, true)))
    }
    if isHeard { outbox.append(.event(.audioOccupied(media))) }
    if pool.isMuted || receiver.isMuted { setAudible(receiver, into: &outbox) }
  }

  /// Whether only some of those who speak are heard, and this side chooses them.
  private var hasAudioSlots: Bool {
    configuration.audioOccupants != nil && !abilities.contains(.audioSelection)
  }

  /// Audio that became always on is heard whoever else speaks; what is so no longer waits for its
  /// turn.
  private mutating func exempt(
    _ media: PublishedMedia, into outbox: inout Outbox<RoomOutput>
  ) {
    guard hasAudioSlots, let receiver = pool[media.id], !receiver.isVideo, receiver.isCarried,
      receiver.isExempt != media.isAlwaysOn, let connection = receiver.connection,
      let transceiver = receiver.transceiver
    else { return }
    pool.change(media.id) { receiver in
      receiver.isExempt = media.isAlwaysOn
      receiver.isOccupant = media.isAlwaysOn
    }
    outbox.append(
      .connection(connection, .exemptAudio(transceiver: transceiver, media.isAlwaysOn)))
    guard receiver.isOccupant != media.isAlwaysOn else { return }
    outbox.append(
      .event(media.isAlwaysOn ? .audioOccupied(media.id) : .audioVacated(media.id)))
  }

  private func carried(_ receiver: ReceiverPool.Receiver) -> CarriedMedia? {
    guard let connection = receiver.connection, let transceiver = receiver.transceiver,
      let link = links[connection], let media = people.media(receiver.media),
      let owner = people.person(media.owner)
    else { return nil }
    return CarriedMedia(
      participant: owner.number, media: media.id.number, kind: media.kind, isInbound: true,
      peer: link.peer, transceiver: transceiver, extraValue: media.extraValue)
  }

  /// Media is carried no longer; it stays subscribed.
  mutating func lose(_ media: MediaID, peer: UInt32? = nil, into outbox: inout Outbox<RoomOutput>) {
    guard let receiver = pool[media], receiver.connection != nil else { return }
    if receiver.isOccupant { outbox.append(.event(.audioVacated(media))) }
    if receiver.isCarried {
      let owner = people.media(media).flatMap { people.person($0.owner) }
      if let owner, let transceiver = receiver.transceiver {
        let link = receiver.connection.flatMap { links[$0] }
        outbox.append(
          .person(
            .ended(
              CarriedMedia(
                participant: owner.number, media: media.number,
                kind: receiver.isVideo ? .video : .audio, isInbound: true,
                peer: peer ?? link?.peer ?? 0, transceiver: transceiver,
                extraValue: people.media(media)?.extraValue ?? ""))))
      }
    }
    pool.change(media) { receiver in
      (receiver.connection, receiver.mid, receiver.transceiver) = (nil, nil, nil)
      (receiver.isOccupant, receiver.isExempt, receiver.isCarried) = (false, false, false)
    }
  }

  /// Lets what a transceiver receives be heard, or not.
  func setAudible(
    _ receiver: ReceiverPool.Receiver, into outbox: inout Outbox<RoomOutput>
  ) {
    guard !receiver.isVideo, let connection = receiver.connection,
      let transceiver = receiver.transceiver
    else { return }
    outbox.append(
      .connection(
        connection,
        .setAudible(transceiver: transceiver, !pool.isMuted && !receiver.isMuted)))
  }

  // MARK: Own media

  private mutating func confirm(
    _ id: LocalMediaID, _ media: MediaID, into outbox: inout Outbox<RoomOutput>
  ) {
    guard let entry = own[id], entry.phase == .publishing else { return }
    own.change(id) { entry in
      entry.phase = .published
      entry.media = media
    }
    outbox.append(.event(.localMediaPublished(id, media)))
  }

  private mutating func withdraw(_ id: LocalMediaID, into outbox: inout Outbox<RoomOutput>) {
    guard let entry = own[id] else { return }
    if entry.phase == .unpublishing {
      withdrawSilently(id, into: &outbox)
    } else {
      // The service has lost it: it is published anew with the next session.
      guard entry.phase == .published else { return }
      own.change(id) { ($0.phase, $0.media) = (.publishing, nil) }
    }
    outbox.append(.event(.localMediaUnpublished(id)))
  }

  /// Own media goes over a transceiver from now on, and no longer over the one before.
  private mutating func place(
    _ id: LocalMediaID, on connection: ConnectionID, _ transceiver: UInt32,
    into outbox: inout Outbox<RoomOutput>
  ) {
    guard let entry = own[id],
      entry.connection != connection || entry.transceiver != transceiver
    else { return }
    if let place = carried(entry) { outbox.append(.person(.ended(place))) }
    own.change(id) { entry in
      (entry.connection, entry.transceiver) = (connection, transceiver)
      entry.carrier = nil
    }
    carry(id, into: &outbox)
  }

  /// Tells that own media is carried, once it is on a connection and its owner has entered.
  private mutating func carry(_ id: LocalMediaID, into outbox: inout Outbox<RoomOutput>) {
    guard people.own != nil, let entry = own[id], entry.carrier == nil,
      let link = entry.connection.flatMap({ links[$0] })
    else { return }
    own.change(id) { $0.carrier = link.peer }
    if let place = own[id].flatMap({ carried($0) }) { outbox.append(.person(.carried(place))) }
  }

  /// What was told of own media that is carried; nil where it is not.
  func carried(_ entry: LocalMediaTable.Entry) -> CarriedMedia? {
    guard let peer = entry.carrier, let transceiver = entry.transceiver, let me = people.own
    else { return nil }
    return CarriedMedia(
      participant: me.number, media: entry.media?.number, kind: entry.info.kind,
      isInbound: false, peer: peer, transceiver: transceiver, extraValue: entry.info.extraValue)
  }

  // MARK: Answers

  /// Draws the consequences of an answer, or of none.
  mutating func settle(
    _ action: ActionTable.Action, _ failure: SignalingFailure?,
    into outbox: inout Outbox<RoomOutput>
  ) {
    switch action.kind {
    case .publish(let ids):
      if failure != nil {
        for id in ids where own[id]?.phase == .publishing {
          if let connection = own[id]?.connection {
            outbox.append(.connection(connection, .detach(id)))
          }
          withdrawSilently(id, into: &outbox)
        }
      }
    case .unpublish(let ids):
      for id in ids where own[id]?.phase == .unpublishing { withdraw(id, into: &outbox) }
    case .subscribe(let ids):
      for id in ids where pool[id]?.phase == .subscribing {
        if failure == nil {
          pool.change(id) { $0.phase = .subscribed }
        } else {
          _ = pool.remove(id)
        }
      }
    case .unsubscribe(let ids):
      for id in ids where pool[id]?.phase == .unsubscribing {
        if failure == nil {
          lose(id, into: &outbox)
          if pool.remove(id) != nil { outbox.append(.event(.remoteUnsubscribed(id))) }
        } else {
          pool.change(id) { $0.phase = .subscribed }
        }
      }
    case .profile(let id, let profile):
      if failure == nil { pool.change(id) { $0.profile = profile } }
    case .pause(let id, let isPaused):
      if failure == nil { pool.change(id) { $0.isPaused = isPaused } }
    case .message: break
    }
    if let call = action.call {
      outbox.append(.reply(call: call, failure.map { .failed($0) } ?? .done))
    } else if let failure {
      outbox.append(.event(.failed(failure)))
    }
  }

  private mutating func withdrawSilently(
    _ id: LocalMediaID, into outbox: inout Outbox<RoomOutput>
  ) {
    guard let entry = own.remove(id) else { return }
    if let place = carried(entry) { outbox.append(.person(.ended(place))) }
  }

  // MARK: Connections

  mutating func take(
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
      tell(.connection(id, .state(state)), at: now, into: &outbox)
    case .report(let report):
      if case .refused(let error) = report {
        outbox.append(
          .event(
            .failed(SignalingFailure(.remoteDescriptionFailed, "\(error.name): \(error.message)"))))
      }
      tell(.connection(id, report), at: now, into: &outbox)
    case .sending(let media, let transceiver):
      place(media, on: id, transceiver, into: &outbox)
    case .receiving(let mid, let transceiver):
      links.setTransceiver(transceiver, of: mid, on: id)
      if let receiver = pool.receiver(on: id, mid: mid), receiver.transceiver != transceiver {
        lose(receiver.media, into: &outbox)
        pool.change(receiver.media) {
          ($0.connection, $0.mid, $0.transceiver) = (id, mid, transceiver)
        }
        carry(receiver.media, into: &outbox)
      }
    case .secured: if let told = life.reach(.secured) { outbox.append(told) }
    case .audioSlot(let transceiver, let isHeld):
      guard let receiver = pool.receiver(on: id, transceiver: transceiver),
        receiver.isOccupant != isHeld, !receiver.isExempt
      else { return }
      pool.change(receiver.media) { $0.isOccupant = isHeld }
      outbox.append(
        .event(isHeld ? .audioOccupied(receiver.media) : .audioVacated(receiver.media)))
    }
  }

  // MARK: The helper that shares a screen

  mutating func take(
    _ report: ShareReport, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    let outcome = share.take(report, at: now)
    if let order = outcome.order { outbox.append(.share(order)) }
    if let status = outcome.status { outbox.append(.event(.screenShare(status))) }
    if let failure = outcome.failure { outbox.append(.event(.failed(failure))) }
  }
}
