/// Splits audio of any length into units of 10 ms, between devices that deliver any length and a
/// stack that accepts nothing else.
public struct TenMillisecondSplitter: Sendable {
  /// Samples of a unit over all channels.
  public let unit: Int
  private var waiting: [Int16] = []
  private var start = 0

  /// Creates an empty splitter; the rate must be a multiple of 100 Hz.
  public init(sampleRate: Int, channels: Int) {
    unit = max(1, sampleRate / 100 * channels)
  }

  /// The samples that wait for a complete unit.
  public var remainder: Int { waiting.count - start }

  /// Adds samples and passes on each completed unit; the rest is kept.
  public mutating func deliver(
    _ samples: some Collection<Int16>, _ body: (_ unit: [Int16]) -> Void
  ) {
    waiting.append(contentsOf: samples)
    while waiting.count - start >= unit {
      body(Array(waiting[start..<start + unit]))
      start += unit
    }
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
  }

  /// Returns the rest as a unit padded with silence; nil if there is none.
  public mutating func drain() -> [Int16]? {
    guard remainder > 0 else { return nil }
    let rest = waiting[start...] + repeatElement(0, count: unit - remainder)
    reset()
    return Array(rest)
  }

  /// Drops the rest; returns how many samples it had.
  @discardableResult
  public mutating func reset() -> Int {
    defer {
      waiting.removeAll(keepingCapacity: true)
      start = 0
    }
    return remainder
  }
}
