import Media
import Peer
import RTP
import Stats
import Wire

// The rows of how loud it was and who spoke.
extension Transcript {
  /// Takes a block of sound into the sums of its track; adds the row of a full tenth of a second.
  mutating func appendLevel(_ frame: borrowing FrameRecord, samples: Int) {
    guard let sum = sum(frame, samples: samples) else { return }
    stampedRow(.level)
    add(.number(frame.transceiver))
    add(.text(directionName(frame.isInbound)))
    add(.number(sum.energy))
    add(.number(sum.samples))
    add(.number(sum.peak))
    add(.number(sum.meter))
    add(.number(sum.senderLevel))
    add(.flag(sum.isVoice))
    for contributor in sum.contributors {
      stampedRow(.contribution)
      add(.number(frame.transceiver))
      add(.text(directionName(frame.isInbound)))
      add(.number(contributor.source))
      add(.number(contributor.level.map { -Int64($0) }))
    }
  }

  /// The loudest voices, and how loud they are.
  mutating func appendLoudest(_ volumes: [SpeakerVolume]) {
    let list = volumes.map { volume in
      DetailText(members(of: volume.track) + [("dbov", .integer(Int64(volume.decibels)))]).json
    }
    stampedRow(.event)
    add(.text("loudest"))
    add(.text("{\"speakers\":[\(list.joined(separator: ","))]}"))
  }

  /// The name of a voice.
  func members(of track: SpeakingTrack) -> [(String, StatsValue?)] {
    [
      ("contributor", track.contributor.map { .integer(Int64($0)) }),
      ("direction", .text(directionName(track.isInbound))),
      ("track", .integer(Int64(track.transceiver))),
    ]
  }

  mutating func append(_ speech: SpeechRecord) {
    stampedRow(.speech)
    add(.number(speech.track.transceiver))
    add(.text(directionName(speech.track.isInbound)))
    add(.number(speech.track.contributor))
    add(.text(speech.phase))
    // Here alone a peer tells its own time.
    let clock = words.clock
    add(.number((speech.from + clock).nanoseconds))
    add(.number((speech.to + clock).nanoseconds))
    add(.number(speech.blocks))
    add(.number(speech.decibels))
  }
}
