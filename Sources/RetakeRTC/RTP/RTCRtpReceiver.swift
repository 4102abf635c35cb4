import Live
import Peer
import Synchronization
import Wire

/// What a transceiver receives.
public final class RTCRtpReceiver: Sendable {
  let transceiver: UInt32
  private let kind: MediaKind
  private let connection: PeerConnection
  private let received: Mutex<(any CoredTrack)?>

  init(_ info: TransceiverInfo, of connection: PeerConnection) {
    transceiver = info.id
    kind = info.kind
    self.connection = connection
    received = Mutex(nil)
  }

  /// Names the receiver in its connection.
  public var receiverId: String { "receiver\(transceiver)" }

  /// The received track; there is one from the beginning, which ends when the peer sends no more.
  public var track: (any RTCMediaStreamTrack)? { present }

  /// The peer begins to send.
  func began() { _ = present }

  /// The peer sends no more.
  func ended() { received.withLock { $0 }?.core.end() }

  /// The track, which the peer has named.
  func named(_ id: String?) -> any CoredTrack { track(named: id) }

  private var present: any CoredTrack {
    if let known = received.withLock({ $0 }), known.readyState == .live { return known }
    var name: String?
    if case .streams(let streams) = try? connection.performAndWait(.streams) {
      name =
        streams.remote.lazy.flatMap(\.tracks).first { $0.transceiver == self.transceiver }?.id
    }
    return track(named: name)
  }

  private func track(named id: String?) -> any CoredTrack {
    received.withLock { received in
      if let received, received.readyState == .live { return received }
      let id = id ?? receiverId
      let inlet = TrackCore.Place(connection: connection, transceiver: transceiver)
      let made: any CoredTrack =
        kind == .audio
        ? RTCAudioTrack(received: id, at: inlet) : RTCVideoTrack(received: id, at: inlet)
      received = made
      return made
    }
  }
}

extension RTCRtpReceiver: Hashable {
  /// Whether both are the same object.
  public static func == (left: RTCRtpReceiver, right: RTCRtpReceiver) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
