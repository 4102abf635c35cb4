import Live
import Peer
import Synchronization
import Wire

/// The sender of a transceiver.
public final class RTCRtpSender: Sendable {
  let transceiver: UInt32
  private let kind: MediaKind
  let connection: PeerConnection
  private let sent = Mutex<RTCMediaStreamTrack?>(nil)

  init(_ info: TransceiverInfo, of connection: PeerConnection) {
    transceiver = info.id
    kind = info.kind
    self.connection = connection
  }

  /// The identifier of the sender in its connection.
  public var senderId: String { "sender\(transceiver)" }

  /// Sends telephone events in place of its audio; nil for a video sender.
  public var dtmfSender: RTCDtmfSender? {
    kind == .audio ? RTCDtmfSender(transceiver, of: connection) : nil
  }

  /// The parameters of the sender: change the encodings and set them again.
  ///
  /// Rejected parameters change nothing.
  public var parameters: RTCRtpParameters {
    get {
      let reply = try? connection.performAndWait(.getParameters(transceiver: transceiver))
      guard case .parameters(let parameters) = reply else { return RTCRtpParameters() }
      return RTCRtpParameters(parameters)
    }
    set {
      guard let native = newValue.native else { return }
      _ = try? connection.performAndWait(
        .setParameters(transceiver: transceiver, native))
    }
  }

  /// The track; nil sends nothing.
  ///
  /// Another track of the same kind replaces it without negotiation. A track of another kind, or a
  /// remote one, is rejected and changes nothing.
  public var track: RTCMediaStreamTrack? {
    get { sent.withLock { $0 } }
    set {
      let core = newValue?.core
      guard core == nil || core?.kind == kind && core?.source != nil else { return }
      let call = PeerCall.replaceSource(
        transceiver: transceiver, core?.source, isEnabled: core?.initiallyEnabled)
      if (try? connection.performAndWait(call)) != nil { attach(newValue) }
    }
  }

  /// The streams that the track belongs to; negotiation is needed when they change.
  public var streamIds: [String] {
    get {
      guard case .streams(let streams) = try? connection.performAndWait(.streams) else { return [] }
      return streams.local.filter { stream in
        stream.tracks.contains { $0.transceiver == transceiver }
      }.map(\.id)
    }
    set { _ = try? connection.performAndWait(.setStreams(transceiver: transceiver, newValue)) }
  }

  /// Attaches a track to the sender, and detaches the previous one.
  func attach(_ track: RTCMediaStreamTrack?) {
    let before = sent.withLock { sent in
      defer { sent = track }
      return sent
    }
    before?.core.remove(place)
    (before as? RTCAudioTrack)?.source.lines?.end(connection, transceiver)
    track?.core.add(place)
    (track as? RTCAudioTrack)?.source.lines?.send(connection, transceiver)
    if let hint = (track as? RTCVideoTrack)?.source.contentHint {
      place.post(.setContentHint(transceiver: transceiver, hint))
    }
  }

  /// Detaches the track; the connection no longer sends.
  func detach() {
    let track = sent.withLock { $0 }
    track?.core.remove(place)
    (track as? RTCAudioTrack)?.source.lines?.end(connection, transceiver)
  }

  private var place: TrackCore.Place {
    TrackCore.Place(connection: connection, transceiver: transceiver)
  }
}

extension RTCRtpSender: Hashable {
  /// Whether both are the same object.
  public static func == (left: RTCRtpSender, right: RTCRtpSender) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
