import Tape
import Wire

// The speakers as people and programs read them.
extension SpeakerTimeline {
  /// Each person's time as bars, what was said and by whom, then the levels, as aligned columns.
  package func text(_ look: TableLook = TableLook()) -> String {
    guard !participants.isEmpty else {
      return unheard.map { "Nobody can say who spoke: \($0).\n" }
        ?? "There is no audio in this take.\n"
    }
    let times = TextTable(
      columns: ["from", "to", "seconds", "who", "what", "dBov"],
      rows: entries.map { entry in
        [
          seconds(entry.from), seconds(entry.to), seconds(entry.to - entry.from),
          participants[entry.participant].title, entry.what,
          entry.mean.map(tenths) ?? "",
        ]
      }, alignsRight: [true, true, true, false, false, true], wraps: true)
    let levels = TextTable(
      columns: ["who", "speaks", "dominates", "dBov", "loudest", "of 100", "silent"],
      rows: participants.map { participant in
        [
          participant.title, seconds(participant.speakingNanoseconds),
          seconds(participant.dominantNanoseconds),
          participant.meanTenthsOfDecibels.map(tenths) ?? "", String(participant.loudestDecibels),
          String(participant.loudestPercent),
          "\(seconds(participant.silentNanoseconds)) of \(seconds(participant.heardNanoseconds))",
        ]
      }, alignsRight: [false, true, true, true, true, true, true], wraps: true)
    guard !entries.isEmpty else { return "Nobody spoke.\n\n" + levels.text(look) }
    let chart = talk.chart(look)
    return (chart.isEmpty ? "" : chart + "\n") + times.text(look) + "\n" + levels.text(look)
  }

  /// The same as a JSON object.
  package var json: String {
    let who = participants.map { participant in
      JSONText.object([
        ("participant", .text(participant.name)), ("person", participant.person.map { .text($0) }),
        ("peer", .integer(participant.peer)),
        ("track", .integer(participant.track)), ("direction", .text(participant.direction)),
        ("contributor", participant.contributor.map { .integer($0) }),
        ("speaking_ns", .integer(participant.speakingNanoseconds)),
        ("dominant_ns", .integer(participant.dominantNanoseconds)),
        ("dbov", participant.meanTenthsOfDecibels.map { .number(Double($0) / 10) }),
        ("loudest_dbov", .integer(Int64(participant.loudestDecibels))),
        ("loudest_percent", .integer(Int64(participant.loudestPercent))),
        ("heard_ns", .integer(participant.heardNanoseconds)),
        ("silent_ns", .integer(participant.silentNanoseconds)),
      ])
    }
    let what = entries.map { entry in
      JSONText.object([
        ("participant", .text(participants[entry.participant].name)), ("what", .text(entry.what)),
        ("from_ns", .integer(entry.from)), ("to_ns", .integer(entry.to)),
        ("dbov", entry.mean.map { .number(Double($0) / 10) }),
      ])
    }
    // One on a line, for people who look into the file.
    let lists = [
      ("participants", JSONText.list(who, separator: ",\n")),
      ("times", JSONText.list(what, separator: ",\n")),
    ]
    let members = lists + talk.members
    return "{" + members.map { "\"\($0.0)\":\($0.1.text)" }.joined(separator: ",\n") + "}"
  }

  private typealias Entry = (from: Int64, to: Int64, participant: Int, what: String, mean: Int?)

  /// Speech and dominance in the order of their beginnings.
  private var entries: [Entry] {
    var entries: [Entry] = speeches.map {
      ($0.fromNanoseconds, $0.toNanoseconds, $0.participant, "speaks", $0.meanTenthsOfDecibels)
    }
    entries += dominances.map {
      ($0.fromNanoseconds, $0.toNanoseconds, $0.participant, "dominates", nil)
    }
    return entries.sorted {
      ($0.from, $0.participant, $1.what) < ($1.from, $1.participant, $0.what)
    }
  }

  private func seconds(_ nanoseconds: Int64) -> String { thousandths(nanoseconds / 1_000_000) }

  private func tenths(_ value: Int) -> String {
    "\(value < 0 ? "-" : "")\(value.magnitude / 10).\(value.magnitude % 10)"
  }
}
