import CSRTP

/// SRTP and SRTCP in both directions over libsrtp2 (RFC 3711, RFC 7714).
///
/// Packets are changed in place: they grow by the authentication tag (and by SRTCP's index) when
/// they are protected, and shrink by it on the way back. Encryption draws no randomness.
package struct SRTPContext: ~Copyable {
  /// Where protected packets come from that were made before, perhaps by another library.
  package protocol Recording: AnyObject {
    /// The packet that was sent in place of one with this head and length; nil when there was none.
    func sent(like packet: [UInt8], isRTCP: Bool) -> [UInt8]?
    /// Tells that a packet was taken from here, which this library would have made otherwise.
    func didReplace(isRTCP: Bool)
  }

  /// Why a packet was refused.
  package enum Refusal: Error, Hashable, Sendable {
    /// The authentication tag does not fit.
    case authentication
    /// The packet came before, or is too old to tell (RFC 3711 section 3.3.2).
    case replayed
    /// Anything else, with libsrtp's status code.
    case malformed(Int32)
  }

  /// How many bytes protecting may add; reserve them to avoid a copy.
  package static let overhead = 32

  private static let room = [UInt8](repeating: 0, count: overhead)

  /// How many packets behind the newest one an SRTP packet may still come.
  package static let replayWindow = 1024

  /// The name and version of the library, such as `libsrtp2 2.5.0`.
  package static var libraryVersion: String { String(cString: srtp_get_version_string()) }

  /// How many ciphers OpenSSL computes in the place of the library, of two.
  package static var replacedCiphers: Int { SRTPSession.replacedCiphers }

  private let outbound: SRTPSession
  private let inbound: SRTPSession
  /// What was sent before, and the means to open it.
  private let recording: (any Recording)?
  private let witness: SRTPSession?

  /// Creates the keys of both directions, from a master key followed by its salt for each.
  ///
  /// Of a recording those packets are taken that have the same contents as those made here.
  package init(
    profile: SRTPProfile, sendKey: [UInt8], receiveKey: [UInt8],
    recording: (any Recording)? = nil
  ) throws(SecureError) {
    guard let suite = SRTPSuite(profile) else {
      throw SecureError(reason: "SRTP profile \(profile.rawValue) is not supported")
    }
    let outbound = try SRTPSession(suite, key: sendKey, ssrcs: ssrc_any_outbound)
    let inbound = try SRTPSession(suite, key: receiveKey, ssrcs: ssrc_any_inbound)
    let witness =
      recording == nil ? nil : try SRTPSession(suite, key: sendKey, ssrcs: ssrc_any_inbound)
    self.outbound = outbound
    self.inbound = inbound
    self.recording = recording
    self.witness = witness
  }

  /// Turns an RTP packet into an SRTP packet in place.
  ///
  /// A refused packet keeps its length, but its bytes mean nothing any more.
  package mutating func protectRTP(_ packet: inout [UInt8]) throws(Refusal) {
    guard recording != nil else { return try protect(&packet, minimum: 12, srtp_protect) }
    let plain = packet
    try protect(&packet, minimum: 12, srtp_protect)
    replace(&packet, plain, isRTCP: false)
  }

  /// Turns an RTCP compound packet into an SRTCP packet in place.
  ///
  /// A refused packet keeps its length, but its bytes mean nothing any more.
  package mutating func protectRTCP(_ packet: inout [UInt8]) throws(Refusal) {
    guard recording != nil else { return try protect(&packet, minimum: 8, srtp_protect_rtcp) }
    let plain = packet
    try protect(&packet, minimum: 8, srtp_protect_rtcp)
    replace(&packet, plain, isRTCP: true)
  }

  /// Turns an SRTP packet into an RTP packet in place.
  ///
  /// A refused packet keeps its length, but its bytes mean nothing any more.
  package mutating func unprotectRTP(_ packet: inout [UInt8]) throws(Refusal) {
    try unprotect(&packet, isRTCP: false)
  }

  /// Turns an SRTCP packet into an RTCP compound packet in place.
  ///
  /// A refused packet keeps its length, but its bytes mean nothing any more.
  package mutating func unprotectRTCP(_ packet: inout [UInt8]) throws(Refusal) {
    try unprotect(&packet, isRTCP: true)
  }

  /// Takes the recorded packet in place of one just made, when it holds the same in the clear.
  private func replace(_ packet: inout [UInt8], _ plain: [UInt8], isRTCP: Bool) {
    guard let recording, let witness, let sent = recording.sent(like: packet, isRTCP: isRTCP)
    else { return }
    var opened = sent
    var length = Int32(truncatingIfNeeded: sent.count)
    // Every packet is opened, also an equal one: that counts the wraps of the sequence number.
    let status = opened.withUnsafeMutableBytes {
      isRTCP
        ? srtp_unprotect_rtcp(witness.handle, $0.baseAddress, &length)
        : srtp_unprotect(witness.handle, $0.baseAddress, &length)
    }
    guard sent != packet, status == srtp_err_status_ok,
      opened.prefix(Int(length)).elementsEqual(plain)
    else { return }
    packet = sent
    recording.didReplace(isRTCP: isRTCP)
  }

  private typealias Operation = (
    srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?
  ) -> srtp_err_status_t

  @inline(__always)
  private func protect(
    _ packet: inout [UInt8], minimum: Int, _ operation: Operation
  ) throws(Refusal) {
    let plain = packet.count
    guard (minimum...Self.packetMaximum).contains(plain) else { throw Self.badLength }
    packet.append(contentsOf: Self.room)
    var length = Int32(truncatingIfNeeded: plain)
    let status = packet.withUnsafeMutableBytes {
      operation(outbound.handle, $0.baseAddress, &length)
    }
    guard status == srtp_err_status_ok else {
      packet.removeLast(Self.overhead)
      throw Self.refusal(status)
    }
    packet.removeLast(packet.count - Int(length))
  }

  @inline(__always)
  private func unprotect(_ packet: inout [UInt8], isRTCP: Bool) throws(Refusal) {
    guard (inbound.minimum(isRTCP: isRTCP)...Self.packetMaximum).contains(packet.count) else {
      throw Self.badLength
    }
    let status = inbound.unprotect(&packet, isRTCP: isRTCP)
    guard status == srtp_err_status_ok else { throw Self.refusal(status) }
  }

  /// The largest packet that is worked on; no UDP datagram is longer.
  static let packetMaximum = 65_535

  static let badLength = Refusal.malformed(Int32(srtp_err_status_bad_param.rawValue))

  static func refusal(_ status: srtp_err_status_t) -> Refusal {
    switch status {
    case srtp_err_status_auth_fail: .authentication
    case srtp_err_status_replay_fail, srtp_err_status_replay_old: .replayed
    default: .malformed(Int32(truncatingIfNeeded: status.rawValue))
    }
  }
}
