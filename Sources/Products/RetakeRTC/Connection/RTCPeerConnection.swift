import Dispatch
public import Foundation
import JSEP
import Live
import Peer
import Synchronization
import Wire

/// A connection that has the methods of the Objective-C class and wraps a `PeerConnection`.
///
/// Methods that return at once in Objective-C block here until the stack has completed the step;
/// they may be called from delegates. Releasing the object closes the connection.
public final class RTCPeerConnection: Sendable {
  struct State {
    var delegate: WeakDelegate<any RTCPeerConnectionDelegate>
    var transceivers: [UInt32: RTCRtpTransceiver] = [:]
    var localStreams: [RTCMediaStream] = []
    var remoteStreams: [RTCMediaStream] = []
    var channels: [UInt32: RTCDataChannel] = [:]
    var values: RTCConfiguration.Values
  }

  let connection: PeerConnection
  let factory: RTCPeerConnectionFactory
  let state: Mutex<State>

  init(
    _ connection: PeerConnection, factory: RTCPeerConnectionFactory,
    configuration: RTCConfiguration.Values, delegate: (any RTCPeerConnectionDelegate)?
  ) {
    self.connection = connection
    self.factory = factory
    state = Mutex(
      State(delegate: WeakDelegate { [weak delegate] in delegate }, values: configuration))
    connection.listen { [weak self] news in self?.receive(news) }
  }

  deinit {
    connection.perform(.close) { _ in }
    endTransceivers()
  }

  // MARK: State

  /// Receives the connection's events; held weakly.
  public var delegate: (any RTCPeerConnectionDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }

  /// The state of the offer/answer exchange.
  public var signalingState: RTCSignalingState { RTCSignalingState(connection.signalingState) }
  /// The state of the connectivity checks.
  public var iceConnectionState: RTCIceConnectionState {
    RTCIceConnectionState(connection.iceConnectionState)
  }
  /// The combined state of ICE and DTLS.
  public var connectionState: RTCPeerConnectionState {
    RTCPeerConnectionState(connection.connectionState)
  }
  /// The state of candidate gathering.
  public var iceGatheringState: RTCIceGatheringState {
    RTCIceGatheringState(connection.iceGatheringState)
  }
  /// A copy of the configuration, with the changes made by `setConfiguration`.
  public var configuration: RTCConfiguration {
    RTCConfiguration(copying: state.withLock { $0.values })
  }

  /// Sets new servers and a new transport policy, which apply the next time that candidates are
  /// gathered: initially, or after an ICE restart.
  /// - Returns: false if any other setting would change, if the configuration is not supported, or
  ///   if the connection is closed.
  public func setConfiguration(_ configuration: RTCConfiguration) -> Bool {
    let (new, old) = (configuration.values, state.withLock { $0.values })
    guard new.changesServersAlone(from: old), let native = configuration.native else {
      return false
    }
    let call = PeerCall.setConfiguration(
      iceServers: native.iceServers, iceTransportPolicy: native.iceTransportPolicy)
    guard (try? connection.performAndWait(call)) != nil else { return false }
    state.withLock { $0.values = new }
    return true
  }

  /// Sets the bitrate limits for all video in bits per second, and the current estimate; nil leaves
  /// a value unchanged.
  /// - Returns: false if the values are not in ascending order or are negative, or if the
  ///   connection is closed.
  public func setBweMinBitrateBps(
    _ minBitrateBps: NSNumber?, currentBitrateBps: NSNumber?, maxBitrateBps: NSNumber?
  ) -> Bool {
    let all = [minBitrateBps, currentBitrateBps, maxBitrateBps]
    let given = all.compactMap(\.self)
    guard given.allSatisfy({ $0.int64Value >= 0 }) else { return false }
    let call = PeerCall.limitBitrate(
      minimum: minBitrateBps?.uint64Value, current: currentBitrateBps?.uint64Value,
      maximum: maxBitrateBps?.uint64Value)
    return (try? connection.performAndWait(call)) != nil
  }

