import Wire

/// Recognises packets that were captured more than once: on `any`, on a mirror port, on each of the
/// interfaces that they passed.
///
/// The same packet has the same addresses, identification and contents; what hops and links change
/// (hop limit, checksum, tags) does not count. Where IP gives no identification, only what comes
/// within two milliseconds is a duplicate: an application may well send the same bytes again.
struct DuplicateFilter: Sendable {
  /// Newer packets take the places of older ones; that of another one at most.
  private static let places = 1 << 14
  private static let identifiedWindow: Int64 = 1_000_000_000
  private static let anonymousWindow: Int64 = 2_000_000

  private var seen: [(digest: UInt64, at: Int64)]

  init() { seen = Array(repeating: (0, .min / 2), count: Self.places) }

  /// Whether a packet was there before; takes note of it.
  mutating func isDuplicate(_ header: InternetHeader, _ payload: RawSpan, at now: Int64) -> Bool {
    var digest = ContentDigest(seed: UInt64(header.identification) << 8 | UInt64(header.transport))
    digest.mix(header.source)
    digest.mix(header.destination)
    digest.mix(UInt64(truncatingIfNeeded: header.fragmentOffset))
    digest.mix(payload)
    let place = Int(truncatingIfNeeded: digest.value & UInt64(Self.places - 1))
    let window = header.identification == 0 ? Self.anonymousWindow : Self.identifiedWindow
    let last = seen[place]
    if last.digest == digest.value,
      abs(now.subtractingReportingOverflow(last.at).partialValue)
        <= window
    {
      return true
    }
    seen[place] = (digest.value, now)
    return false
  }
}
