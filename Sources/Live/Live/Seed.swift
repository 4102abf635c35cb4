import Wire

/// Draws the 32 secret bytes that a peer starts from, out of the kernel's generator (getrandom).
package func drawSeed() -> [UInt8] {
  var generator = SystemRandomNumberGenerator()
  return (0..<Entropy.seedLength).map { _ in generator.next() }
}
