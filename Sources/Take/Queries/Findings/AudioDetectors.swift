import Tape
import Wire

// Rules about audio.

extension FindingRule {
  /// Seconds in a row of which a fifth was concealed, without what hides no loss.
  static func findConcealment(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for track in facts.tracks where track.direction == .inbound && track.kind == "audio" {
      func share(_ voice: CallFacts.Voice) -> Bool {
        let concealed = voice.concealed -| voice.spared
        return Double(voice.blocks) >= limits["least_blocks"] && voice.concealed < voice.blocks
          && Double(concealed) * 100 >= limits["least_share"] * Double(voice.blocks)
      }
      var second = 0
      while second < track.voices.count {
        guard share(track.voices[second]) else {
          second +|= 1
          continue
        }
        var (last, blocks, concealed) = (second, Int64(0), Int64(0))
        while last < track.voices.count, share(track.voices[last]) {
          blocks +|= Int64(track.voices[last].blocks)
          concealed +|= Int64(track.voices[last].concealed -| track.voices[last].spared)
          last +|= 1
        }
        let end = track.voices[last -| 1].lastConcealed +| blockNanoseconds
        found.append(
          Detection(
            "concealed-audio", peer: track.peer, from: track.voices[second].firstConcealed, to: end,
            "\(concealed) of \(blocks) blocks were concealed (\(percent(concealed, of: blocks)))"
              + ", as their packets were lost or late", track: track.track, direction: .inbound,
            kind: "audio",
            impact: FindingImpact(
              concealed: Double(concealed) * Double(blockNanoseconds) / 1e9,
              share: Double(concealed) / Double(max(blocks, 1)), count: concealed)))
        second = last
      }
    }
    return found
  }

  /// How long a block lasts as a rule.
  private static let blockNanoseconds: Int64 = 20_000_000

  static func findSilence(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for silence in facts.voices.silences {
      let track = facts.tracks[silence.place]
      let isDead = facts.voices.loud[silence.place] == 0
      let length = silence.to -| silence.from
      let spoken =
        isDead
        ? 0
        : try connection.integer(
          """
          SELECT sum(min(to_ns, \(silence.to)) - max(from_ns, \(silence.from))) FROM speaker
          WHERE peer = \(track.peer)
            AND (track <> \(track.track) OR direction <> '\(track.direction.rawValue)')
            AND from_ns < \(silence.to) AND to_ns > \(silence.from)
          """) ?? 0
      guard isDead || Double(length - spoken) >= limits["least_unspoken_s"] * 1e9 else { continue }
      found.append(
        Detection(
          "silent-audio", peer: track.peer, from: silence.from, to: silence.to,
          "\(silence.blocks) blocks in a row were digital silence"
            + (isDead ? ": it never gave a sound" : ""), track: track.track,
          direction: track.direction, kind: "audio", impact: FindingImpact(count: silence.blocks)))
    }
    return found
  }
}
