/// W3C RTCBundlePolicy: what an offer allows a peer that does not know BUNDLE (RFC 9429 section
/// 4.1.1).
///
/// There is one transport whatever the policy; it decides which new m-sections of an offer are
/// marked `bundle-only`, so that such a peer rejects them instead of expecting a transport of their
/// own.
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
}
