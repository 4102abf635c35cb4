/// Cuts audio of any length into units of 10 ms: what stands between devices, which hand over what
/// they please, and a stack that takes nothing else.
public struct TenMillisecondSplitter: Sendable {
  /// Samples of a unit, over all channels.
  public let unit: Int
  private var waiting: [Int16] = []
  private var start = 0

  /// Creates an empty splitter; the rate must be a multiple of 100 Hz.
  public init(sampleRate: Int, channels: Int) {
    unit = max(1, sampleRate / 100 * channels)
  }

  /// How many samples wait for the rest of their unit.
  public var remainder: Int { waiting.count - start }

  /// Handles samples and gives each unit that they complete; what is left is kept.
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

  /// Returns what is left as a unit that ends in silence; nil when nothing is.
  public mutating func drain() -> [Int16]? {
    guard remainder > 0 else { return nil }
    let rest = waiting[start...] + repeatElement(0, count: unit - remainder)
    reset()
    return Array(rest)
  }

  /// Forgets what is left, and says how many samples that was.
  @discardableResult
  public mutating func reset() -> Int {
    defer {
      waiting.removeAll(keepingCapacity: true)
      start = 0
    }
    return remainder
  }
}
