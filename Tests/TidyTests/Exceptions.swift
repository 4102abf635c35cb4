/// Necessary violations of the rules, each with its reason.
///
/// These lists may only get shorter.
enum Exceptions {
  /// Modules from outside the package in the deterministic core.
  static let outsideImports: [Allowance] = []

  /// Clocks, randomness, threads, input and output in the deterministic core.
  static let impurities: [Allowance] = []

  /// Loops over dictionaries and sets in the deterministic core whose order has no effect.
  static let unorderedLoops: [Allowance] = []

  /// Functions that are longer than a screen.
  static let longFunctions: [Allowance] = []
}
