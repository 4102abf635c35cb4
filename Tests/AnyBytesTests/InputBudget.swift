import Foundation

/// How many damaged inputs the entrances of the stack get.
enum InputBudget {
  /// How many they get together.
  static let total = number("RETAKE_MUTATIONS") ?? 1_000_000
  /// How many each of them gets, whatever its share; nil leaves it to the shares.
  static let each = number("RETAKE_MUTATIONS_EACH")
  /// How long a suite may take: with a million inputs for each, half a day.
  static let minutes = each == nil ? 10 : 720

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  /// How many inputs an entrance gets for its share in a thousand; shares add up to 1000.
  static func count(_ perMille: Int) -> Int { each ?? total * perMille / 1000 }
}
