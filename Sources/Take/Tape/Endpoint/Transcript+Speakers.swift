import Media
import Peer
import RTP
import Stats
import Wire

// The rows of how loud it was and who spoke.
extension Transcript {
  /// Takes a block of audio into the sums of its track; adds the row of a full tenth of a second.
  mutating func appendLevel(_ frame: borrowing FrameRecord, samples: Int) {
    let notes = notes(EndpointNotes.init)
    guard let sum = notes.meter.add(frame, samples: samples, at: at) else { return }
    let direction = Direction(isInbound: frame.isInbound)
    add(
      LevelRow(
        track: frame.transceiver, direction: direction, energy: sum.energy, samples: sum.samples,
        peak: sum.peak, meter: sum.meter, senderLevel: sum.senderLevel, isVoice: sum.isVoice))
    for contributor in sum.contributors {
      add(
        ContributionRow(
          track: frame.transceiver, direction: direction, contributor: contributor.source,
          level: contributor.level.map { -Int($0) }))
    }
  }

  /// The loudest voices, and how loud they are.
  mutating func appendLoudest(_ volumes: [SpeakerVolume]) {
    let list = volumes.map { volume in
      JSONText.object(members(of: volume.track) + [("dbov", .integer(volume.decibels))])
    }
    add(EventRow(type: "loudest", detail: JSONText.object([("speakers", .list(list))]).text))
  }

  /// The name of a voice.
  func members(of track: SpeakingTrack) -> [(String, JSONText?)] {
    [
      ("contributor", track.contributor.map { .integer(Int64($0)) }),
      ("direction", .text(directionName(track.isInbound))),
      ("track", .integer(Int64(track.transceiver))),
    ]
  }

  mutating func append(_ speech: SpeechRecord) {
    // Here alone a peer tells its own time.
    let clock = words.clock
    add(
      SpeechRow(
        track: speech.track.transceiver,
        direction: Direction(isInbound: speech.track.isInbound),
        contributor: speech.track.contributor, phase: speech.phase, from: speech.from + clock,
        to: speech.to + clock, blocks: speech.blocks, decibels: speech.decibels))
  }
}
