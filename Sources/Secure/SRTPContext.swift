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

  /// How many packets behind the newest one an SRTP packet may still come.
  package static let replayWindow = 1024

  /// The name and version of the library, such as `libsrtp2 2.5.0`.
  package static var libraryVersion: String { String(cString: srtp_get_version_string()) }

  private let outbound: SRTPSession
  private let inbound: SRTPSession
  /// The length of the authentication tag, in bytes.
  private let tagLength: Int
  /// What was sent before, and the means to open it.
  private let recording: (any Recording)?
  private let witness: SRTPSession?

  /// Makes the keys of both directions, from a master key followed by its salt for each.
  ///
  /// Of a recording those packets are taken that have the same contents as those made here.
  package init(
    profile: SRTPProfile, sendKey: [UInt8], receiveKey: [UInt8],
    recording: (any Recording)? = nil
  ) throws(SecureError) {
    let outbound = try SRTPSession(profile, key: sendKey, ssrcs: ssrc_any_outbound)
    let inbound = try SRTPSession(profile, key: receiveKey, ssrcs: ssrc_any_inbound)
    let witness =
      recording == nil ? nil : try SRTPSession(profile, key: sendKey, ssrcs: ssrc_any_inbound)
    self.outbound = outbound
    self.inbound = inbound
    self.recording = recording
    self.witness = witness
    tagLength = profile == .aes128CMSHA1_80 ? 10 : 16
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
    try unprotect(&packet, minimum: 12 + tagLength, srtp_unprotect)
  }

  /// Turns an SRTCP packet into an RTCP compound packet in place.
  ///
  /// A refused packet keeps its length, but its bytes mean nothing any more.
  package mutating func unprotectRTCP(_ packet: inout [UInt8]) throws(Refusal) {
    // The index of 4 bytes stands before the tag, or after it with AEAD.
    try unprotect(&packet, minimum: 8 + 4 + tagLength, srtp_unprotect_rtcp)
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
    packet.append(contentsOf: repeatElement(0, count: Self.overhead))
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
  private func unprotect(
    _ packet: inout [UInt8], minimum: Int, _ operation: Operation
  ) throws(Refusal) {
    guard (minimum...Self.packetMaximum).contains(packet.count) else { throw Self.badLength }
    var length = Int32(truncatingIfNeeded: packet.count)
    let status = packet.withUnsafeMutableBytes {
      operation(inbound.handle, $0.baseAddress, &length)
    }
    guard status == srtp_err_status_ok else { throw Self.refusal(status) }
    packet.removeLast(packet.count - Int(length))
  }

  /// The largest packet that is worked on; no UDP datagram is longer.
  private static let packetMaximum = 65_535

  private static let badLength = Refusal.malformed(Int32(srtp_err_status_bad_param.rawValue))

  private static func refusal(_ status: srtp_err_status_t) -> Refusal {
    switch status {
    case srtp_err_status_auth_fail: .authentication
    case srtp_err_status_replay_fail, srtp_err_status_replay_old: .replayed
    default: .malformed(Int32(truncatingIfNeeded: status.rawValue))
    }
  }
}

/// A session of libsrtp: one direction with all of its streams, which begin by themselves.
///
/// A class, because the optimiser of Swift 6.3 trips over a non-copyable member of a type that
/// other modules destroy.
private final class SRTPSession {
  let handle: srtp_t?

  /// Whether the library could be initialised, once per process.
  private static let isReady = srtp_init() == srtp_err_status_ok

  init(_ profile: SRTPProfile, key: [UInt8], ssrcs: srtp_ssrc_type_t) throws(SecureError) {
    guard Self.isReady else { throw SecureError(reason: "libsrtp cannot be initialised") }
    guard let keyLength = profile.keyLength, let saltLength = profile.saltLength else {
      throw SecureError(reason: "SRTP profile \(profile.rawValue) is not supported")
    }
    guard key.count == keyLength + saltLength else {
      throw SecureError(
        reason: "an SRTP key and salt have \(key.count) bytes instead of \(keyLength + saltLength)")
    }
    var policy = srtp_policy_t()
    switch profile {
    case .aeadAES128GCM:
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
    case .aeadAES256GCM:
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
    default:
      srtp_crypto_policy_set_rtp_default(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    }
    policy.ssrc.type = ssrcs
    policy.window_size = UInt(SRTPContext.replayWindow)
    // A packet may be sent again as it was, when its stream has no RTX.
    policy.allow_repeat_tx = 1
    var key = key
    var made: srtp_t?
    // The library derives its session keys at once and keeps no pointer to the master key.
    let status = key.withUnsafeMutableBufferPointer { key in
      policy.key = key.baseAddress
      return srtp_create(&made, &policy)
    }
    guard status == srtp_err_status_ok, let made else {
      throw SecureError(reason: "libsrtp cannot make a session: status \(status.rawValue)")
    }
    handle = made
  }

  deinit { _ = srtp_dealloc(handle) }
}
