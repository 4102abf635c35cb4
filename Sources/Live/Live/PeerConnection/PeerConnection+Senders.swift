import Dispatch
import ICE
public import JSEP
public import Media
public import Peer
public import SCTP
public import SDP
import Secure
import Synchronization
import Wire

// Senders, streams, and the descriptions besides `localDescription`.
extension PeerConnection {
  // MARK: Senders

  /// Returns a sender's parameters (W3C RTCRtpSender.getParameters); to change them, edit the
  /// encodings and pass the result to `setParameters`.
  public func getParameters(of transceiver: UInt32) async throws(PeerError) -> RTPSendParameters {
    let reply = try await perform(.getParameters(transceiver: transceiver))
    guard case .parameters(let parameters) = reply else {
      throw PeerError(name: "OperationError", message: "no parameters were returned")
    }
    return parameters
  }

  /// Changes a sender's parameters without negotiation (W3C RTCRtpSender.setParameters).
  /// - Throws: `InvalidStateError` if the parameters were not read first or have been set since,
  ///   `InvalidModificationError` if something besides the encodings was changed, `RangeError` for
  ///   invalid values.
  public func setParameters(_ parameters: RTPSendParameters, of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setParameters(transceiver: transceiver, parameters))
  }

  /// Sets a sent track's streams (W3C RTCRtpSender.setStreams); needs negotiation.
  public func setStreams(_ streamIDs: [String], of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setStreams(transceiver: transceiver, streamIDs))
  }

  /// Sets the codecs to negotiate in order of preference; an empty list restores the defaults (W3C
  /// RTCRtpTransceiver.setCodecPreferences).
  /// - Throws: `InvalidModificationError` for codecs that are not in `RTPCodec.capabilities`, or if
  ///   none of them carries media.
  public func setCodecPreferences(_ codecs: [RTPCodec], of transceiver: UInt32)
    async throws(PeerError)
  {
    try await perform(.setCodecPreferences(transceiver: transceiver, codecs))
  }

  /// Replaces a transceiver's source without negotiation (W3C replaceTrack); nil sends nothing.
  public func replaceTrack(_ transceiver: UInt32, with source: MediaSource?)
    async throws(PeerError)
  {
    try await perform(.replaceSource(transceiver: transceiver, source))
  }

  /// Sends telephone keys instead of a sender's audio, replacing keys that have not been sent yet
  /// (W3C RTCDTMFSender.insertDTMF, RFC 4733).
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, which pause for two seconds; empty to
  ///     stop.
  ///   - duration: how long each key is pressed, in milliseconds: 40 to 6000.
  ///   - gap: the pause between two keys, in milliseconds: 30 to 6000.
  /// - Throws: `InvalidCharacterError` for other keys; `InvalidStateError` if no audio is sent, or
  ///   the peer does not accept telephone events.
  public func insertDTMF(
    _ tones: String, duration: UInt32 = 100, gap: UInt32 = 70, into transceiver: UInt32
  ) async throws(PeerError) {
    try await perform(
      .insertDTMF(transceiver: transceiver, tones: tones, duration: duration, gap: gap))
  }

  // MARK: Streams

  /// Sends all tracks of a stream, or none of them if it throws (an API that predates
  /// transceivers).
  /// - Throws: `DuplicateIDError` if the identifier of the stream or of one of its tracks is
  ///   already in use.
  @discardableResult
  public func addStream(_ stream: MediaStreamInit) async throws(PeerError) -> MediaStreams {
    guard case .streams(let streams) = try await perform(.addStream(stream)) else {
      return MediaStreams()
    }
    return streams
  }

  /// Stops sending a stream's tracks, except for tracks that are also in other streams.
  public func removeStream(_ id: String) async throws(PeerError) {
    try await perform(.removeStream(id))
  }

  /// The sent and received streams.
  public var streams: MediaStreams {
    get async throws(PeerError) {
      guard case .streams(let streams) = try await perform(.streams) else { return MediaStreams() }
      return streams
    }
  }

  // MARK: Descriptions

  /// Returns a description from the current or last exchange; nil if there is none.
  public func description(_ slot: DescriptionSlot) async throws(PeerError) -> SessionDescription? {
    guard case .description(let description) = try await perform(.readDescription(slot)) else {
      return nil
    }
    return description
  }

  /// The peer's pending description, or else its current one (W3C remoteDescription).
  public var remoteDescription: SessionDescription? {
    get async throws(PeerError) { try await description(.remote) }
  }

  /// Whether the peer supports trickle ICE, in which case a description may be sent before all
  /// candidates are known; nil without a remote description (W3C canTrickleIceCandidates).
  public var canTrickleICECandidates: Bool? {
    get async throws(PeerError) {
      guard let text = try await remoteDescription?.sdp else { return nil }
      return try? SDPDocument(parsing: text).trickles
    }
  }
}