  /// The pending local description, or else the current one, with the candidates gathered so far.
  public var localDescription: RTCSessionDescription? { description(.localDescription) }
  /// The pending remote description, or else the current one.
  public var remoteDescription: RTCSessionDescription? {
    description(.readDescription(.remote))
  }

  private func description(_ call: PeerCall) -> RTCSessionDescription? {
    guard case .description(let description) = try? connection.performAndWait(call) else {
      return nil
    }
    return RTCSessionDescription(description)
  }

  // MARK: Control

  /// Makes the next offer restart ICE.
  public func restartIce() { _ = try? connection.performAndWait(.restartICE) }

  /// Stops all media and closes the transports; the delegate is notified of the closed states.
  public func close() {
    connection.closeAndWait()
    endTransceivers()
  }

  /// Detaches the tracks that the application still holds from the connection.
  private func endTransceivers() {
    for transceiver in state.withLock({ Array($0.transceivers.values) }) {
      transceiver.connectionEnded()
    }
    factory.lines?.end(connection)
  }

  /// Calls a closure on the factory's queue, after all earlier events.
  func callBack(_ body: @escaping @Sendable () -> Void) { factory.queue.async(execute: body) }
}

extension RTCPeerConnection: Hashable {
  /// Returns whether both are the same object.
  public static func == (left: RTCPeerConnection, right: RTCPeerConnection) -> Bool {
    left === right
  }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: - Tracks

// Tracks, transceivers, and the stream API that preceded them.
extension RTCPeerConnection {
  // MARK: Transceivers

  /// The transceivers in order of creation; each is the same object every time.
  public var transceivers: [RTCRtpTransceiver] { infos.map { transceiver($0) } }
  /// The transceivers' senders.
  public var senders: [RTCRtpSender] { transceivers.map(\.sender) }
  /// The transceivers' receivers.
  public var receivers: [RTCRtpReceiver] { transceivers.map(\.receiver) }

  /// Adds a transceiver that sends a track and receives; returns nil if the connection is closed,
  /// or for a remote track.
  @discardableResult
  public func addTransceiver(with track: RTCMediaStreamTrack) -> RTCRtpTransceiver? {
    addTransceiver(with: track, init: RTCRtpTransceiverInit())
  }

  /// Adds a transceiver that sends a track; returns nil if the connection is closed, or for a
  /// remote track.
  @discardableResult
  public func addTransceiver(
    with track: RTCMediaStreamTrack, init: RTCRtpTransceiverInit
  ) -> RTCRtpTransceiver? {
    guard track.core.source != nil else { return nil }
    let made = addTransceiver(track.core.kind, `init`, track.core)
    made?.sender.attach(track)
    return made
  }

  /// Adds a transceiver without a track; returns nil if the connection is closed, or for a media
  /// type that no transceiver carries.
  @discardableResult
  public func addTransceiver(of mediaType: RTCRtpMediaType) -> RTCRtpTransceiver? {
    addTransceiver(of: mediaType, init: RTCRtpTransceiverInit())
  }

  /// Adds a transceiver without a track; returns nil if the connection is closed, or for a media
  /// type that no transceiver carries.
  @discardableResult
  public func addTransceiver(
    of mediaType: RTCRtpMediaType, init: RTCRtpTransceiverInit
  ) -> RTCRtpTransceiver? {
    mediaType.native.flatMap { addTransceiver($0, `init`, nil) }
  }

  private func addTransceiver(
    _ kind: MediaKind, _ options: RTCRtpTransceiverInit, _ track: TrackCore?
  ) -> RTCRtpTransceiver? {
    let encodings = options.sendEncodings.map(\.native)
    let call = PeerCall.addTransceiver(
      kind: kind, direction: options.direction.native, streamIDs: options.streamIds,
      source: track?.source, sendEncodings: encodings.isEmpty ? nil : encodings,
      isEnabled: track?.initiallyEnabled)
    guard case .transceiver(let info) = try? connection.performAndWait(call) else { return nil }
    return transceiver(info)
  }

  // MARK: Tracks

