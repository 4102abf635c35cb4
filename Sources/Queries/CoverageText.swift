/// What could not be seen, in words; the page has the same.
enum CoverageText {
  private static let words = [
    "no-keys": "not opened, as there is no key", "not-opened": "not opened by the keys there are",
    "waiting-overflow": "given up while they waited for keys",
    "truncated": "captured in part",
    "cryptex": "with encrypted header extensions",
    "unsupported": "under a protection that is not read",
    "unknown-peer": "over a relay whose other end was not seen", "tls": "under TLS",
    "stream-gap": "after a gap in their stream",
    "data-not-opened": "of data channels that were not opened",
    "redundancy": "with older payloads that were not used", "dropped": "lost while capturing",
    "outside-of-time": "of a date that no take can have",
  ]

  /// The sentence of a row of `coverage`, without its end; nil for what weakens no answer, such as
  /// packets of no call.
  ///
  /// - Parameter reason: a number of packets, and after a colon more in words.
  static func text(what: String, reason: String) -> String? {
    if what == "late-start" { return "what was before the capture began" }
    if what == "one-direction" { return "the packets of one direction" }
    if what == "cut-capture" { return "what followed where the capture is cut off" }
    guard !["ignored", "relayed-twice", "description"].contains(what) else { return nil }
    guard let words = words[what] else { return "\(what): \(reason)" }
    let count = reason.prefix { $0.isNumber }
    if count == "1" { return "1 packet \(words)" }
    return count.isEmpty ? "packets \(words)" : "\(count) packets \(words)"
  }
}
