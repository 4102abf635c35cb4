/// What was removed from a take, and which version of Retake removed it; stored as the number
/// `take.redaction`.
package struct Redaction: Hashable, Sendable {
  /// The parts of a take that can be removed.
  package struct Parts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Encoded and captured audio and video.
    package static let media = Parts(rawValue: 1)
    /// Keys, certificates, credentials, tokens, and the seed for a peer's random values.
    package static let keys = Parts(rawValue: 2)
    /// IP addresses and host names.
    package static let addresses = Parts(rawValue: 4)
    /// Names of people, rooms, streams, tracks, channels and programs.
    package static let names = Parts(rawValue: 8)
    /// Messages on data channels.
    package static let messages = Parts(rawValue: 16)

    /// All parts; a take without them can be published.
    package static let all: Parts = [.media, .keys, .addresses, .names, .messages]

    /// The parts with their names on the command line.
    package static let named: [(name: String, part: Parts)] = [
      ("media", .media), ("keys", .keys), ("addresses", .addresses), ("names", .names),
      ("messages", .messages),
    ]

    /// The parts' names on the command line.
    package var names: [String] {
      Parts.named.filter { contains($0.part) }.map(\.name)
    }
  }

  package var parts: Parts
  /// Whether the rows can no longer be executed, in which case a replay only checks their digests.
  package var isFactsOnly: Bool
  /// The version of Retake that redacted the take, such as `0.1.0`.
  package var version: String

  package init(_ parts: Parts, isFactsOnly: Bool, version: String) {
    (self.parts, self.isFactsOnly, self.version) = (parts, isFactsOnly, version)
  }

  private static let factsOnly: Int64 = 1 << 5

  /// Decodes the number in a `take` row; fails for 0, which means that nothing was removed.
  package init?(number: Int64) {
    guard number != 0 else { return nil }
    parts = Parts(rawValue: UInt8(truncatingIfNeeded: number) & 31)
    isFactsOnly = number & Redaction.factsOnly != 0
    version = [24, 16, 8].map { String(number >> Int64($0) & 255) }.joined(separator: ".")
  }

  /// The number for the `take` row: the parts and `isFactsOnly` in the lowest byte, and a byte
  /// above it for each component of the version.
  package var number: Int64 {
    let places = version.split(separator: ".").prefix(3).map { Int64($0) ?? 0 }
    let packed = zip(places, [24, 16, 8] as [Int64]).reduce(0) { $0 | ($1.0 & 255) << $1.1 }
    return packed | Int64(parts.rawValue) | (isFactsOnly ? Redaction.factsOnly : 0)
  }

  /// A sentence that says what was removed.
  package var sentence: String {
    let list = parts.names
    let what =
      list.count < 2
      ? list.joined() : list.dropLast().joined(separator: ", ") + " and " + (list.last ?? "")
    let promise: String
    if isFactsOnly {
      promise = "its rows are only checked by their digests"
    } else if parts.contains(.keys) {
      promise =
        "recorded DTLS results are used" + (parts.contains(.media) ? ", and frames too" : "")
    } else if parts.contains(.media) {
      promise = "recorded frames are used instead of the codecs"
    } else {
      promise = "all of it is executed"
    }
    return "\(what) replaced by retake redact \(version); in a replay \(promise)"
  }
}

extension TakeHeader {
  /// What was removed from the take; nil if nothing was.
  package var redacted: Redaction? { Redaction(number: redaction) }
}
