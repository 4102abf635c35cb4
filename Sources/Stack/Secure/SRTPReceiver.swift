import CSRTP
import Wire

/// Opens what one sender protected, without being an end of the call.
///
/// Whoever looks on may come late: the sequence numbers of a stream may have wrapped already, and
/// how often is part of what is authenticated (RFC 3711 section 3.3.1). It is found by trying.
package final class SRTPReceiver {
  package typealias Refusal = SRTPContext.Refusal

  private let session: SRTPSession
  /// The streams that begin late, with the attempts made so far.
  private var attempts: [UInt32: Int] = [:]
  /// The streams of which a packet was opened.
  private var opened: Set<UInt32> = []
  private var lastOpened: UInt32?

  /// For how many packets of a stream, and up to which number, wraps are tried.
  private static let attemptsMaximum = 3
  private static let rolloverMaximum: UInt32 = 200
  /// How many streams are tried for.
  private static let streamsMaximum = 256

  /// Creates a receiver of a master key followed by its salt.
  /// - Parameter identifier: what names the key in each packet (MKI); empty when nothing does.
  package init(_ suite: SRTPSuite, key: [UInt8], identifier: [UInt8] = []) throws(SecureError) {
    session = try SRTPSession(suite, key: key, ssrcs: ssrc_any_inbound, identifier: identifier)
  }

  /// Turns an SRTP or SRTCP packet into a clear one in place.
  ///
  /// A refused packet keeps its length, but its bytes may mean nothing any more.
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
    // The first packets of a stream are kept, because a failed attempt leaves nothing of them.
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

  /// Tries a stream that was not there before with each number of wraps.
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
