import CSRTP
import Wire

/// Decrypts what one sender protected, as an observer of the call.
///
/// An observer may join late: sequence numbers may already have wrapped, and the rollover counter
/// is authenticated (RFC 3711 section 3.3.1). It is found by trying.
package final class SRTPReceiver {
  package typealias Refusal = SRTPContext.Refusal

  private let session: SRTPSession
  /// The number of attempts made for streams that were joined late.
  private var attempts: [UInt32: Int] = [:]
  /// The streams that were decrypted.
  private var opened: Set<UInt32> = []
  private var lastOpened: UInt32?

  /// For how many packets of a stream, and up to which value, rollover counters are tried.
  private static let attemptsMaximum = 3
  private static let rolloverMaximum: UInt32 = 200
  /// The most streams that are tried.
  private static let streamsMaximum = 256

  /// Creates a receiver from a master key followed by its salt.
  /// - Parameter identifier: the key's identifier in each packet (MKI); empty for none.
  package init(_ suite: SRTPSuite, key: [UInt8], identifier: [UInt8] = []) throws(SecureError) {
    session = try SRTPSession(suite, key: key, ssrcs: ssrc_any_inbound, identifier: identifier)
  }

  /// Decrypts an SRTP or SRTCP packet in place.
  ///
  /// After an error the bytes may be undefined; the length is unchanged.
  package func open(_ packet: inout [UInt8], isRTCP: Bool) throws(Refusal) {
    guard (session.minimum(isRTCP: isRTCP)...SRTPContext.packetMaximum).contains(packet.count)
    else { throw SRTPContext.badLength }
    guard !isRTCP else {
      let status = session.unprotect(&packet, isRTCP: true)
      guard status == srtp_err_status_ok else { throw SRTPContext.refusal(status) }
      return
    }
    let ssrc = packet.span.bytes.uint32(at: 8)
    guard ssrc != lastOpened, !opened.contains(ssrc) else {
      lastOpened = ssrc
      let status = session.unprotect(&packet, isRTCP: false)
      guard status == srtp_err_status_ok else { throw SRTPContext.refusal(status) }
      return
    }
    // Keep the sealed packet, because a failed attempt destroys its bytes.
    let sealed = packet
    let status = session.unprotect(&packet, isRTCP: false)
    if status == srtp_err_status_auth_fail {
      packet = sealed
      guard openLate(&packet, ssrc) else { throw .authentication }
    } else if status != srtp_err_status_ok {
      throw SRTPContext.refusal(status)
    }
    lastOpened = ssrc
    opened.insert(ssrc)
  }

  /// Tries each rollover counter for a new stream.
  private func openLate(_ packet: inout [UInt8], _ ssrc: UInt32) -> Bool {
    let count = attempts[ssrc] ?? 0
    guard count < Self.attemptsMaximum, count > 0 || attempts.count < Self.streamsMaximum else {
      return false
    }
    attempts[ssrc] = count + 1
    for rollover in 1...Self.rolloverMaximum {
      guard session.begin(ssrc: ssrc, rollover: rollover) else { return false }
      var copy = packet
      if session.unprotect(&copy, isRTCP: false) == srtp_err_status_ok {
        packet = copy
        return true
      }
      session.end(ssrc: ssrc)
    }
    return false
  }
}
