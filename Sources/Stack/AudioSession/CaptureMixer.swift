import Media
import Wire

/// Mixes all sources into one stream of 10 ms blocks.
struct CaptureMixer {
  private let channels: Int
  private let patience: Interval
  private var lines: [SourceLine] = []
  private var blocks: UInt64 = 0
  private(set) var counters = AudioDeviceCounters()

  private static let linesMaximum = 16
  /// The longest chunk accepted, in seconds.
  private static let chunkSeconds = 2

  init(_ policy: AudioSessionPolicy) {
    channels = min(2, max(1, policy.captureChannels))
    patience = .milliseconds(Int64(min(1_000, max(10, policy.starvationMilliseconds))))
  }

  /// When the next source counts as missing.
  var deadline: Instant? { lines.reduce(nil) { earliest($0, $1.deadline) } }

  /// Accepts a chunk, or reports why it is dropped.
  mutating func deliver(
    _ id: AudioSourceID, _ chunk: PCMChunk, refusal: AudioDeviceError?, at now: Instant,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    // An empty chunk is not an error: a sample buffer may have an empty block buffer.
    if chunk.data.isEmpty, chunk.format.fault == nil {
      outbox.append(.delivered(.success(0)))
      return
    }
    guard let index = index(of: id) else {
      return drop(chunk, .tooManySources, into: &outbox)
    }
    if let fault = chunk.fault ?? refusal ?? CaptureMixer.excess(chunk) {
      if lines[index].refusal != fault.name {
        lines[index].refusal = fault.name
        outbox.append(.event(.sourceRefused(id, reason: fault.name)))
      }
      return drop(chunk, fault, into: &outbox)
    }
    lines[index].refusal = nil
    prepare(index, chunk.format, into: &outbox)
    if let silent = lines[index].silentBlocks {
      outbox.append(.event(.sourceResumed(id, silentBlocks: silent)))
      report(id, "starved", "flowing", into: &outbox)
    } else if !lines[index].isExpected {
      report(id, "idle", "flowing", into: &outbox)
    }
    counters.deliveries += 1
    counters.deliveredFrames += chunk.frameCount
    if lines[index].isResampled { counters.resampledDeliveries += 1 }
    counters.overflowedBlocks += lines[index].append(chunk, at: now)
    outbox.append(.delivered(.success(chunk.frameCount)))
    mix(into: &outbox)
  }

  /// Inserts silence for sources that are overdue.
  mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<AudioSessionEffect>) {
    for index in lines.indices {
      guard let due = lines[index].deadline, due <= now else { continue }
      if lines[index].silentBlocks == nil {
        counters.starvations += 1
        report(lines[index].id, "flowing", "starved", into: &outbox)
        outbox.append(.event(.sourceStarved(lines[index].id)))
      }
      let (silent, dropped) = lines[index].fill(at: now)
      counters.silentBlocks += silent
      counters.overflowedBlocks += dropped
    }
    mix(into: &outbox)
  }

  /// Prepares a known source for audio in another format, before a chunk of it arrives.
  mutating func prepare(
    _ id: AudioSourceID, _ format: AudioFormat, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    guard format.fault == nil, let index = lines.firstIndex(where: { $0.id == id }) else {
      return
    }
    prepare(index, format, into: &outbox)
  }

  /// Stops waiting for the sources of an origin, or for all if nil, until they provide audio again.
  mutating func pause(
    _ origin: AudioSourceOrigin?, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    for index in lines.indices where origin == nil || lines[index].id.origin == origin {
      pause(index, into: &outbox)
    }
    mix(into: &outbox)
  }

  mutating func remove(_ number: UInt32, into outbox: inout Outbox<AudioSessionEffect>) {
    for index in lines.indices where lines[index].id.number == number {
      pause(index, into: &outbox)
    }
    lines.removeAll { $0.id.number == number }
    mix(into: &outbox)
  }

  // MARK: Sources

  /// Returns an error if a chunk is too long; nil otherwise.
  private static func excess(_ chunk: PCMChunk) -> AudioDeviceError? {
    guard chunk.frameCount > chunkSeconds * chunk.format.sampleRate else { return nil }
    return .chunkTooLong(frames: chunk.frameCount)
  }

  private mutating func index(of id: AudioSourceID) -> Int? {
    if let known = lines.firstIndex(where: { $0.id == id }) { return known }
    guard lines.count < CaptureMixer.linesMaximum else { return nil }
    lines.append(SourceLine(id, channels: channels, patience: patience))
    return lines.count - 1
  }

  private mutating func pause(_ index: Int, into outbox: inout Outbox<AudioSessionEffect>) {
    guard lines[index].isExpected else { return }
    let before = lines[index].silentBlocks == nil ? "flowing" : "starved"
    lines[index].pause()
    report(lines[index].id, before, "idle", into: &outbox)
  }

  private mutating func prepare(
    _ index: Int, _ format: AudioFormat, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    guard let change = lines[index].prepare(format) else { return }
    counters.formatChanges += 1
    counters.framesLostByFormatChange += change.lostFrames
    outbox.append(
      .event(
        .sourceFormatChanged(
          lines[index].id, from: change.from, to: format, lostFrames: change.lostFrames)))
  }

  private mutating func drop(
    _ chunk: PCMChunk, _ fault: AudioDeviceError, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    counters.drops += 1
    counters.droppedFrames += chunk.frameCount
    counters.dropsByReason[fault.name, default: 0] += 1
    outbox.append(.delivered(.failure(fault)))
  }

  private func report(
    _ id: AudioSourceID, _ from: String, _ to: String,
    into outbox: inout Outbox<AudioSessionEffect>
  ) {
    let machine = "audio-source-\(id.number)-\(id.tag.rawValue)"
    outbox.append(.state(machine: machine, from: from, to: to))
  }

  /// Emits a block for every 10 ms that all expected sources have provided.
  private mutating func mix(into outbox: inout Outbox<AudioSessionEffect>) {
    while true {
      let ready = lines.indices.filter { lines[$0].isExpected }
      guard !ready.isEmpty, ready.allSatisfy({ lines[$0].hasUnit }) else { return }
      var sounding: [[Int16]] = []
      for index in ready {
        if let unit = lines[index].popUnit(), !unit.isFiller { sounding.append(unit.samples) }
      }
      counters.capturedBlocks += 1
      let block = AudioBlock(samples: CaptureMixer.sum(sounding, channels), channels: channels)
      outbox.append(
        .captured(CapturedBlock(index: blocks, block: block, sources: sounding.count)))
      blocks += 1
    }
  }

  /// Returns the sum of several units, clipped.
  static func sum(_ units: [[Int16]], _ channels: Int) -> [Int16] {
    if units.count == 1 { return units[0] }
    var sum = [Int32](repeating: 0, count: AudioBlock.sampleRate / 100 * channels)
    for unit in units { ChannelMap.add(unit, to: &sum) }
    return sum.map { Int16(clamping: $0) }
  }
}
