import Secure
import Wire

/// Finds out whether a DTLS client offers SRTP (RFC 5764 section 4.1.1), which those of calls do
/// and those of other things under DTLS do not.
package struct ClientHelloReader: Sendable {
  private var assembler = HandshakeAssembler()

  package init() {}

  /// Reads the next datagram of the client: whether it offers SRTP, or nil while its ClientHello is
  /// not whole.
  package mutating func offersSRTP(_ datagram: RawSpan) -> Bool? {
    var offset = 0
    while let record = DTLSRecord.read(datagram, at: &offset) {
      guard record.epoch == 0, record.type == DTLSFollower.ContentType.handshake else { continue }
      for message in assembler.add(record.fragment.span.bytes) where message.type == 1 {
        let hello = try? Hello(client: message.body.span.bytes)
        return hello?.profiles.isEmpty == false
      }
    }
    return nil
  }
}
