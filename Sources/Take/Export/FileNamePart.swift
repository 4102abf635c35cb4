import Crypto
import Wire

/// A part of the name of a file, made of a text that others wrote.
enum FileNamePart {
  /// How long it is at most, in bytes.
  ///
  /// Names of files have up to 255 on all common systems, and other parts stand beside it.
  static let longest = 64

  /// Letters and digits of ASCII as they are, everything else as hyphens.
  ///
  /// Of a long text the beginning stays, with a digest of all of it behind that, so that two which
  /// begin alike are told apart.
  static func plain(_ text: String) -> String {
    let plain = String(
      text.prefix(longest + 1).map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    guard plain.utf8.count > longest else { return plain }
    let digest = hexadecimal(SHA256.hash(Array(text.utf8)).prefix(8))
    return plain.prefix(longest - digest.utf8.count - 1) + "-" + digest
  }
}
