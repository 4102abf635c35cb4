import AudioSession
import JSEP
import Live
import Media
import Peer
import Room
import SCTP
import SDP
import Stats
import Synchronization
import Wire

/// A room's connection: a peer connection that carries out the room's orders serially, and reports
/// events in the same order.
final class RoomLink: Sendable {
  let connection: PeerConnection
  let role: ConnectionRole
  private let sources: LocalSources
  private let report: @Sendable (RoomConnectionReport) -> Void
  /// Reports streams and errors, which the room's machine does not handle.
  private let tell: @Sendable (RoomNews) -> Void
  private let audio: AudioSession?
  private let reportsStreams: Bool
  private let work: AsyncStream<Work>.Continuation
  private let state = Mutex(State())

  private enum Work: Sendable {
    case order(RoomConnectionOrder)
    case event(PeerConnectionEvent)
    case message(label: String, SignalingFrame)
    case channelClosed(label: String)
  }

  private struct State {
    /// Sent local media, with their transceivers.
    var sending: [(media: LocalMediaID, transceiver: UInt32)] = []
    /// The `mid`s of transceivers that were reported as receiving, by transceiver.
    var receiving: [UInt32: String] = [:]
    var channels: [(label: String, channel: DataChannel)] = []
    /// Muted transceivers, and transceivers without an audio slot.
    var muted: Set<UInt32> = []
    var silenced: Set<UInt32> = []
    /// Whether the local stream was reported, and the remote streams that were reported.
    var hasToldOwn = false
    var streams: [MediaStream] = []
    /// Whether the peer may send audio levels (RFC 6464).
    var hasLevels = false
    /// Layers for sections that no description contains yet.
    var layers: [(mid: String, layers: [SendLayer])] = []
  }

  init(
    session: Session, label: String, role: ConnectionRole, servers: ICEServers,
    base: PeerConfiguration, sources: LocalSources, audio: AudioSession?, reportsStreams: Bool,
    report: @escaping @Sendable (RoomConnectionReport) -> Void,
    tell: @escaping @Sendable (RoomNews) -> Void
  ) {
    (self.audio, self.reportsStreams, self.tell) = (audio, reportsStreams, tell)
    self.role = role
    self.sources = sources
    self.report = report
    let (stream, continuation) = AsyncStream.makeStream(of: Work.self)
    work = continuation
    var configuration = base
    configuration.iceServers = servers.servers + base.iceServers
    if servers.policy == .relay { configuration.iceTransportPolicy = .relay }
    configuration.reportsWithKeyframeDemands = true
    configuration.rampsVolume = true
    // A room has its own time limit, and restarts ICE itself.
    configuration.establishmentTimeoutMilliseconds = 0
    let events = Mutex<AsyncStream<PeerConnectionEvent>?>(nil)
    connection = session.makePeer(label: label, role: role.rawValue, configuration: configuration) {
      connection in
      let stream = connection.events
      events.withLock { $0 = stream }
    }
    if let events = events.withLock({ $0 }) {
      Task {
        for await event in events { continuation.yield(.event(event)) }
        // The connection has ended, no matter which peer closed it.
        continuation.finish()
      }
    }
    Task { await self.run(stream) }
  }

  func post(_ order: RoomConnectionOrder) { work.yield(.order(order)) }

  /// The URI of the header extension for audio levels (RFC 6464).
  private static let levelExtension = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"

  /// Returns the transceiver that sends a local track.
  func transceiver(sending media: LocalMediaID) -> UInt32? {
    state.withLock { state in state.sending.first { $0.media == media }?.transceiver }
  }

  // MARK: Orders

  private func run(_ stream: AsyncStream<Work>) async {
    // Wait for a first call's answer, because only then is the peer in the take.
    _ = try? await connection.transceivers
    report(.opened(peer: connection.number))
    let loudspeaker = openLoudspeaker()
    defer { withExtendedLifetime(loudspeaker) {} }
    for await work in stream {
      switch work {
      case .order(.request(.close)):
        await connection.close()
        return self.work.finish()
      case .order(let order): await carryOut(order)
      case .event(let event): await handle(event)
      case .message(let label, let frame):
        report(.report(.channelMessage(label: label, frame)))
      case .channelClosed(let label): report(.report(.channelClosed(label: label)))
      }
    }
  }

  /// Plays received audio; returns nil if the link only sends, there is no audio session, or the
  /// loudspeaker fails.
  ///
  /// A loudspeaker failure is reported as an error.
  private func openLoudspeaker() -> AudioAttachment? {
    guard let audio, role != .up else { return nil }
    do throws(AudioSessionError) {
      return try audio.openLoudspeaker(connection) { [weak self] in
        self?.isSilenced($0) == false
      }
    } catch {
      tell(.failed(RoomError(.assignFailed, "the loudspeaker cannot be used: \(error)")))
      return nil
    }
  }

