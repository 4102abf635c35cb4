import Wire

/// Draws a peer's 32-byte secret seed from the kernel's generator (getrandom).
package func drawSeed() -> [UInt8] {
  var generator = SystemRandomNumberGenerator()
  return (0..<Entropy.seedLength).map { _ in generator.next() }
}
