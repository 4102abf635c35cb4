import Media
import Peer
import RTP
import Wire

/// Sums up the blocks of audio of each track of a peer over 100 ms: the rows of `level`.
struct LevelMeter {
  /// What was heard of a track in the last tenth of a second.
  struct Sum {
    var began: Instant
    var energy: UInt64 = 0
    var samples: Int64 = 0
    var peak: UInt16 = 0
    /// The largest absolute sample with what is left of those before: libwebrtc's meter falls to a
    /// quarter in each 110 ms.
    var meter: UInt16 = 0
    /// The loudest level that the sender put into its packets; nil when it put none.
    var senderLevel: UInt8?
    var isVoice = false
    /// Who was mixed into it, with the loudest level that the mixer told of each.
    var contributors: [Contributor] = []

    mutating func add(_ contributor: Contributor) {
      guard let index = contributors.firstIndex(where: { $0.source == contributor.source }) else {
        if contributors.count < Sum.contributorsMaximum { contributors.append(contributor) }
        return
      }
      guard let level = contributor.level else { return }
      contributors[index].level = min(level, contributors[index].level ?? level)
    }

    /// A packet names 15 at most; who names others in each packet is not believed.
    private static let contributorsMaximum = 32
  }

  private struct Track {
    var transceiver: UInt32
    var isInbound: Bool
    var sum: Sum?
    var meter: UInt16 = 0
  }

  private var tracks: [Track] = []

  /// How many samples make a row: 100 ms.
  private static let window = Int64(AudioBlock.sampleRate / 10)
  /// What lies longer apart is not summed up together.
  private static let longestWindow = Interval.milliseconds(300)
  /// A transceiver number comes from this side, so there are few; more have no rows.
  private static let tracksMaximum = 1024

  /// Handles a block; returns the sum of a tenth of a second when that is full.
  mutating func add(_ frame: borrowing FrameRecord, samples: Int, at now: Instant) -> Sum? {
    let transceiver = frame.transceiver
    let isInbound = frame.isInbound
    let known = tracks.firstIndex {
      $0.transceiver == transceiver && $0.isInbound == isInbound
    }
    if known == nil {
      guard tracks.count < LevelMeter.tracksMaximum else { return nil }
      tracks.append(Track(transceiver: transceiver, isInbound: isInbound))
    }
    let index = known ?? tracks.count - 1
    var sum = tracks[index].sum ?? Sum(began: now)
    if now - sum.began > LevelMeter.longestWindow { sum = Sum(began: now) }
    sum.energy &+= frame.energy
    sum.samples += Int64(samples)
    sum.peak = max(sum.peak, frame.peak)
    if let level = frame.audioLevel { sum.senderLevel = min(level, sum.senderLevel ?? level) }
    sum.isVoice = sum.isVoice || frame.isVoice
    for contributor in frame.contributors { sum.add(contributor) }
    let isFull = sum.samples >= LevelMeter.window
    if isFull {
      sum.meter = max(sum.peak, tracks[index].meter >> 2)
      tracks[index].meter = sum.meter
    }
    tracks[index].sum = isFull ? nil : sum
    return isFull ? sum : nil
  }
}
