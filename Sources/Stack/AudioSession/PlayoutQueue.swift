package import Media

/// Received audio waiting for playback: one queue per track, mixed when the device asks.
struct PlayoutQueue {
  private struct Track {
    let number: UInt32
    var blocks: [AudioBlock] = []
    /// Frames of the first block that have already been played.
    var played = 0
    var frames = 0
  }

  private var tracks: [Track] = []
  private var units: UInt64 = 0
  private(set) var overflowedFrames = 0
  private(set) var silentUnits = 0

  static let unitFrames = AudioBlock.sampleRate / 100
  private static let tracksMaximum = 64
  /// The maximum number of frames that wait in a track: one second of audio.
  ///
  /// After a longer pause of the device, only the newest audio is played.
  private static let framesMaximum = AudioBlock.sampleRate
  /// The maximum number of units that a device can request in one pull.
  static let unitsMaximum = 200

  var playedUnits: Int { Int(units) }

  mutating func append(_ block: AudioBlock, of track: UInt32) {
    guard block.frameCount > 0, block.channels > 0,
      block.samples.isEmpty || block.samples.count / block.channels >= block.frameCount
    else { return }
    var index = tracks.firstIndex { $0.number == track }
    if index == nil, tracks.count < PlayoutQueue.tracksMaximum {
      tracks.append(Track(number: track))
      index = tracks.count - 1
    }
    guard let index, block.frameCount <= PlayoutQueue.framesMaximum else {
      overflowedFrames &+= block.frameCount
      return
    }
    tracks[index].blocks.append(block)
    tracks[index].frames += block.frameCount
    while tracks[index].frames > PlayoutQueue.framesMaximum {
      let oldest = tracks[index].blocks.removeFirst()
      let left = oldest.frameCount - tracks[index].played
      tracks[index].played = 0
      tracks[index].frames -= left
      overflowedFrames += left
    }
  }

  mutating func removeAll() { tracks = [] }

  /// Returns the next 10 ms units, with silence where no audio is waiting or if `isMuted`.
  mutating func pull(_ count: Int, channels: Int, isMuted: Bool) -> RenderedAudio {
    let count = min(PlayoutQueue.unitsMaximum, max(1, count))
    let frames = count * PlayoutQueue.unitFrames
    var sum = [Int32](repeating: 0, count: frames * channels)
    var heard = 0
    var heardUnits = 0
    if !isMuted {
      for index in tracks.indices {
        let taken = mix(frames, from: index, channels: channels, into: &sum)
        if taken > 0 { heard += 1 }
        heardUnits = max(heardUnits, (taken + Self.unitFrames - 1) / Self.unitFrames)
      }
    }
    silentUnits += count - heardUnits
    defer { units += UInt64(count) }
    return RenderedAudio(
      index: units, units: count, tracks: heard,
      block: AudioBlock(samples: sum.map { Int16(clamping: $0) }, channels: channels))
  }

  /// Adds a track's next frames to the sum; returns the number of frames added.
  private mutating func mix(
    _ count: Int, from index: Int, channels: Int, into sum: inout [Int32]
  ) -> Int {
    var done = 0
    while done < count, let block = tracks[index].blocks.first {
      let part = min(count - done, block.frameCount - tracks[index].played)
      if !block.samples.isEmpty {
        let range =
          tracks[index].played * block.channels..<(tracks[index].played + part) * block.channels
        let mapped = ChannelMap.map(block.samples[range], from: block.channels, to: channels)
        for offset in mapped.indices { sum[done * channels + offset] += Int32(mapped[offset]) }
      }
      done += part
      tracks[index].played += part
      tracks[index].frames -= part
      if tracks[index].played == block.frameCount {
        tracks[index].blocks.removeFirst()
        tracks[index].played = 0
      }
    }
    return done
  }
}

/// Converts pulled audio to the device's format, and returns it in buffers of any size.
package struct PlayoutConverter {
  package let format: AudioFormat
  private var resampler: Resampler?
  private var waiting: [Int16] = []

  /// Creates an empty converter; the format must be valid.
  package init(_ format: AudioFormat) { self.format = format }

  /// The number of converted frames that can be read.
  package var frames: Int { waiting.count / format.channels }

  package mutating func append(_ block: AudioBlock) {
    let mapped = ChannelMap.map(block.samples[...], from: block.channels, to: format.channels)
    if format.sampleRate == AudioBlock.sampleRate {
      waiting.append(contentsOf: mapped)
      return
    }
    if resampler == nil {
      resampler = Resampler(
        rate: AudioBlock.sampleRate, channels: format.channels, to: format.sampleRate)
    }
    resampler?.append(mapped, into: &waiting)
  }

  /// Returns the next frames, interleaved; nil if there are too few.
  package mutating func read(_ count: Int) -> [Int16]? {
    let samples = count * format.channels
    guard waiting.count >= samples else { return nil }
    defer { waiting.removeFirst(samples) }
    return Array(waiting[..<samples])
  }
}
