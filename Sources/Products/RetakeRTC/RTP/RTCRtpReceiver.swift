import Live
import Peer
import Synchronization
import Wire

/// The receiver of a transceiver.
public final class RTCRtpReceiver: Sendable {
  let transceiver: UInt32
  private let kind: MediaKind
  private let connection: PeerConnection
  private let received: Mutex<RTCMediaStreamTrack?>

  init(_ info: TransceiverInfo, of connection: PeerConnection) {
    transceiver = info.id
    kind = info.kind
    self.connection = connection
    received = Mutex(nil)
  }

  /// The identifier of the receiver in its connection.
  public var receiverId: String { "receiver\(transceiver)" }

  /// The received track: the same for the life of the transceiver, whether the peer sends or not.
  public var track: RTCMediaStreamTrack? { present }

  /// The receiver stopped for good.
  func ended() { received.withLock { $0 }?.core.end() }

  /// The track, with the peer's identifier unless it already has one.
  func named(_ id: String?) -> RTCMediaStreamTrack { track(named: id) }

  private var present: RTCMediaStreamTrack {
    if let known = received.withLock({ $0 }) { return known }
    var name: String?
    if case .streams(let streams) = try? connection.performAndWait(.streams) {
      name =
        streams.remote.lazy.flatMap(\.tracks).first { $0.transceiver == self.transceiver }?.id
    }
    return track(named: name)
  }

  private func track(named id: String?) -> RTCMediaStreamTrack {
    received.withLock { received in
      if let received { return received }
      let id = id ?? receiverId
      let inlet = TrackCore.Place(connection: connection, transceiver: transceiver)
      let made: RTCMediaStreamTrack =
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
