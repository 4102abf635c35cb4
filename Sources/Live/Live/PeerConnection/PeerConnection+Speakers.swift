public import Peer

// Audio levels and slots. Speech and dominant speakers are reported by `PeerConnectionEvent`.
extension PeerConnection {
  /// The level of each audio track over the last 100 ms, sent and received, and of the voices in
  /// them whose level a mixer reported.
  public var audioLevels: [TrackLevel] { observers.audioLevels }

  /// The levels of the received tracks with an audio slot, in the order of the slots: a track that
  /// is missing has no slot, one at 0 is silent.
  ///
  /// Empty before `limitAudioSlots`.
  public var occupantLevels: [TrackLevel] { observers.occupantLevels }

  /// Limits the received tracks that are played at once: a speaker takes a free slot, or that of
  /// the track silent for longest.
  ///
  /// Nil disables slots. Changes are reported by `PeerConnectionEvent.audioSubscribed` and
  /// `audioUnsubscribed`.
  public func limitAudioSlots(_ count: Int? = 4) async throws(PeerError) {
    try await perform(.limitAudioSlots(count))
  }

  /// Sets whether a transceiver's audio is played without a slot.
  public func exemptFromAudioSlots(_ transceiver: UInt32, _ isExempt: Bool = true)
    async throws(PeerError)
  {
    try await perform(.exemptFromAudioSlots(transceiver: transceiver, isExempt))
  }

  /// Starts reporting the loudest tracks by `PeerConnectionEvent.loudestSpeakers`; nil stops.
  public func observeLoudest(_ settings: LoudestSettings?) async throws(PeerError) {
    try await perform(.observeLoudest(settings))
  }

  /// W3C getSynchronizationSources and getContributingSources of a receiver.
  public func sources(of transceiver: UInt32) async throws(PeerError) -> ReceivedSources {
    guard case .sources(let sources) = try await perform(.sources(transceiver: transceiver)) else {
      throw PeerError(name: "OperationError", message: "there are no sources")
    }
    return sources
  }
}
