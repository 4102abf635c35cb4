/// What a stream carried, by bins of half a second: the bytes of each bin that has any.
struct PacketBins: Sendable {
  private var bin: Int64 = 0
  private var sum: Int64 = 0
  private var bins = PageColumn(.steps)
  private var bytes = PageColumn(.values)

  mutating func add(_ size: Int64, at units: Int64) {
    let now = PageTime.bin(units)
    if now != bin { close(before: now) }
    sum &+= size
  }

  private mutating func close(before next: Int64) {
    if sum != 0 {
      bins.append(bin)
      bytes.append(sum)
    }
    (bin, sum) = (next, 0)
  }

  /// What there is so far; what follows begins a list of its own.
  mutating func drain() -> PageSeries.Columns {
    close(before: bin)
    defer { self = PacketBins() }
    return [("bin", bins), ("bytes", bytes)]
  }
}

/// What became of the frames of a track, by bins of half a second.
struct FrameBins: Sendable {
  /// Of one bin that has frames.
  private struct Bin {
    var number: Int64 = 0
    var frames: Int64 = 0
    var shown: Int64 = 0
    var peak: Int64 = 0
    var concealed: Int64 = 0
    var recovered: Int64 = 0
  }

  private var open = Bin()
  private var bins = PageColumn(.steps)
  private var shown = PageColumn(.values)
  private var peak = PageColumn(.values)
  private var concealed = PageColumn(.values)
  private var recovered = PageColumn(.values)

  /// - Parameters:
  ///   - outcome: its number.
  ///   - measure: the peak of sound.
  mutating func add(outcome: Int64, measure: Int64, at units: Int64) {
    let now = PageTime.bin(units)
    if now != open.number { close(before: now) }
    open.frames += 1
    open.peak = max(open.peak, measure)
    switch outcome {
    case 0, 1, 5, 6: open.shown += 1
    case 2: open.recovered += 1
    case 3, 9: open.concealed += 1
    default: break
    }
  }

  private mutating func close(before next: Int64) {
    if open.frames > 0 {
      bins.append(open.number)
      shown.append(open.shown)
      peak.append(open.peak)
      concealed.append(open.concealed)
      recovered.append(open.recovered)
    }
    open = Bin(number: next)
  }

  /// What there is so far; what follows begins a list of its own.
  mutating func drain() -> PageSeries.Columns {
    close(before: open.number)
    defer { self = FrameBins() }
    return [
      ("bin", bins), ("shown", shown), ("peak", peak), ("concealed", concealed),
      ("recovered", recovered),
    ]
  }
}
