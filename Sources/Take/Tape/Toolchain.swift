/// What bit-exactness depends on besides Retake itself: the libraries and the CPU's features.
public struct Toolchain: Hashable, Sendable, Codable {
  /// The version of OpenSSL and the fingerprint of its behaviour, as the start-up check gives them.
  public var openssl: String
  /// The version of libsrtp2.
  public var srtp: String
  /// The version of libopus.
  public var opus: String
  /// The version of libvpx.
  public var vpx: String
  /// The version of OpenH264; nil if H.264 is neither encoded nor decoded.
  public var openh264: String?
  /// The version of dav1d; nil if AV1 is not decoded.
  public var dav1d: String?
  /// The processor architecture and the features that codecs choose their code by.
  public var cpu: String

  /// Creates a description from its parts.
  public init(
    openssl: String = "", srtp: String = "", opus: String = "", vpx: String = "", cpu: String = "",
    openh264: String? = nil, dav1d: String? = nil
  ) {
    self.openh264 = openh264
    self.dav1d = dav1d
    self.openssl = openssl
    self.srtp = srtp
    self.opus = opus
    self.vpx = vpx
    self.cpu = cpu
  }

  /// The parts that differ from another toolchain's in what they make of equal inputs: name, here,
  /// there.
  ///
  /// Of OpenSSL the fingerprint of its behaviour decides, not the number of its version. A decoder
  /// that the other one does not have makes no difference.
  public func differences(from other: Toolchain) -> [(part: String, here: String, there: String)] {
    let decoders = [("openh264", openh264, other.openh264), ("dav1d", dav1d, other.dav1d)]
      .compactMap { decoder in
        decoder.2.map { (decoder.0, decoder.1 ?? "none in this build", $0) }
      }
    return
      ([
        ("openssl", openssl, other.openssl), ("srtp", srtp, other.srtp), ("opus", opus, other.opus),
        ("vpx", vpx, other.vpx), ("cpu", cpu, other.cpu),
      ] + decoders).filter { Toolchain.behaviour($0.1) != Toolchain.behaviour($0.2) }.map {
        (part: $0.0, here: $0.1, there: $0.2)
      }
  }

  /// What of a part's text says how it behaves: a fingerprint where it has one, else all of it.
  private static func behaviour(_ text: String) -> Substring {
    guard let comma = text.lastIndex(of: ","), text[comma...].hasPrefix(engineMark) else {
      return text[...]
    }
    return text[comma...]
  }

  /// What stands between the version of OpenSSL and the fingerprint of its behaviour.
  static let engineMark = ", engine "
}
