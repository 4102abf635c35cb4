import Media
public import Peer
import Speakers
import Wire

/// How loud a track of sound was in the last 100 ms, on the scales in use.
public struct TrackLevel: Hashable, Sendable {
  /// The track, as sent or as heard.
  public var track: SpeakingTrack
  /// The RMS relative to full scale in dBov: 0 is the loudest, -127 is silence.
  public var decibels: Int
  /// The share of full scale, 0 to 1 (W3C audioLevel).
  public var level: Double
  /// 0 to 100 as meters show it: comfortable speech is 50 to 70.
  public var percent: Int

  init(_ track: SpeakingTrack, _ level: SoundLevel) {
    self.track = track
    decibels = level.dbov
    self.level = level.linear
    percent = level.percent
  }
}

/// The levels of a connection's tracks, summed up over 100 ms each.
struct TrackLevels {
  private struct Meter {
    var track: SpeakingTrack
    var energy: UInt64 = 0
    var frameCount = 0
    var level: SoundLevel?
  }

  private var meters: [Meter] = []

  private static let window = AudioBlock.sampleRate / 10

  /// The tracks of which a window is full, in the order in which they began.
  var all: [TrackLevel] {
    meters.compactMap { meter in meter.level.map { TrackLevel(meter.track, $0) } }
  }

  /// Takes a block of sound.
  mutating func add(_ frame: FrameRecord) {
    guard frame.kind == .audio else { return }
    var frameCount = AudioBlock.sampleRate / 50
    if case .audio(let block) = frame.decoded { frameCount = block.frameCount }
    let track = SpeakingTrack(transceiver: frame.transceiver, isInbound: frame.isInbound)
    let known = meters.firstIndex { $0.track == track }
    if known == nil { meters.append(Meter(track: track)) }
    let index = known ?? meters.count - 1
    meters[index].energy &+= frame.energy
    meters[index].frameCount += frameCount
    guard meters[index].frameCount >= TrackLevels.window else { return }
    let level = AudioLevel.level(
      energy: meters[index].energy, frameCount: meters[index].frameCount)
    meters[index].level = SoundLevel(headerExtension: level)
    meters[index].energy = 0
    meters[index].frameCount = 0
  }

  /// Forgets a track that is no longer received.
  mutating func forget(_ transceiver: UInt32) {
    meters.removeAll { $0.track.transceiver == transceiver && $0.track.isInbound }
  }
}
