package import Room

// The same calls for who cannot wait: products whose methods return at once.
//
// What the room refuses at once is thrown. Whatever else comes of a call goes to the closure, nil
// when it is done; it must return at once and not call the room.
extension Room {
  /// Uses a token, and asks for another one before it ends.
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

  /// Enters the room.
  package func beginConnecting(
    roomId: String, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.connect(join(roomId)), answered: answered) }

  /// Leaves the room.
  package func beginDisconnecting() { machine.post(.disconnect) }

  /// Subscribes to a video, or no longer.
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

  /// Subscribes to several videos, or no longer; what goes wrong with one is an error of the room.
  package func beginSubscribing(_ isWanted: Bool, videoIds: [Int]) throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try machine.begin(isWanted ? .subscribeAll(media) : .unsubscribeAll(media)) { _ in }
  }

  /// Sends a message to participants; to everyone when none is named.
  package func beginSending(
    _ message: UserMessage, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.sendMessage(message), answered: answered) }

  /// Asks for the process that shares a screen.
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

  /// Reports an error to the delegate, where it belongs to no call that somebody waits for.
  package func report(_ error: RoomError) { machine.report(error) }
}
