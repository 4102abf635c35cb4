public import Foundation
import JSEP
import Live
import Peer
import Synchronization
import Wire

/// The sending half of a transceiver (W3C RTCRtpSender).
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

  /// The sender's identifier in its connection.
  public var senderId: String { "sender\(transceiver)" }

  /// Sends telephone events instead of the audio; nil for a video sender.
  public var dtmfSender: RTCDtmfSender? {
    kind == .audio ? RTCDtmfSender(transceiver, of: connection) : nil
  }

  /// The sender's parameters; to change the encodings, read the parameters, change them and set
  /// them again.
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

  /// The sent track; nil sends nothing.
  ///
  /// Another track of the same kind replaces it without negotiation. A track of another kind or a
  /// remote track is rejected and changes nothing.
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

  /// The streams that the track belongs to; changing them needs negotiation.
  public var streamIds: [String] {
    get {
      guard case .streams(let streams) = try? connection.performAndWait(.streams) else { return [] }
      return streams.local.filter { stream in
        stream.tracks.contains { $0.transceiver == transceiver }
      }.map(\.id)
    }
    set { _ = try? connection.performAndWait(.setStreams(transceiver: transceiver, newValue)) }
  }

  /// Attaches a track and detaches the previous one.
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
  /// Returns whether both are the same object.
  public static func == (left: RTCRtpSender, right: RTCRtpSender) -> Bool { left === right }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: - RTCDtmfSender

/// Sends telephone events instead of a sender's audio (RFC 4733).
public final class RTCDtmfSender: Sendable {
  private let transceiver: UInt32
  private let connection: PeerConnection

  init(_ transceiver: UInt32, of connection: PeerConnection) {
    self.transceiver = transceiver
    self.connection = connection
  }

  /// Whether the peer accepts telephone events at the clock rate of the audio codec.
  public var canInsertDtmf: Bool {
    let call = PeerCall.getParameters(transceiver: transceiver)
    guard case .parameters(let parameters) = try? connection.performAndWait(call) else {
      return false
    }
    let audio = parameters.codecs.first { !$0.isEvent }
    return parameters.codecs.contains {
      $0.isEvent && $0.codec.clockRate == audio?.codec.clockRate
    }
  }

  /// Sends tones in order, replacing the tones that are still queued.
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, each of which pauses for two seconds.
  ///   - duration: how long each tone lasts, in seconds: 0.04 to 6.
  ///   - interToneGap: the pause between two tones, in seconds: 0.03 to 6.
  /// - Returns: whether the tones are sent; false for other characters, and if `canInsertDtmf` is
  ///   false.
  public func insertDtmf(
    _ tones: String, duration: TimeInterval, interToneGap: TimeInterval
  ) -> Bool {
    let call = PeerCall.insertDTMF(
      transceiver: transceiver, tones: tones, duration: milliseconds(duration),
      gap: milliseconds(interToneGap))
    return (try? connection.performAndWait(call)) != nil
  }

  private func milliseconds(_ seconds: TimeInterval) -> UInt32 {
    UInt32(min(max(seconds.isFinite ? seconds * 1_000 : 0, 0), 60_000))
  }
}

extension RTPSendParameters.Codec {
  fileprivate var isEvent: Bool { codec.mimeType.lowercased() == "audio/telephone-event" }
}

// MARK: - RTCRtpReceiver

/// The receiving half of a transceiver (W3C RTCRtpReceiver).
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

  /// The receiver's identifier in its connection.
  public var receiverId: String { "receiver\(transceiver)" }

  /// The received track: the same object for the transceiver's lifetime, even if the peer sends
  /// nothing.
  public var track: RTCMediaStreamTrack? { present }

  /// Ends the track, because the receiver has permanently stopped.
  func ended() { received.withLock { $0 }?.core.end() }

  /// Returns the track, creating it with this identifier if there is none yet; nil means the
  /// receiver's identifier.
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
  /// Returns whether both are the same object.
  public static func == (left: RTCRtpReceiver, right: RTCRtpReceiver) -> Bool { left === right }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
