/// How much a finding matters, in the words of rtcstats.
package enum FindingSeverity: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Worth knowing; nothing is wrong.
  case info = 1
  /// May be meant: a microphone taken away, an encoder held down by its application.
  case low
  /// Costs quality that somebody may notice.
  case medium
  /// Somebody noticed: a picture that stood still, a voice that was not heard.
  case high
  /// The call, or the media of one side, did not happen.
  case critical

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }

  package var name: String { "\(self)" }

  /// The severity of a name; nil for another word.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}
