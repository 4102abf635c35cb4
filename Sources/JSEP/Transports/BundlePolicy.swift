/// W3C RTCBundlePolicy: what an offer allows a peer that does not know BUNDLE (RFC 9429 section
/// 4.1.1).
///
/// It decides which new m-sections of an offer have a transport of their own until the peer bundles
/// them, and which are marked `bundle-only`, so that a peer that does not rejects them.
public enum BundlePolicy: String, Hashable, Sendable, Codable {
  /// The first section of each kind could stand alone, further ones of that kind could not.
  case balanced
  /// Every section could stand alone.
  case maxCompat = "max-compat"
  /// Only the first section could stand alone.
  case maxBundle = "max-bundle"

  /// Whether a new section is left to the bundle when sections with these kinds come before it.
  func leavesToBundle<Kind: Equatable>(_ kind: Kind, after others: [Kind]) -> Bool {
    switch self {
    case .balanced: others.contains(kind)
    case .maxCompat: false
    case .maxBundle: !others.isEmpty
    }
  }

  /// Whether an offer gathers candidates for each new section.
  ///
  /// RFC 9429 has balanced offers gather for one section of each kind. Here they gather once:
  /// nearly every peer bundles, and who meets one that does not asks for max-compat.
  var gathersForEachSection: Bool { self == .maxCompat }
}
