import Media
public import Peer
import RTP
import Wire

/// An audio track's level over the last 100 ms, on three common scales.
public struct TrackLevel: Hashable, Sendable {
  /// The sent or received track.
  public var track: SpeakingTrack
  /// RMS relative to full scale in dBov: 0 is the loudest, -127 is silence.
  public var decibels: Int
  /// The share of full scale, 0 to 1 (W3C audioLevel).
  public var level: Double
  /// The level from 0 to 100 as on meters: comfortable speech is at 50 to 70.
  public var percent: Int

  init(_ track: SpeakingTrack, _ level: AudioLevel) {
    self.track = track
    decibels = level.dbov
    self.level = level.linear
    percent = level.percent
  }
}

/// The levels of a connection's tracks over windows of 100 ms.
struct TrackLevels {
  private struct Meter {
    var track: SpeakingTrack
    var energy: UInt64 = 0
    var frameCount = 0
    var level: AudioLevel?
    /// The loudest level that a mixer reported for a voice; 0 is the loudest (RFC 6465).
    var loudest: UInt8?
  }

  private var meters: [Meter] = []
  /// Tracks with an audio slot, in the order in which they got their slots.
  private var occupants: [SpeakingTrack] = []

  private static let window = AudioBlock.sampleRate / 10

  /// Levels of the tracks with a complete window, in order of appearance.
  var all: [TrackLevel] {
    meters.compactMap { meter in meter.level.map { TrackLevel(meter.track, $0) } }
  }

  /// Levels of the tracks with an audio slot; silence for tracks without a complete window.
  var ofOccupants: [TrackLevel] {
    occupants.map { track in
      TrackLevel(track, meters.first { $0.track == track }?.level ?? .silence)
    }
  }

  /// Records that a track gained or lost an audio slot.
  mutating func record(_ track: SpeakingTrack, isHeld: Bool) {
    occupants.removeAll { $0 == track }
    if isHeld { occupants.append(track) }
  }

  /// Adds an audio frame's energy and mixed-in voices to the current windows; ignores video.
  mutating func add(_ frame: FrameRecord) {
    guard frame.kind == .audio else { return }
    var frameCount = AudioBlock.sampleRate / 50
    if case .audio(let block) = frame.decoded { frameCount = block.frameCount }
    var track = SpeakingTrack(transceiver: frame.transceiver, isInbound: frame.isInbound)
    add(track, energy: frame.energy, frameCount: frameCount)
    for voice in frame.contributors where frame.isInbound {
      guard let level = voice.level else { continue }
      track.contributor = voice.source
      add(track, told: level, frameCount: frameCount)
    }
  }

  private mutating func add(
    _ track: SpeakingTrack, energy: UInt64 = 0, told: UInt8? = nil, frameCount: Int
  ) {
    let known = meters.firstIndex { $0.track == track }
    if known == nil {
      guard meters.count < TrackLevels.metersMaximum else { return }
      meters.append(Meter(track: track))
    }
    let index = known ?? meters.count - 1
    meters[index].energy &+= energy
    meters[index].frameCount += frameCount
    if let told { meters[index].loudest = min(told, meters[index].loudest ?? told) }
    guard meters[index].frameCount >= TrackLevels.window else { return }
    let level =
      meters[index].loudest
      ?? AudioMeter.level(energy: meters[index].energy, frameCount: meters[index].frameCount)
    meters[index].level = AudioLevel(headerExtension: level)
    meters[index].loudest = nil
    meters[index].energy = 0
    meters[index].frameCount = 0
  }

  /// The maximum number of tracks and voices to measure; it is limited because a sender can name
  /// new voices at any time.
  private static let metersMaximum = 1024

  /// Removes a track that is no longer received, and its voices.
  mutating func forget(_ transceiver: UInt32) {
    meters.removeAll { $0.track.transceiver == transceiver && $0.track.isInbound }
    occupants.removeAll { $0.transceiver == transceiver }
  }
}
