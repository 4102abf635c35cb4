import Foundation

/// How many damaged inputs each parser gets.
enum InputBudget {
  /// The number of inputs for all parsers together.
  static let total = number("RETAKE_MUTATIONS") ?? 1_000_000
  /// The number of inputs for each parser; nil uses the shares.
  static let each = number("RETAKE_MUTATIONS_EACH")
  /// The time limit of a suite in minutes; half a day if each parser gets a fixed number of inputs.
  static let minutes = each == nil ? 10 : 720

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  /// Returns how many inputs a parser with this share gets; the shares add up to 1000.
  static func count(_ perMille: Int) -> Int { each ?? total * perMille / 1000 }
}
