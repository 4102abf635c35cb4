import Dispatch
public import Foundation
import JSEP
import Live
import Peer
import Synchronization

/// A connection with the methods of the Objective-C class, over a `PeerConnection`.
///
/// Methods that return at once in Objective-C block here until the stack has made the step; they
/// may be called from delegates. Releasing the object closes the connection.
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

  /// Who is told what happens; it is not kept alive.
  public var delegate: (any RTCPeerConnectionDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }

  /// The state of the offer/answer exchange.
  public var signalingState: RTCSignalingState { RTCSignalingState(connection.signalingState) }
  /// The state of the checks of candidate pairs.
  public var iceConnectionState: RTCIceConnectionState {
    RTCIceConnectionState(connection.iceConnectionState)
  }
  /// The state of ICE and DTLS together.
  public var connectionState: RTCPeerConnectionState {
    RTCPeerConnectionState(connection.connectionState)
  }
  /// The state of the gathering of candidates.
  public var iceGatheringState: RTCIceGatheringState {
    RTCIceGatheringState(connection.iceGatheringState)
  }
  /// A copy of what the connection was made with, and changed to since.
  public var configuration: RTCConfiguration {
    RTCConfiguration(copying: state.withLock { $0.values })
  }

  /// Uses other servers and another policy from the next gathering on: after an ICE restart, or for
  /// the first one.
  ///
  /// - Returns: false when something was changed that cannot change any more, or asks for what
  ///   cannot be had.
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

  /// Sets what all video may spend, in bits per second, and what the path is taken to carry now;
  /// nil leaves a value as it is.
  ///
  /// - Returns: false when the values are not in this order, or below 0.
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
  /// The pending or else current description of the peer.
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

  /// Asks that the next offer restarts ICE.
  public func restartIce() { _ = try? connection.performAndWait(.restartICE) }

  /// Ends all media and closes the transports; the delegate hears of the closed states.
  public func close() {
    connection.closeAndWait()
    endTransceivers()
  }

  /// Lets tracks that the application still holds forget the connection.
  private func endTransceivers() {
    for transceiver in state.withLock({ Array($0.transceivers.values) }) {
      transceiver.connectionEnded()
    }
    factory.lines?.end(connection)
  }

  /// Calls a closure on the factory's queue, behind everything that was told before.
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