// MARK: - Data

// A connection's data channels.
extension PeerConnection {
  /// Creates a data channel (W3C createDataChannel); the first one needs negotiation.
  ///
  /// A channel created before the connection is established opens once it is established; use
  /// `waitUntilOpen`.
  /// - Throws: `InvalidStateError` on a closed connection, `TypeError` for contradictory options,
  ///   `OperationError` if the stream is in use or none is free.
  public func createDataChannel(_ label: String, _ options: DataChannelInit = DataChannelInit())
    async throws(PeerError) -> DataChannel
  {
    var options = options
    options.label = label
    guard case .dataChannel(let info) = try await perform(.createDataChannel(options)),
      let channel = dataChannel(info.number)
    else {
      throw PeerError(name: "OperationError", message: "the data channel was closed at once")
    }
    return channel
  }

  /// All channels that are not closed, whichever peer created them, oldest first.
  public var dataChannels: [DataChannel] { observers.channels }

  /// Returns a channel by its number; nil if it is closed.
  func dataChannel(_ number: UInt32) -> DataChannel? { observers.channel(number) }

  /// Calls a closure with every channel that the peer creates (W3C ondatachannel), existing
  /// channels first.
  ///
  /// Ends when the connection is closed.
  public func forEachRemoteDataChannel(
    _ body: @escaping @Sendable (DataChannel) async -> Void
  ) async {
    let events = events
    await withTaskGroup { group in
      var known: Set<UInt32> = []
      for channel in dataChannels where channel.isRemote {
        known.insert(channel.number)
        group.addTask { await body(channel) }
      }
      for await event in events {
        guard case .dataChannel(let channel) = event, known.insert(channel.number).inserted else {
          continue
        }
        group.addTask { await body(channel) }
      }
    }
  }
}

// MARK: - Speakers

// Audio levels and slots. `PeerConnectionEvent` reports speech and dominant speakers.
extension PeerConnection {
  /// Each audio track's level over the last 100 ms, sent and received, and the levels of the voices
  /// in the track if a mixer reports them.
  public var audioLevels: [TrackLevel] { observers.audioLevels }

  /// The levels of received tracks with an audio slot, in the order in which they got their slots.
  ///
  /// A track that is missing has no slot; a track whose `level` is 0 is silent.
  ///
  /// Empty before `limitAudioSlots`.
  public var occupantLevels: [TrackLevel] { observers.occupantLevels }

  /// Limits how many received tracks are played at once: a speaker gets a free slot, or the slot of
  /// the track that has been silent longest.
  ///
  /// A nil `count` disables slots. `PeerConnectionEvent.audioSubscribed` and `audioUnsubscribed`
  /// report changes.
  public func limitAudioSlots(_ count: Int? = 4) async throws(PeerError) {
    try await perform(.limitAudioSlots(count))
  }

  /// Sets whether a transceiver's audio plays without needing a slot.
  public func exemptFromAudioSlots(_ transceiver: UInt32, _ isExempt: Bool = true)
    async throws(PeerError)
  {
    try await perform(.exemptFromAudioSlots(transceiver: transceiver, isExempt))
  }

