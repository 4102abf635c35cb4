public import Foundation
import JSEP
import Live
import Peer
import Wire

/// Keys of a telephone, pressed in the place of what a sender of audio sends (RFC 4733).
public final class RTCDtmfSender: Sendable {
  private let transceiver: UInt32
  private let connection: PeerConnection

  init(_ transceiver: UInt32, of connection: PeerConnection) {
    self.transceiver = transceiver
    self.connection = connection
  }

  /// Whether the peer takes events beside the audio that is sent.
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

  /// Presses keys one after the other, in the place of those that were not pressed yet.
  ///
  /// - Parameters:
  ///   - tones: digits, `*`, `#`, `A` to `D`, and commas, each of which waits two seconds.
  ///   - duration: how long each key is down, in seconds: 0.04 to 6.
  ///   - interToneGap: how long none is down between two, in seconds: 0.03 to 6.
  /// - Returns: whether they are pressed; false for other keys, and where `canInsertDtmf` is.
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
