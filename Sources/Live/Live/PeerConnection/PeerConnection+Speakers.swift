public import Peer

// Who is heard and how loud. Who speaks and who dominates is told by `PeerConnectionEvent`.
extension PeerConnection {
  /// How loud each track of audio was in the last 100 ms, sent ones and heard ones, and the voices
  /// in them of which a mixer told the level.
  public var audioLevels: [TrackLevel] { observers.audioLevels }

  /// The levels of the received tracks that hold an audio slot, in the order of the slots: who is
  /// not here is not an occupant, and an occupant at 0 is silent.
  ///
  /// Empty before `limitAudioSlots`.
  public var occupantLevels: [TrackLevel] { observers.occupantLevels }

  /// Lets only so many received tracks be occupants at once: who speaks takes a free slot, or that
  /// of the occupant that has been silent longest.
  ///
  /// Nil takes all slots away. Changes are told by `PeerConnectionEvent.audioSubscribed` and
  /// `audioUnsubscribed`.
  public func limitAudioSlots(_ count: Int? = 4) async throws(PeerError) {
    try await perform(.limitAudioSlots(count))
  }

  /// Lets what a transceiver receives be heard without a slot, or no longer: it takes none from the
  /// others.
  public func exemptFromAudioSlots(_ transceiver: UInt32, _ isExempt: Bool = true)
    async throws(PeerError)
  {
    try await perform(.exemptFromAudioSlots(transceiver: transceiver, isExempt))
  }

  /// Has the loudest tracks told from now on, by `PeerConnectionEvent.loudestSpeakers`; nil ends
  /// that.
  public func observeLoudest(_ settings: LoudestSettings?) async throws(PeerError) {
    try await perform(.observeLoudest(settings))
  }

  /// W3C getSynchronizationSources and getContributingSources of a transceiver's receiver.
  public func sources(of transceiver: UInt32) async throws(PeerError) -> ReceivedSources {
    guard case .sources(let sources) = try await perform(.sources(transceiver: transceiver)) else {
      throw PeerError(name: "OperationError", message: "there are no sources")
    }
    return sources
  }
}
