import JSEP
import Live
import Peer
import SDP
import Wire

// Descriptions and candidates, with completion handlers and async.
extension RTCPeerConnection {
  /// Creates an offer.
  ///
  /// If `OfferToReceiveAudio` or `OfferToReceiveVideo` is true, a receiving transceiver of that
  /// kind is added unless there is one; if it is false, all transceivers of that kind stop
  /// receiving (webrtc-pc section 4.4.3.2). `IceRestart` restarts ICE.
  public func offer(
    for constraints: RTCMediaConstraints,
    completionHandler: @escaping (RTCSessionDescription?, (any Error)?) -> Void
  ) {
    receive(.audio, constraints.wants(kRTCMediaConstraintsOfferToReceiveAudio))
    receive(.video, constraints.wants(kRTCMediaConstraintsOfferToReceiveVideo))
    let restarts = constraints.wants(kRTCMediaConstraintsIceRestart) == true
    describe(.createOffer(iceRestart: restarts), completionHandler)
  }

  /// Creates an answer to the peer's offer.
  public func answer(
    for constraints: RTCMediaConstraints,
    completionHandler: @escaping (RTCSessionDescription?, (any Error)?) -> Void
  ) {
    describe(.createAnswer, completionHandler)
  }

  /// Applies a local description and starts gathering.
  public func setLocalDescription(
    _ sdp: RTCSessionDescription, completionHandler: @escaping ((any Error)?) -> Void
  ) {
    let told = Handed(completionHandler)
    apply(.setLocalDescription(sdp.native)) { [connection] error in
      if error == nil { connection.record(sdp.native, isInbound: false) }
      told.value(error)
    }
  }

  /// Creates the offer or answer that the signaling state requires, and applies it.
  public func setLocalDescription(
    completionHandler: @escaping ((any Error)?) -> Void
  ) {
    let told = Handed(completionHandler)
    apply(.setLocalDescription(nil)) { [connection, factory] error in
      guard error == nil else { return told.value(error) }
      connection.perform(.localDescription) { reply in
        if case .description(let made) = reply { connection.record(made, isInbound: false) }
        factory.queue.async { told.value(nil) }
      }
    }
  }

  /// Applies a remote description.
  public func setRemoteDescription(
    _ sdp: RTCSessionDescription, completionHandler: @escaping ((any Error)?) -> Void
  ) {
    connection.record(sdp.native, isInbound: true)
    apply(.setRemoteDescription(sdp.native), completionHandler)
  }

  /// Adds a remote candidate.
  public func add(
    _ candidate: RTCIceCandidate, completionHandler: @escaping ((any Error)?) -> Void
  ) {
    connection.record(candidate, isInbound: true)
    apply(.addICECandidate(candidate.native), completionHandler)
  }

  /// Adds a remote candidate; silently ignores a candidate that is rejected.
  public func add(_ candidate: RTCIceCandidate) {
    connection.record(candidate, isInbound: true)
    _ = try? connection.performAndWait(.addICECandidate(candidate.native))
  }

  /// Removes remote candidates; pairs in use continue.
  public func remove(_ candidates: [RTCIceCandidate]) {
    _ = try? connection.performAndWait(.removeICECandidates(candidates.map(\.native)))
  }

  // MARK: Async

  /// Creates an offer, as the method with a completion handler does.
  public func offer(for constraints: RTCMediaConstraints) async throws -> RTCSessionDescription {
    try await withCheckedThrowingContinuation { continuation in
      offer(for: constraints) { continuation.resume(with: Self.result($0, $1)) }
    }
  }

  /// Creates an answer to the peer's offer, as the method with a completion handler does.
  public func answer(for constraints: RTCMediaConstraints) async throws -> RTCSessionDescription {
    try await withCheckedThrowingContinuation { continuation in
      answer(for: constraints) { continuation.resume(with: Self.result($0, $1)) }
    }
  }

  /// Applies a local description and starts gathering.
  public func setLocalDescription(_ sdp: RTCSessionDescription) async throws {
    try await done { setLocalDescription(sdp, completionHandler: $0) }
  }

  /// Creates the offer or answer that the signaling state requires, and applies it.
  public func setLocalDescription() async throws {
    try await done { setLocalDescription(completionHandler: $0) }
  }

  /// Applies a remote description.
  public func setRemoteDescription(_ sdp: RTCSessionDescription) async throws {
    try await done { setRemoteDescription(sdp, completionHandler: $0) }
  }

  /// Adds a remote candidate.
  public func add(_ candidate: RTCIceCandidate) async throws {
    try await done { add(candidate, completionHandler: $0) }
  }

  private func done(
    _ begin: (@escaping ((any Error)?) -> Void) -> Void
  ) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, _>) in
      begin { error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
      }
    }
  }

  private static func result(
    _ description: RTCSessionDescription?, _ error: (any Error)?
  ) -> Result<RTCSessionDescription, any Error> {
    if let description { return .success(description) }
    return .failure(error ?? RTCPeerConnectionError(.noDescription))
  }

  // MARK: Calls

  private func describe(
    _ call: PeerCall,
    _ completionHandler: @escaping (RTCSessionDescription?, (any Error)?) -> Void
  ) {
    let told = Handed(completionHandler)
    connection.perform(call) { [factory] reply in
      factory.queue.async {
        if case .description(let description) = reply {
          told.value(RTCSessionDescription(description), nil)
        } else {
          told.value(nil, reply.failure ?? RTCPeerConnectionError(.noDescription))
        }
      }
    }
  }

  private func apply(
    _ call: PeerCall, _ completionHandler: @escaping ((any Error)?) -> Void
  ) {
    let told = Handed(completionHandler)
    connection.perform(call) { [factory] reply in
      factory.queue.async { told.value(reply.failure) }
    }
  }

  /// Applies an offer's constraint on receiving a kind of media; nil changes nothing.
  private func receive(_ kind: MediaKind, _ wants: Bool?) {
    guard let wants else { return }
    let receiving = infos.filter { $0.kind == kind && $0.direction.receives }
    if wants {
      guard receiving.isEmpty else { return }
      _ = try? connection.performAndWait(
        .addTransceiver(kind: kind, direction: .recvonly, streamIDs: [], source: nil))
    } else {
      for info in receiving {
        _ = try? connection.performAndWait(
          .setDirection(
            transceiver: info.id, info.direction == .sendrecv ? .sendonly : .inactive))
      }
    }
  }
}

// Records the application's signaling: the descriptions and candidates that it gets from the
// connection, and the remote descriptions and candidates that it passes in.
extension PeerConnection {
  fileprivate func record(_ description: SessionDescription, isInbound: Bool) {
    guard description.type != .rollback else { return }
    record(description.type.rawValue, description.sdp, isInbound: isInbound)
  }

  func record(_ candidate: RTCIceCandidate, isInbound: Bool) {
    record("candidate", candidate.sdp, isInbound: isInbound)
  }

  private func record(_ type: String, _ message: String, isInbound: Bool) {
    recordSignaling(
      SignalingMessage(
        isInbound: isInbound, transport: "application", type: type, message: message))
  }
}

extension PeerError {
  fileprivate static let noDescription = PeerError(
    name: "OperationError", message: "no description was created")
}
