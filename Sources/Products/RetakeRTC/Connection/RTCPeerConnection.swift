import Dispatch
public import Foundation
import JSEP
import Live
import Peer
import Synchronization

/// A connection with the methods of the Objective-C class, over a `PeerConnection`.
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

  /// Receives the events of the connection; held weakly.
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
  /// A copy of the configuration, with later changes.
  public var configuration: RTCConfiguration {
    RTCConfiguration(copying: state.withLock { $0.values })
  }

  /// Sets other servers and another policy for the next gathering: after an ICE restart, or the
  /// first one.
  /// - Returns: false when something changed that cannot change any more, or the configuration is
  ///   not supported.
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

  /// Sets the bitrate limits of all video in bits per second, and the current estimate; nil leaves
  /// a value unchanged.
  /// - Returns: false when the values are not in this order, or negative.
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

  /// The pending or else current local description with the candidates gathered so far.
  public var localDescription: RTCSessionDescription? { description(.localDescription) }
  /// The pending or else current remote description.
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
  /// Whether both are the same object.
  public static func == (left: RTCPeerConnection, right: RTCPeerConnection) -> Bool {
    left === right
  }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
