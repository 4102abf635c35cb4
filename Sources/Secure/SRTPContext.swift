package import Wire

// The contract; its behaviour is to be written.

/// SRTP and SRTCP in both directions over libsrtp2 (RFC 3711, RFC 7714).
package struct SRTPContext: ~Copyable {
  /// Why a packet was refused.
  package enum Refusal: Error, Hashable, Sendable {
    /// The authentication tag does not fit.
    case authentication
    /// The packet came before, or is too old to tell (RFC 3711 section 3.3.2).
    case replayed
    /// Anything else, with libsrtp's status code.
    case malformed(Int32)
  }

  package init(profile: SRTPProfile, sendKey: [UInt8], receiveKey: [UInt8]) throws(SecureError) {
    throw SecureError(reason: "not written yet")
  }

  /// How many bytes protecting may add; reserve them to avoid a copy.
  package static let overhead = 32

  /// Turns an RTP packet into an SRTP packet in place.
  package mutating func protectRTP(_ packet: inout [UInt8]) throws(Refusal) {}
  /// Turns an RTCP compound packet into an SRTCP packet in place.
  package mutating func protectRTCP(_ packet: inout [UInt8]) throws(Refusal) {}
  /// Turns an SRTP packet into an RTP packet in place.
  package mutating func unprotectRTP(_ packet: inout [UInt8]) throws(Refusal) {}
  /// Turns an SRTCP packet into an RTCP compound packet in place.
  package mutating func unprotectRTCP(_ packet: inout [UInt8]) throws(Refusal) {}
}
