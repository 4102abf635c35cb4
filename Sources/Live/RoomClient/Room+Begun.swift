package import Room

// The calls without waiting, for products whose methods return at once.
//
// Immediate refusals are thrown. Later results go to the closure, nil on success; it must return at
// once and not call the room.
extension Room {
  /// Signs in with a token, and requests another one before it expires.
  package func beginSigningIn(
    _ token: RoomToken, _ authenticator: any Authenticator
  ) throws(RoomError) {
    objects.setAuthenticator(authenticator)
    let lifetime = token.lifetimeSeconds.map { $0.multipliedReportingOverflow(by: 1_000) }
    try machine.begin(
      .signedIn(
        token: token.text,
        lifetimeMilliseconds: lifetime.map { $0.overflow ? .max : $0.partialValue })
    ) { _ in }
  }

  /// Joins the room.
  package func beginConnecting(
    roomId: String, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.connect(join(roomId)), answered: answered) }

  /// Leaves the room.
  package func beginDisconnecting() { machine.post(.disconnect) }

  /// Subscribes to a video, or unsubscribes.
  package func beginSubscribing(
    _ isWanted: Bool, videoId: Int, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) {
    let media = try media(videoId)
    let objects = objects
    try machine.begin(isWanted ? .subscribe(media) : .unsubscribe(media)) { error in
      if error == nil { objects.setSubscribed(isWanted, media) }
      answered(error)
    }
  }

  /// Subscribes to several videos, or unsubscribes; a failure is an error of the room.
  package func beginSubscribing(_ isWanted: Bool, videoIds: [Int]) throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try machine.begin(isWanted ? .subscribeAll(media) : .unsubscribeAll(media)) { _ in }
  }

  /// Sends a message to participants; to everyone if none is named.
  package func beginSending(
    _ message: UserMessage, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.sendMessage(message), answered: answered) }

  /// Starts the process that shares a screen.
  package func beginSharing(
    appGroup: String, helper: ScreenShareProgram,
    completion: @escaping @Sendable (ExtensionStatus) -> Void
  ) throws(RoomError) {
    let host = ScreenShareHost(folder: appGroup, helper: helper, room: self, tell: completion)
    let former = objects.share
    objects.setShare(host)
    do throws(RoomError) {
      try machine.begin(.requestScreenShare) { _ in }
    } catch {
      objects.setShare(former)
      throw error
    }
  }

  /// Reports an error to the delegate if no call waits for it.
  package func report(_ error: RoomError) { machine.report(error) }
}
