import CSRTP
import Wire

/// SRTP and SRTCP in both directions over libsrtp2 (RFC 3711, RFC 7714).
///
/// Packets are changed in place: protecting adds the authentication tag (and SRTCP's index),
/// unprotecting removes it. Encryption draws no randomness.
package struct SRTPContext: ~Copyable {
  /// A source of recorded packets, which another library may have protected.
  package protocol Recording: AnyObject {
    /// Returns the recorded packet that has the same header and length, if there is one.
    func sent(like packet: [UInt8], isRTCP: Bool) -> [UInt8]?
    /// Reports that a recorded packet replaced different bytes from this library.
    func didReplace(isRTCP: Bool)
  }

  /// The reason for refusing a packet.
  package enum Refusal: Error, Hashable, Sendable {
    /// The authentication tag is wrong.
    case authentication
    /// The packet is a duplicate, or too old for the replay window (RFC 3711 section 3.3.2).
    case replayed
    /// Any other error, with libsrtp's status code.
    case malformed(Int32)
  }

  /// The maximum number of bytes that protection adds; reserving them avoids a copy.
  package static let overhead = 32

  private static let room = [UInt8](repeating: 0, count: overhead)

  /// The number of packets by which an SRTP packet may be behind the newest.
  package static let replayWindow = 1024

  /// Name and version of the library, such as `libsrtp2 2.5.0`.
  package static var libraryVersion: String { String(cString: srtp_get_version_string()) }

  /// The number of AES-GCM ciphers, out of two, that OpenSSL computes instead of the library.
  package static var replacedCiphers: Int { SRTPSession.replacedCiphers }

  private let outbound: SRTPSession
  private let inbound: SRTPSession
  /// Recorded packets, with a session that can decrypt them.
  private let recording: (any Recording)?
  private let witness: SRTPSession?

  /// Creates the contexts for both directions, each from a master key followed by its salt.
  ///
  /// A packet in `recording` replaces a protected packet that has the same plaintext.
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

  /// Encrypts an RTP packet in place, making it SRTP.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package mutating func protectRTP(_ packet: inout [UInt8]) throws(Refusal) {
    guard recording != nil else { return try protect(&packet, minimum: 12, srtp_protect) }
    let plain = packet
    try protect(&packet, minimum: 12, srtp_protect)
    replace(&packet, plain, isRTCP: false)
  }

  /// Encrypts an RTCP compound packet in place, making it SRTCP.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package mutating func protectRTCP(_ packet: inout [UInt8]) throws(Refusal) {
    guard recording != nil else { return try protect(&packet, minimum: 8, srtp_protect_rtcp) }
    let plain = packet
    try protect(&packet, minimum: 8, srtp_protect_rtcp)
    replace(&packet, plain, isRTCP: true)
  }

  /// Decrypts an SRTP packet in place.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package mutating func unprotectRTP(_ packet: inout [UInt8]) throws(Refusal) {
    try unprotect(&packet, isRTCP: false)
  }

  /// Decrypts an SRTCP packet in place.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package mutating func unprotectRTCP(_ packet: inout [UInt8]) throws(Refusal) {
    try unprotect(&packet, isRTCP: true)
  }

  /// Replaces a packet with the recorded packet if both have the same plaintext.
  private func replace(_ packet: inout [UInt8], _ plain: [UInt8], isRTCP: Bool) {
    guard let recording, let witness, let sent = recording.sent(like: packet, isRTCP: isRTCP)
    else { return }
    var opened = sent
    var length = Int32(truncatingIfNeeded: sent.count)
    // Identical packets are decrypted too, so that sequence number wrap-arounds are counted.
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

  /// The largest packet handled; no UDP datagram is longer.
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

// MARK: - SRTPReceiver

/// Decrypts one sender's packets on behalf of an observer of the call.
///
/// An observer may join after sequence numbers have wrapped, and the rollover counter is part of
/// what is authenticated (RFC 3711 section 3.3.1). The counter is therefore found by trial.
package final class SRTPReceiver {
  package typealias Refusal = SRTPContext.Refusal

  private let session: SRTPSession
  /// The number of packets on which rollover counters were tried, by SSRC; only for streams that
  /// were joined late.
  private var attempts: [UInt32: Int] = [:]
  /// The streams decrypted so far.
  private var opened: Set<UInt32> = []
  private var lastOpened: UInt32?
  /// The rollover counters found by trial, by SSRC.
  private var rollovers: [UInt32: UInt32] = [:]

  /// The maximum number of packets per stream on which rollover counters are tried, and the highest
  /// counter tried.
  private static let attemptsMaximum = 3
  private static let rolloverMaximum: UInt32 = 200
  /// The maximum number of streams on which rollover counters are tried.
  private static let streamsMaximum = 256

  /// Creates a receiver from a master key followed by its salt.
  /// - Parameters:
  ///   - identifier: the key's identifier in each packet (MKI); empty if there is none.
  ///   - findsIdentifiers: whether the identifier is also found in RTCP if its tag is longer than
  ///     RTP's, as in all suites with 32-bit tags.
  package init(
    _ suite: SRTPSuite, key: [UInt8], identifier: [UInt8] = [], findsIdentifiers: Bool = true
  ) throws(SecureError) {
    session = try SRTPSession(
      suite, key: key, ssrcs: ssrc_any_inbound, identifier: identifier,
      findsIdentifiers: findsIdentifiers)
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
    // Keep the encrypted packet, because a failed attempt destroys its bytes.
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

  /// Tries rollover counters up to the maximum on a new stream's packet; returns whether one of
  /// them fits.
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
        rollovers[ssrc] = rollover
        return true
      }
      session.end(ssrc: ssrc)
    }
    return false
  }

  /// Returns and removes the rollover counter that was found by trial for a stream; nil if there is
  /// none.
  fileprivate func removeRollover(ssrc: UInt32) -> UInt32? { rollovers.removeValue(forKey: ssrc) }
}