  private func carryOut(_ order: RoomConnectionOrder) async {
    do throws(PeerError) {
      switch order {
      case .request(let request): try await carryOut(request)
      case .attach(let info): try await attach(info)
      case .detach(let media): try await detach(media)
      case .limitAudio(let count): try await connection.limitAudioSlots(count)
      case .exemptAudio(let transceiver, let isExempt):
        try await connection.exemptFromAudioSlots(transceiver, isExempt)
      case .setAudible(let transceiver, let isAudible):
        state.withLock { $0.muted.set(transceiver, !isAudible) }
        setEnabled(transceiver)
      case .setSilenced(let transceiver, let isSilenced):
        state.withLock { $0.silenced.set(transceiver, isSilenced) }
        setEnabled(transceiver)
      }
    } catch {
      report(.report(.refused(error)))
    }
  }

  /// Enables or disables a transceiver's playback.
  ///
  /// If the peer sends no audio levels, levels are measured from the decoded audio. Measuring
  /// requires playback, so a voice without a slot then stays enabled and is left out when mixing.
  private func setEnabled(_ transceiver: UInt32) {
    let isEnabled = state.withLock { state in
      !state.muted.contains(transceiver)
        && !(state.hasLevels && state.silenced.contains(transceiver))
    }
    connection.receivedTrack(on: transceiver)?.isEnabled = isEnabled
  }

  /// Returns whether a transceiver's audio is silenced because it has no slot.
  func isSilenced(_ transceiver: UInt32) -> Bool {
    state.withLock { $0.silenced.contains(transceiver) }
  }

  private func carryOut(_ request: ConnectionRequest) async throws(PeerError) {
    switch request {
    case .open, .close: break
    case .makeOffer(let iceRestart):
      try await haveSections()
      let offer = try await connection.createOffer(iceRestart: iceRestart)
      try await setLocal(offer)
      try await reportLocal()
    case .setRemote(let description):
      try await connection.setRemoteDescription(description)
      let hasLevels = description.sdp.contains(RoomLink.levelExtension)
      state.withLock { $0.hasLevels = hasLevels }
      let layers = state.withLock { state in
        defer { state.layers = [] }
        return state.layers
      }
      for (mid, layers) in layers { try await setLayers(layers, of: mid) }
      if description.type == .offer {
        try await setLocal(nil)
        try await reportLocal()
      }
      try await reportReceiving()
    case .addCandidate(let candidate):
      // An invalid candidate does not end the connection: other candidates may work.
      do throws(PeerError) {
        try await connection.addICECandidate(candidate)
      } catch {
        tell(.failed(RoomError(.candidateFailed, error.message)))
      }
    case .setLayers(let mid, let layers): try await setLayers(layers, of: mid)
    case .createChannel(let label, let isOrdered, let retransmits, let id):
      var options = DataChannelInit()
      (options.ordered, options.maxRetransmits, options.id) = (isOrdered, retransmits, id)
      options.negotiated = id != nil
      follow(try await connection.createDataChannel(label, options))
    case .sendOnChannel(let label, let frame):
      let known = state.withLock { state in state.channels.first { $0.label == label }?.channel }
      guard let known else { return }
      switch frame {
      case .text(let text): try await known.send(text)
      case .binary(let bytes): try await known.send(bytes)
      }
    case .getStats(let action):
      report(.report(.stats(action, try await connection.getStats().json)))
    }
  }

  /// Adds receive-only transceivers for an offer if there are no transceivers yet.
  private func haveSections() async throws(PeerError) {
    guard role != .up, try await connection.transceivers.isEmpty else { return }
    for kind in [MediaKind.audio, .video] {
      try await connection.addTransceiver(kind, direction: .recvonly)
    }
  }

  /// Sets the local description, or an implicit one if `offer` is nil; reports a failure as
  /// `localDescriptionFailed`.
  private func setLocal(_ offer: SessionDescription?) async throws(PeerError) {
    do throws(PeerError) {
      if let offer {
        try await connection.setLocalDescription(offer)
      } else {
        try await connection.setLocalDescription()
      }
    } catch {
      tell(.failed(RoomError(.localDescriptionFailed, error.message)))
      throw error
    }
  }

  private func reportLocal() async throws(PeerError) {
    guard let description = try await connection.localDescription else { return }
    let transceivers = try await connection.transceivers
    let places = state.withLock { $0.sending }.compactMap { entry -> LocalMediaPlace? in
      transceivers.first { $0.id == entry.transceiver }?.mid.map {
        LocalMediaPlace(media: entry.media, mid: $0)
      }
    }
    report(.report(.description(description, media: places)))
    guard reportsStreams, !places.isEmpty, !state.withLock({ $0.hasToldOwn }),
      let own = connection.localStreams.first(where: { $0.id == sources.streamID })
    else { return }
    state.withLock { $0.hasToldOwn = true }
    tell(.stream(own, isAdded: true))
  }

  /// Reports receiving transceivers that were just negotiated.
  private func reportReceiving() async throws(PeerError) {
    for info in try await connection.transceivers {
      let receives = info.currentDirection == .recvonly || info.currentDirection == .sendrecv
      if receives { reportReceiving(info) }
    }
  }

