public import Foundation
import JSEP
import Live
import Peer
import Wire

/// A codec that can be negotiated.
public final class RTCRtpCodecCapability: Sendable {
  let native: RTPCodec
  private let mediaKind: MediaKind

  init(_ native: RTPCodec, _ kind: MediaKind) {
    self.native = native
    mediaKind = kind
  }

  /// The encoding name: `opus`, `VP8`, ...
  public var name: String {
    native.mimeType.split(separator: "/").last.map(String.init) ?? native.mimeType
  }
  /// `audio` or `video`.
  public var kind: String {
    mediaKind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo
  }
  /// The kind with the name: `video/VP8`.
  public var mimeType: String { native.mimeType }
  /// In Hz.
  public var clockRate: NSNumber? { NSNumber(value: native.clockRate) }
  /// The number of audio channels, when there are several.
  public var numChannels: NSNumber? { native.channels.map { NSNumber(value: $0) } }
  /// The fmtp parameters by name; one without a name has an empty name.
  public var parameters: [String: String] {
    let pairs = (native.sdpFmtpLine ?? "").split(separator: ";").map { part in
      let sides = part.split(separator: "=", maxSplits: 1).map { side in
        side.trimmingCharacters(in: .whitespaces)
      }
      return sides.count == 2 ? (sides[0], sides[1]) : ("", sides.first ?? "")
    }
    return Dictionary(pairs) { first, _ in first }
  }
}

/// The capabilities of senders and receivers of a kind.
public final class RTCRtpCapabilities: Sendable {
  /// The codecs, in the order in which offers list them.
  public let codecs: [RTCRtpCodecCapability]

  init(_ kind: MediaKind) {
    codecs = RTPCodec.capabilities(kind).map { RTCRtpCodecCapability($0, kind) }
  }
}

extension RTCPeerConnectionFactory {
  /// The capabilities of senders of a kind: `kRTCMediaStreamTrackKindAudio` or the one of video.
  public func rtpSenderCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    RTCRtpCapabilities(kind == kRTCMediaStreamTrackKindAudio ? .audio : .video)
  }

  /// The capabilities of receivers of a kind: the same as those of senders.
  public func rtpReceiverCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    rtpSenderCapabilities(forKind: kind)
  }
}

extension RTCRtpTransceiver {
  /// Sets the codecs for the next negotiation, the preferred one first; nil or none restores the
  /// defaults.
  /// - Throws: `RTCPeerConnectionError` for codecs that are not among the capabilities, or when
  ///   none of them carries media.
  public func setCodecPreferences(_ codecs: [RTCRtpCodecCapability]?) throws {
    let call = PeerCall.setCodecPreferences(
      transceiver: sender.transceiver, (codecs ?? []).map(\.native))
    do throws(PeerError) {
      try sender.connection.performAndWait(call)
    } catch {
      throw RTCPeerConnectionError(error)
    }
  }
}
