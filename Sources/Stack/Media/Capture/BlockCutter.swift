/// Cuts audio of any length into blocks of 20 ms and converts it to the encoder's channels.
struct BlockCutter {
  /// Samples per channel and block.
  static let blockLength = 960
  /// The longest accepted input: ten seconds.
  private static let longestInput = 480_000

  private let channels: Int
  /// Whether samples are kept, rather than only their number.
  private let keepsSamples: Bool
  private var samples: [Int16] = []
  /// Samples per channel that wait for a full block.
  private(set) var pendingCount = 0

  init(channels: Int, keepsSamples: Bool) {
    self.channels = channels
    self.keepsSamples = keepsSamples
  }

  mutating func removeAll() {
    samples.removeAll(keepingCapacity: true)
    pendingCount = 0
  }

  /// Appends audio and returns the blocks that are now full, oldest first.
  mutating func append(_ block: AudioBlock) -> [AudioBlock] {
    let length = BlockCutter.blockLength
    let count = min(max(block.frameCount, 0), BlockCutter.longestInput)
    if count == length, pendingCount == 0, block.channels == channels {
      return [keepsSamples ? block : AudioBlock(blank: length, channels: channels)]
    }
    if keepsSamples { store(block, count) }
    pendingCount += count
    var blocks: [AudioBlock] = []
    var start = 0
    while pendingCount >= length {
      pendingCount -= length
      guard keepsSamples else {
        blocks.append(AudioBlock(blank: length, channels: channels))
        continue
      }
      let end = start + length * channels
      blocks.append(AudioBlock(samples: Array(samples[start..<end]), channels: channels))
      start = end
    }
    samples.removeFirst(start)
    return blocks
  }

  /// Appends a block's samples in the encoder's channels; a block without content is silence.
  private mutating func store(_ block: AudioBlock, _ count: Int) {
    let stride = block.channels
    guard stride > 0, block.samples.count / stride >= count else {
      samples.append(contentsOf: repeatElement(0, count: count * channels))
      return
    }
    switch (stride, channels) {
    case (channels, _):
      samples.append(contentsOf: block.samples[..<(count * channels)])
    case (1, _):
      for index in 0..<count {
        for _ in 0..<channels { samples.append(block.samples[index]) }
      }
    default:
      // With other channel counts, the first two are mixed.
      for index in 0..<count {
        let sum = Int32(block.samples[index * stride]) + Int32(block.samples[index * stride + 1])
        for _ in 0..<channels { samples.append(Int16(sum >> 1)) }
      }
    }
  }
}
