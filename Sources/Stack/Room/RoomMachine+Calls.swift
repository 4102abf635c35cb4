import Wire

// Calls from the application.
extension RoomMachine {
  mutating func handle(
    _ call: RoomCall, id: UInt32, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    do throws(SignalingFailure) {
      if try perform(call, id: id, at: now, into: &outbox) {
        outbox.append(.reply(call: id, .done))
      }
    } catch {
      outbox.append(.reply(call: id, .failed(error)))
    }
  }

  /// Performs a call.
  /// - Returns: whether the call is done; otherwise its reply follows later.
  private mutating func perform(
    _ call: RoomCall, id: UInt32, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    switch call {
    case .signedIn(let text, let lifetime):
      let isRenewal = token.text != nil && life.state == .connected
      token.renew(text, lifetime: lifetime.map { .milliseconds($0) }, at: now)
      if isRenewal { want(.renewToken(text), at: now, into: &outbox) }
    case .signOut: token.forget()
    case .connect(let join): return try connect(join, id, at: now, into: &outbox)
    case .disconnect: return disconnect(id, at: now, into: &outbox)
    case .publish(let infos): return try publish(infos, id, at: now, into: &outbox)
    case .unpublish(let ids): return try unpublish(ids, id, at: now, into: &outbox)
    case .updateLocal(let info): try update(info, at: now, into: &outbox)
    case .subscribe(let media):
      try subscribe([media], call: id, at: now, into: &outbox)
      return false
    case .subscribeAll(let media): try subscribe(media, call: nil, at: now, into: &outbox)
    case .unsubscribe(let media):
      try unsubscribe([media], call: id, at: now, into: &outbox)
      return false
    case .unsubscribeAll(let media): try unsubscribe(media, call: nil, at: now, into: &outbox)
    case .setProfile(let media, let profile):
      return try setProfile(profile, of: media, id, at: now, into: &outbox)
    case .setPaused(let media, let isPaused):
      return try setPaused(isPaused, of: media, id, at: now, into: &outbox)
    case .sendMessage(let message):
      return try send(message, id, at: now, into: &outbox)
    case .setMuted(let isMuted): outbox.append(pool.setMuted(isMuted))
    case .setMediaMuted(let media, let isMuted):
      outbox.append(try pool.setMuted(isMuted, media))
    case .restartICE, .networkChanged:
      guard life.state == .connected || life.state == .connecting else {
        throw failure(.invalidState)
      }
      if case .networkChanged = call { want(.networkChanged, at: now, into: &outbox) }
      links.restartAll(at: now)
    case .requestScreenShare:
      guard life.state == .connected else { throw failure(.invalidState) }
      outbox.append(.share(try share.request(at: now)))
    case .stopScreenShare(let isLeaving):
      // This takes effect immediately, without a reply from the service.
      if let order = share.stop(isLeaving: isLeaving, at: now) { outbox.append(.share(order)) }
    }
    return true
  }

  // MARK: Joining and leaving

  private mutating func connect(
    _ join: RoomJoin, _ id: UInt32, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard life.state == .initialized else { throw failure(.invalidState) }
    guard hasSignaling else {
      throw SignalingFailure(
        .notSupported, "no protocol is called \(configuration.signaling.protocolName)")
    }
    if configuration.needsToken, token.text == nil { throw failure(.notSignedIn) }
    if configuration.checksRoomID, !RoomMachine.isRoomID(join.room) {
      throw failure(.invalidRoomID)
    }
    waiting.awaitRoom(id)
    people.setOwnName(join.displayName)
    var join = join
    join.token = join.token ?? token.text
    let limit = Interval.milliseconds(configuration.connectTimeoutMilliseconds)
    for output in [
      life.enter(.connecting, at: now, limit: limit), life.reach(.begun),
      token.text == nil ? nil : life.reach(.signedIn),
    ].compactMap(\.self) { outbox.append(output) }
    want(.join(join), at: now, into: &outbox)
    return false
  }

  /// Returns whether an identifier consists of 1 to 32 letters, digits and hyphens.
  package static func isRoomID(_ text: String) -> Bool {
    (1...32).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }

  private mutating func disconnect(
    _ id: UInt32, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) -> Bool {
    switch life.state {
    case .disconnected: return true
    case .initialized:
      finish(RoomEnding(.disconnected), at: now, into: &outbox)
      return true
    case .disconnecting:
      waiting.awaitEnd(id)
      return false
    case .connecting, .connected:
      waiting.awaitEnd(id)
      if let entered = life.enter(.disconnecting, at: now) { outbox.append(entered) }
      outbox.append(waiting.refuse(failure(.invalidState)))
      want(.leave, at: now, into: &outbox)
      return false
    }
  }

  // MARK: Local media

  private mutating func publish(
    _ infos: [LocalMediaInfo], _ id: UInt32, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard life.state != .disconnecting, life.state != .disconnected else {
      throw failure(.invalidState)
    }
    guard !infos.isEmpty, localMedia.accepts(infos) else { throw failure(.invalidArgument) }
    guard !abilities.contains(.audioOnly) || infos.allSatisfy({ $0.kind == .audio }) else {
      throw SignalingFailure(.notSupported, "the service takes audio alone")
    }
    guard life.state == .connected else {
      // The media is published once the room is joined.
      localMedia.add(infos, phase: .deferred)
      return true
    }
    localMedia.add(infos, phase: .publishing)
    announce(infos, call: id, at: now, into: &outbox)
    return false
  }