  /// Sends a track, on an unused transceiver or a new one; returns nil if the track is already sent
  /// or is remote, or if the connection is closed.
  @discardableResult
  public func add(
    _ track: RTCMediaStreamTrack, streamIds: [String]
  ) -> RTCRtpSender? {
    guard let source = track.core.source, !track.core.isSent(by: connection) else { return nil }
    let call = PeerCall.addTrack(
      kind: track.core.kind, streamIDs: streamIds, source: source, trackID: track.trackId,
      isEnabled: track.core.initiallyEnabled)
    guard case .transceiver(let info) = try? connection.performAndWait(call) else { return nil }
    let sender = transceiver(info).sender
    sender.attach(track)
    return sender
  }

  /// Stops sending a track; needs negotiation.
  /// - Returns: false if the sender belongs to another connection or the connection is closed.
  @discardableResult
  public func removeTrack(_ sender: RTCRtpSender) -> Bool {
    guard senders.contains(sender) else { return false }
    return end(sender)
  }

  private func end(_ sender: RTCRtpSender) -> Bool {
    let call = PeerCall.removeTrack(transceiver: sender.transceiver)
    guard (try? connection.performAndWait(call)) != nil else { return false }
    sender.attach(nil)
    return true
  }

  // MARK: Streams

  /// The local streams that have been added.
  public var localStreams: [RTCMediaStream] { state.withLock { $0.localStreams } }

  /// Sends all tracks of a stream, or none if one of them cannot be sent.
  ///
  /// Tracks added to the stream later are sent too, and removed tracks are no longer sent.
  public func add(_ stream: RTCMediaStream) {
    let tracks = stream.localTracks
    let described = tracks.compactMap { track in
      track.core.source.map {
        MediaStreamInit.Track(
          id: track.trackId, kind: track.core.kind, source: $0,
          isEnabled: track.core.initiallyEnabled)
      }
    }
    // A remote track has no source that could be sent.
    guard described.count == tracks.count else { return }
    let call = PeerCall.addStream(MediaStreamInit(id: stream.streamId, tracks: described))
    if !tracks.isEmpty {
      guard case .streams(let streams) = try? connection.performAndWait(call),
        let added = streams.local.first(where: { $0.id == stream.streamId })
      else { return }
      for track in tracks {
        guard let carrier = added.tracks.first(where: { $0.id == track.trackId })?.transceiver
        else { continue }
        transceiver(carrier)?.sender.attach(track)
      }
    }
    state.withLock { $0.localStreams.append(stream) }
    stream.follow(self)
  }

  /// Stops sending a stream's tracks.
  public func remove(_ stream: RTCMediaStream) {
    state.withLock { state in state.localStreams.removeAll { $0 === stream } }
    stream.leave(self)
    guard (try? connection.performAndWait(.removeStream(stream.streamId))) != nil else { return }
    for track in stream.localTracks {
      for sender in known where sender.track === track { sender.attach(nil) }
    }
  }

  /// Sends a track that was added to one of this connection's streams.
  func stream(_ stream: RTCMediaStream, got track: RTCMediaStreamTrack) {
    add(track, streamIds: [stream.streamId])
  }

  /// Stops sending a track that was removed from one of this connection's streams.
  func stream(_ stream: RTCMediaStream, lost track: RTCMediaStreamTrack) {
    for sender in known where sender.track === track { _ = end(sender) }
  }

  private var known: [RTCRtpSender] {
    state.withLock { $0.transceivers.values.map(\.sender) }
  }

  // MARK: Objects

  var infos: [TransceiverInfo] { connection.infos }

  /// Returns the object for a transceiver, creating it if it is new.
  func transceiver(_ info: TransceiverInfo) -> RTCRtpTransceiver {
    state.withLock { state in
      if let known = state.transceivers[info.id] { return known }
      let made = RTCRtpTransceiver(info, of: connection)
      state.transceivers[info.id] = made
      return made
    }
  }

  /// Returns the object for a transceiver by its number; nil if there is none.
  func transceiver(_ number: UInt32) -> RTCRtpTransceiver? {
    if let known = state.withLock({ $0.transceivers[number] }) { return known }
    return infos.first { $0.id == number }.map { transceiver($0) }
  }
}
