public import Foundation
import JSEP
import Live
import Peer
import Wire

/// A codec that can be agreed on.
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
  /// The parameters of an fmtp line by their names; one without a name has none.
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

/// What senders and receivers of a kind can do.
public final class RTCRtpCapabilities: Sendable {
  /// The codecs, in the order in which offers list them.
  public let codecs: [RTCRtpCodecCapability]

  init(_ kind: MediaKind) {
    codecs = RTPCodec.capabilities(kind).map { RTCRtpCodecCapability($0, kind) }
  }
}

extension RTCPeerConnectionFactory {
  /// What senders of a kind can do: `kRTCMediaStreamTrackKindAudio` or that of video.
  public func rtpSenderCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    RTCRtpCapabilities(kind == kRTCMediaStreamTrackKindAudio ? .audio : .video)
  }

  /// What receivers of a kind can do: the same.
  public func rtpReceiverCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    rtpSenderCapabilities(forKind: kind)
  }
}

extension RTCRtpTransceiver {
  /// Sets which codecs the next exchange may agree on, the preferred one first; nil or none returns
  /// to the defaults.
  ///
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