  /// Sends local media on a connection; if the server makes the offers, its offers determine the
  /// layers.
  func attach(
    _ infos: [LocalMediaInfo], to id: ConnectionID, into outbox: inout Outbox<RoomOutput>
  ) {
    for var info in infos {
      if abilities.contains(.serverOffers) { info.layers = [] }
      outbox.append(.connection(id, .attach(info)))
    }
  }

  /// Adds local media to the sending connections and publishes it.
  mutating func announce(
    _ infos: [LocalMediaInfo], call: UInt32?, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) {
    guard !infos.isEmpty else { return }
    for id in links.sending { attach(infos, to: id, into: &outbox) }
    guard let action = actions.begin(.publish(infos.map(\.id)), call: call, at: now) else {
      if let call { outbox.append(.reply(call: call, .failed(failure(.internalError)))) }
      return
    }
    want(.publish(PublicationRequest(action: action, media: infos)), at: now, into: &outbox)
  }

  private mutating func unpublish(
    _ ids: [LocalMediaID], _ call: UInt32, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard localMedia.canUnpublish(ids) else { throw failure(.invalidArgument) }
    guard life.state == .connected else {
      localMedia.forget(ids)
      return true
    }
    outbox.append(localMedia.beginUnpublishing(ids))
    guard let action = actions.begin(.unpublish(ids), call: call, at: now) else {
      throw failure(.internalError)
    }
    want(.unpublish(action, ids), at: now, into: &outbox)
    return false
  }

  private mutating func update(
    _ info: LocalMediaInfo, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) {
    guard let isNews = localMedia.update(info) else { throw failure(.invalidArgument) }
    if isNews { want(.updateLocal(info), at: now, into: &outbox) }
  }

  // MARK: Remote media

  /// Subscribes to media; if there is no call, events report the failures.
  mutating func subscribe(
    _ media: [MediaID], call: UInt32?, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) {
    guard life.state == .connected else { throw failure(.noDownConnection) }
    guard !media.isEmpty else { throw failure(.nothingToSubscribe) }
    guard abilities.contains(.subscriptions) else {
      // Without subscriptions, all published media arrives anyway.
      if let stranger = media.first(where: { people.media($0) == nil }) {
        throw failure(.noSuchMedia, stranger)
      }
      if let call { outbox.append(.reply(call: call, .done)) }
      return
    }
    var taken: [MediaID] = []
    for id in media {
      do throws(SignalingFailure) {
        guard let published = people.media(id) else { throw failure(.noSuchMedia, id) }
        outbox.append(try pool.assign(id, isVideo: published.kind == .video))
        taken.append(id)
      } catch {
        if call != nil { throw error }
        outbox.append(.event(.failed(error)))
      }
    }
    guard !taken.isEmpty else { return }
    guard let action = actions.begin(.subscribe(taken), call: call, at: now) else {
      pool.forget(taken)
      throw failure(.internalError)
    }
    want(.subscribe(action, taken), at: now, into: &outbox)
  }

  private mutating func unsubscribe(
    _ media: [MediaID], call: UInt32?, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) {
    guard life.state == .connected else { throw failure(.noDownConnection) }
    guard !media.isEmpty else { throw failure(.nothingToUnsubscribe) }
    var taken: [MediaID] = []
    for id in media {
      do throws(SignalingFailure) {
        try pool.beginUnsubscribing(id)
        taken.append(id)
      } catch {
        if call != nil { throw error }
        outbox.append(.event(.failed(error)))
      }
    }
    guard !taken.isEmpty else { return }
    guard let action = actions.begin(.unsubscribe(taken), call: call, at: now) else {
      throw failure(.internalError)
    }
    want(.unsubscribe(action, taken), at: now, into: &outbox)
  }

  private mutating func setProfile(
    _ profile: VideoProfile, of media: MediaID, _ call: UInt32, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard pool[media]?.isVideo == true else { throw failure(.notSubscribed, media) }
    guard abilities.contains(.profiles), let published = people.media(media),
      published.profiles.contains(profile)
    else { throw failure(.noProfiles, media) }
    guard let action = actions.begin(.profile(media, profile), call: call, at: now) else {
      throw failure(.internalError)
    }
    want(.setProfile(action, media, profile), at: now, into: &outbox)
    return false
  }

  private mutating func setPaused(
    _ isPaused: Bool, of media: MediaID, _ call: UInt32, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard let receiver = pool[media], receiver.isVideo else { throw failure(.notSubscribed, media) }
    guard abilities.contains(.pausing) else { throw failure(.cannotPause, media) }
    guard receiver.isPaused != isPaused else { return true }
    guard let action = actions.begin(.pause(media, isPaused), call: call, at: now) else {
      throw failure(.internalError)
    }
    want(.setPaused(action, media, isPaused), at: now, into: &outbox)
    return false
  }

  private mutating func send(
    _ message: UserMessage, _ call: UInt32, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) throws(SignalingFailure) -> Bool {
    guard life.state == .connected else { throw failure(.messageFailed) }
    guard abilities.contains(.messages) else { throw failure(.notSupported) }
    for target in message.targets {
      guard let person = people.person(target), person.isPresent else {
        throw SignalingFailure(.userMessageInvalid, "\(target) is not in the room")
      }
    }
    guard let action = actions.begin(.message, call: call, at: now) else {
      throw failure(.messageFailed)
    }
    want(.sendMessage(action, message), at: now, into: &outbox)
    return false
  }

  /// Returns a failure with the usual message for the code.
  func failure(_ code: RoomErrorCode, _ media: MediaID? = nil) -> SignalingFailure {
    SignalingFailure(code, code.meaning, media: media)
  }
}
