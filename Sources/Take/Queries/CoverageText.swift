import Wire

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
    "unread-layer": "in layers that are not opened",
  ]

  /// The sentence of a row of `coverage`, without its end; nil for what weakens no answer, such as
  /// packets of no call.
  ///
  /// - Parameter reason: a number of packets, and after a colon more in words.
  static func text(what: String, reason: String) -> String? {
    if what == "late-start" { return "what was before the capture began" }
    if what == "one-direction" { return "the packets of one direction" }
    if what == "unknown-clock" { return "the jitter of streams whose clock nothing tells" }
    if what == "damaged-capture" { return "what is damaged in the capture" }
    if what == "cut-capture" { return "what followed where the capture is cut off" }
    if what == "unused-key" { return "what the SRTP keys are for, which open no packet" }
    if what == "unused-key-log" { return "the calls that the key log is of" }
    if what == "reported" { return "packets and media, as another stack reported what it counted" }
    if ["no-clock", "report-times", "strange-lines"].contains(what) { return reason }
    let weakensNothing = ["ignored", "relayed-twice", "description", "deduced", "unannounced"]
    guard !weakensNothing.contains(what) else { return nil }
    guard let words = words[what] else { return "\(what): \(reason)" }
    let count = reason.prefix { $0.isNumber }
    return count.isEmpty
      ? "packets \(words)" : "\(counted(Int64(count) ?? .max, "packet")) \(words)"
  }
}