  /// Starts reporting the loudest tracks by `PeerConnectionEvent.loudestSpeakers`; nil stops.
  public func observeLoudest(_ settings: LoudestSettings?) async throws(PeerError) {
    try await perform(.observeLoudest(settings))
  }

  /// Returns a receiver's synchronization and contributing sources (W3C getSynchronizationSources
  /// and getContributingSources).
  public func sources(of transceiver: UInt32) async throws(PeerError) -> ReceivedSources {
    guard case .sources(let sources) = try await perform(.sources(transceiver: transceiver)) else {
      throw PeerError(name: "OperationError", message: "there are no sources")
    }
    return sources
  }
}

// MARK: - Blocking calls

/// An event or a message, as passed to a connection's listeners.
package enum PeerConnectionNews: Sendable {
  /// An event, as in the event streams.
  case event(PeerConnectionEvent)
  /// A data channel's message; while there is a listener, none waits in `DataChannel.messages`.
  case message(DataChannel, DataChannelMessage)
}

// Calls that block, and calls whose replies and events go to closures, for interfaces whose methods
// do not await.
//
// All closures run on the loop's thread and must not block.
extension PeerConnection {
  /// Makes a call and blocks the calling thread until the reply.
  ///
  /// The loop's thread never waits for the caller, so the wait ends. Closures that run on the
  /// loop's thread must not call this: the loop would wait for itself.
  /// - Parameter replied: runs on the loop's thread before any effect of later steps.
  @discardableResult
  package func performAndWait(
    _ call: PeerCall, replied: @escaping @Sendable (PeerReply) -> Void = { _ in }
  ) throws(PeerError) -> PeerReply {
    let answer = BlockingReply()
    perform(call) { reply in
      replied(reply)
      answer.complete(reply)
    }
    let reply = answer.wait()
    if case .failure(let error) = reply { throw error }
    return reply
  }

  /// Makes a call; passes its reply to `complete` after all other outputs of the call's step.
  package func perform(_ call: PeerCall, complete: @escaping @Sendable (PeerReply) -> Void) {
    if !loop.mailbox.post(.call(key, call, complete)) { complete(.failure(.ended)) }
  }

  /// Sends a message; the reply is delayed while much is buffered.
  package func send(_ message: DataMessage, complete: @escaping @Sendable (PeerReply) -> Void) {
    if !loop.mailbox.post(.send(key, message, complete)) { complete(.failure(.ended)) }
  }

  /// Returns a closed connection without a loop: all its calls fail.
  package static var ended: PeerConnection {
    let observers = PeerObservers()
    for (machine, state) in [
      ("signaling", SignalingState.closed.rawValue),
      ("ice-connection", ICEConnectionState.closed.rawValue),
      ("connection", ConnectionState.closed.rawValue),
    ] {
      observers.observe(
        .state(StateTransition(machine: machine, from: "new", to: state)), at: .zero)
    }
    observers.finish()
    return PeerConnection(
      label: "", number: 0, loop: MediaLoop(mailbox: .closed), key: 0, observers: observers)
  }

  /// Closes the connection like `close`, and blocks until that is done.
  package func closeAndWait() {
    _ = try? performAndWait(.close)
    observers.finish()
  }

  /// Calls a closure with every event and message until the connection is closed; listeners added
  /// earlier are called first.
  package func listen(_ listener: @escaping @Sendable (PeerConnectionNews) -> Void) {
    observers.listen(listener)
  }
}

/// Passes a reply from one thread to another, which waits for it.
private final class BlockingReply: Sendable {
  private let reply = Mutex<PeerReply?>(nil)
  private let isGiven = DispatchSemaphore(value: 0)

  func complete(_ reply: PeerReply) {
    self.reply.withLock { $0 = reply }
    isGiven.signal()
  }

  func wait() -> PeerReply {
    isGiven.wait()
    return reply.withLock { $0 } ?? .failure(.ended)
  }
}
