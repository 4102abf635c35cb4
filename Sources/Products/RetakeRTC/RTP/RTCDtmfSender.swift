public import Foundation
import JSEP
import Live
import Peer
import Wire

/// Sends telephone events in place of the audio of a sender (RFC 4733).
public final class RTCDtmfSender: Sendable {
  private let transceiver: UInt32
  private let connection: PeerConnection

  init(_ transceiver: UInt32, of connection: PeerConnection) {
    self.transceiver = transceiver
    self.connection = connection
  }

  /// Whether the peer accepts telephone events beside the audio codec.
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

  /// Sends tones one after the other, replacing those still queued.
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, each of which is a pause of two seconds.
  ///   - duration: of each tone, in seconds: 0.04 to 6.
  ///   - interToneGap: the pause between two tones, in seconds: 0.03 to 6.
  /// - Returns: whether they are sent; false for other characters, and when `canInsertDtmf` is
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
