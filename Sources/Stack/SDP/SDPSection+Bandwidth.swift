/// The `b=` lines of an m-section (RFC 8866 section 5.8): limits on what the writer receives.
extension SDPSection {
  /// The most that the peer may send, in bits per second of payload without the headers of RTP and
  /// below; nil if there is no limit.
  ///
  /// That is `TIAS` (RFC 3890), or else `AS` reduced as in RFC 9429 section 5.10. A negative
  /// number, which libwebrtc once wrote for "no limit", is ignored.
  package var receiveBitrateLimit: UInt64? {
    if let bits = bandwidth("TIAS") { return bits }
    guard let kilobits = bandwidth("AS") else { return nil }
    // 5 % are for RTCP, and 50 packets per second have headers of 40 bytes each.
    let (bits, overflows) = kilobits.multipliedReportingOverflow(by: 950)
    let headers: UInt64 = 50 * 40 * 8
    return overflows ? nil : bits - min(bits, headers)
  }

  /// The value of the first line of a type.
  private func bandwidth(_ type: String) -> UInt64? {
    for case .other(UInt8(ascii: "b"), let value) in lines {
      guard let (name, number) = value.cut(at: UInt8(ascii: ":")), name == type else { continue }
      return UInt64(decimal: number)
    }
    return nil
  }
}