// MARK: - SRTPReprotection

/// Decrypts one sender's packets and protects them again with another key, with the same rollover
/// counters and key identifier (MKI).
package final class SRTPReprotection {
  package typealias Refusal = SRTPContext.Refusal

  private let receiver: SRTPReceiver
  private let session: SRTPSession

  /// Prepares to decrypt with the old master key and to encrypt with the new one; each is followed
  /// by its salt.
  package init(
    _ suite: SRTPSuite, old: [UInt8], new: [UInt8], identifier: [UInt8] = []
  ) throws(SecureError) {
    receiver = try SRTPReceiver(suite, key: old, identifier: identifier)
    session = try SRTPSession(suite, key: new, ssrcs: ssrc_any_outbound, identifier: identifier)
  }

  /// Decrypts a packet in place with the old key.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package func open(_ packet: inout [UInt8], isRTCP: Bool) throws(Refusal) {
    try receiver.open(&packet, isRTCP: isRTCP)
  }

  /// Encrypts a packet in place with the new key.
  ///
  /// After an error the bytes are undefined; the length is unchanged.
  package func protect(_ packet: inout [UInt8], isRTCP: Bool) throws(Refusal) {
    guard ((isRTCP ? 8 : 12)...SRTPContext.packetMaximum).contains(packet.count) else {
      throw SRTPContext.badLength
    }
    if !isRTCP {
      let ssrc = packet.span.bytes.uint32(at: 8)
      if let rollover = receiver.removeRollover(ssrc: ssrc) {
        session.proceed(ssrc: ssrc, to: rollover)
      }
    }
    let status = session.protect(&packet, isRTCP: isRTCP)
    guard status == srtp_err_status_ok else { throw SRTPContext.refusal(status) }
  }
}

/// A negotiable SRTP profile, by its IANA name (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
public enum SRTPProtection: String, Hashable, Sendable, Codable, CaseIterable {
  /// AES-128 in Galois counter mode.
  case aeadAES128GCM = "SRTP_AEAD_AES_128_GCM"
  /// AES-256 in Galois counter mode.
  case aeadAES256GCM = "SRTP_AEAD_AES_256_GCM"
  /// AES-128 in counter mode with HMAC-SHA1, which every peer must support.
  case aes128CMSHA1_80 = "SRTP_AES128_CM_HMAC_SHA1_80"

  /// The default offer, in order of preference.
  public static let preferred: [SRTPProtection] = [
    .aeadAES128GCM, .aeadAES256GCM, .aes128CMSHA1_80,
  ]

  /// OpenSSL's name, which differs for the oldest profile.
  var libraryName: String {
    self == .aes128CMSHA1_80 ? "SRTP_AES128_CM_SHA1_80" : rawValue
  }
}

extension SRTPProtection {
  /// The profile's number on the wire.
  package var profile: SRTPProfile {
    switch self {
    case .aeadAES128GCM: .aeadAES128GCM
    case .aeadAES256GCM: .aeadAES256GCM
    case .aes128CMSHA1_80: .aes128CMSHA1_80
    }
  }

  /// Creates the profile from its wire number; nil if it cannot be negotiated here.
  package init?(_ profile: SRTPProfile) {
    guard let known = Self.allCases.first(where: { $0.profile == profile }) else { return nil }
    self = known
  }
}
