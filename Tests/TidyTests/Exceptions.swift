/// What breaks a rule and has to, each with the reason.
///
/// These lists may only get shorter.
enum Exceptions {
  /// Modules from outside the package in the deterministic core.
  static let outsideImports: [Allowance] = []

  /// Clocks, randomness, threads, input and output in the deterministic core.
  static let impurities: [Allowance] = []

  /// Loops over dictionaries and sets in the deterministic core whose order shows nowhere.
  static let unorderedLoops: [Allowance] = []

  /// Functions that are longer than a screen.
  static let longFunctions: [Allowance] = []
}