  private func reportReceiving(_ info: TransceiverInfo) {
    guard let mid = info.mid else { return }
    let isNews = state.withLock { state in
      defer { state.receiving[info.id] = mid }
      return state.receiving[info.id] != mid
    }
    if isNews { report(.receiving(mid: mid, transceiver: info.id)) }
  }

  // MARK: Local media

  private func attach(_ info: LocalMediaInfo) async throws(PeerError) {
    guard transceiver(sending: info.id) == nil, let track = sources.track(info.id) else { return }
    let transceiver = try await transceiver(for: info, track)
    state.withLock { $0.sending.append((info.id, transceiver)) }
    report(.sending(info.id, transceiver: transceiver))
  }

  /// Returns a transceiver that sends a track: always a new one for simulcast.
  private func transceiver(
    for info: LocalMediaInfo, _ track: any MediaStreamTrack
  ) async throws(PeerError) -> UInt32 {
    let direction = role == .up ? TransceiverDirection.sendonly : .sendrecv
    guard info.layers.count > 1 else {
      let sender = try await connection.addTrack(track, streamIDs: [sources.streamID])
      if role == .up { try await connection.setDirection(direction, of: sender.transceiver) }
      return sender.transceiver
    }
    // The largest layer comes first, as room servers expect; if the server rejects simulcast, only
    // that layer is sent.
    return try await connection.addTransceiver(
      with: track, direction: direction, streamIDs: [sources.streamID],
      sendEncodings: RTPEncoding.halved(info.layers.reversed())
    ).id
  }

  private func detach(_ media: LocalMediaID) async throws(PeerError) {
    guard let transceiver = transceiver(sending: media) else { return }
    state.withLock { state in state.sending.removeAll { $0.media == media } }
    try await connection.removeTrack(transceiver)
  }

  private func setLayers(_ layers: [SendLayer], of mid: String) async throws(PeerError) {
    let known = try await connection.transceivers.first { $0.mid == mid }
    guard let transceiver = known?.id else {
      // The server sends the layers together with the offer that contains their section, so keep
      // the layers until the section exists.
      return state.withLock { $0.layers.append((mid, layers)) }
    }
    var parameters = try await connection.getParameters(of: transceiver)
    for layer in layers {
      // Without simulcast there is only one encoding; apply the first layer to it.
      let named = parameters.encodings.firstIndex { $0.rid == layer.rid }
      let only = parameters.encodings.count == 1 && layer == layers[0] ? 0 : nil
      guard let index = named ?? only else { continue }
      parameters.encodings[index].active = layer.isActive
      parameters.encodings[index].maxBitrate = layer.maximumBitrate
      parameters.encodings[index].maxFramerate = layer.maximumFrameRate
      parameters.encodings[index].scaleResolutionDownBy = layer.scaleResolutionDownBy ?? 1
    }
    try await connection.setParameters(parameters, of: transceiver)
  }

  // MARK: Connection events

  private func handle(_ event: PeerConnectionEvent) async {
    switch event {
    case .iceCandidate(let candidate): report(.report(.candidate(candidate)))
    case .connectionState(let connection):
      report(.report(.state(PeerState(rawValue: connection.rawValue) ?? .new)))
    case .secured: report(.secured)
    case .track(let info): reportReceiving(info)
    case .streamAdded, .streamRemoved: reportStreams()
    case .audioSubscribed(let track) where track.isInbound:
      report(.audioSlot(transceiver: track.transceiver, isHeld: true))
    case .audioUnsubscribed(let track) where track.isInbound:
      report(.audioSlot(transceiver: track.transceiver, isHeld: false))
    case .dataChannel(let channel): follow(channel)
    case .dataChannelState(let channel, .open):
      report(.report(.channelOpened(label: channel.label)))
    default: break
    }
  }

  /// Reports streams that were added or removed, if `reportsStreams` is set.
  private func reportStreams() {
    guard reportsStreams else { return }
    let now = connection.remoteStreams
    let former = state.withLock { state in
      defer { state.streams = now }
      return state.streams
    }
    for stream in former where !now.contains(where: { $0 === stream }) {
      tell(.stream(stream, isAdded: false))
    }
    for stream in now where !former.contains(where: { $0 === stream }) {
      tell(.stream(stream, isAdded: true))
    }
  }

  private func follow(_ channel: DataChannel) {
    let isNew = state.withLock { state in
      guard !state.channels.contains(where: { $0.channel == channel }) else { return false }
      state.channels.append((channel.label, channel))
      return true
    }
    guard isNew else { return }
    if channel.isRemote, channel.readyState == .open {
      report(.report(.channelOpened(label: channel.label)))
    }
    let (work, label) = (work, channel.label)
    Task {
      for await message in channel.messages {
        switch message {
        case .text(let text): work.yield(.message(label: label, .text(text)))
        case .binary(let bytes): work.yield(.message(label: label, .binary(bytes)))
        }
      }
      work.yield(.channelClosed(label: label))
    }
  }
}

extension Set<UInt32> {
  fileprivate mutating func set(_ member: UInt32, _ isIn: Bool) {
    if isIn { insert(member) } else { remove(member) }
  }
}
