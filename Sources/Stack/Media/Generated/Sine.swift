/// Sines from a polynomial: the C library's differ between versions and machines.
enum Sine {
  /// The sine of an angle in turns (1 is the full circle); exact to about 1e-11.
  static func ofTurns(_ turns: Double) -> Double {
    var rest = turns - turns.rounded(.down)
    var sign = 1.0
    if rest >= 0.5 {
      rest -= 0.5
      sign = -1
    }
    if rest > 0.25 { rest = 0.5 - rest }
    return sign * firstQuarter(rest * 2 * .pi)
  }

  /// The Taylor series to the 15th power, for 0 to half pi.
  private static func firstQuarter(_ angle: Double) -> Double {
    let square = angle * angle
    var term = angle
    var sum = angle
    var power = 1.0
    for _ in 0..<7 {
      term *= -square / ((power + 1) * (power + 2))
      sum += term
      power += 2
    }
    return sum
  }
}
