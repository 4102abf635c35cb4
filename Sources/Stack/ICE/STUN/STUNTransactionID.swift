package import Wire

/// The 96 bits that tie a response to its request (RFC 8489 section 5).
package struct STUNTransactionID: Hashable, Sendable {
  package var high: UInt32
  package var low: UInt64

  package init(high: UInt32, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Draws a fresh identifier.
  package init(from entropy: EntropyStream) {
    high = entropy.integer(UInt32.self)
    low = entropy.integer(UInt64.self)
  }
}
