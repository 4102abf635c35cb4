@testable import SCTP

/// SCTP packets of a call between Chromium (the answerer) and aiortc, extracted from its DTLS.
enum RecordedPackets {
  /// aiortc's random values.
  static let identity = AssociationIdentity(
    cookieKey: CookieKey(first: 1, second: 2), tag: 0xcd5a_6ded, firstNumber: 0xb28c_eee2)

  /// Both sides' INIT chunks, which crossed.
  static let chromiumInitiation =
    "1388138800000000ede9c2be0100001ecaa279d400500000ffffffff2114e986c00000048008000682c00000"
  static let aiortcInitiation =
    "138813880000000093f9c54d0100001ecd5a6ded00100000ffffffffb28ceee2c000000480080006c0820000"
  /// Chromium's answer to aiortc's INIT.
  static let chromiumAnswer =
    "13881388cd5a6dedec8ac7f402000052caa279d400500000ffffffff2114e986000700346463534354503030"
    + "cd5a6dedcaa279d4b28ceee22114e9860010000000000000000000000100010000000000ffffffffc00000048"
    + "008000682c00000"
  static let aiortcAnswer =
    "13881388caa279d43290ab590200003ccd5a6ded00100000ffffffffb28ceee2c000000480080006c08200000"
    + "007001c6b0162728ca4608f87a0828ce5752f4c72c7e69a441267c0"
  static let chromiumCookie =
    "13881388caa279d4572ac0f30a0000346463534354503030cd5a6dedcaa279d4b28ceee22114e98600100000"
    + "00000000000000000100010000000000ffffffff"
  static let aiortcCookie =
    "13881388cd5a6dedbb419f0d0a00001c6b0162728ca4608f87a0828ce5752f4c72c7e69a441267c0"
  static let cookieAcknowledgement = "13881388cd5a6ded156992c50b000004"
  /// aiortc announces the channel "chat" on stream 1, and Chromium accepts it.
  static let announcement =
    "13881388caa279d43dc3858600030020b28ceee2000100000000003203000000000000000004000063686174"
  static let acceptance = "13881388cd5a6ded30862cd6000300112114e986000100000000003202000000"
  static let acknowledgement = "13881388cd5a6dedca34493303000010b28ceee20048000000000000"
  static let hello = "13881388caa279d46b039df300030015b28ceee3000100010000003368656c6c6f000000"
  /// An acknowledgement followed by the echo of the text.
  static let echo =
    "13881388cd5a6dedf1b8926103000010b28ceee300480000000000000003001a2114e98700010001000000336"
    + "563686f3a68656c6c6f0000"

  static let all = [
    chromiumInitiation, aiortcInitiation, chromiumAnswer, aiortcAnswer, chromiumCookie,
    aiortcCookie, cookieAcknowledgement, announcement, acceptance, acknowledgement, hello, echo,
  ]

  /// Parses bytes from hexadecimal digits.
  static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
