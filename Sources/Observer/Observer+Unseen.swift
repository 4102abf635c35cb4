import RTP
import Wire

// What is said at the end of streams of which not all is known.
extension Observer {
  /// How many streams a row of coverage names.
  private static let namedMaximum = 6

  /// Tells of streams without a clock, of those that were judged by their packets, and of those
  /// that no description announces.
  mutating func tellDeductions() {
    var unknown: [String] = []
    var deduced: [String] = []
    var unannounced: [String] = []
    for entry in streamTable.entries where entry.statistics.packets > 0 {
      let stream = entry.stream
      if stream.repairs == nil, stream.clockRate == 0, let type = entry.lastPayloadType {
        unknown.append("ssrc \(stream.ssrc) with payload type \(type)")
      } else if let meaning = stream.payloads.first(where: { $0.how == .deduced }),
        meaning.codec != "rtx"
      {
        let codec = meaning.codec.isEmpty ? meaning.kind?.rawValue ?? "" : meaning.codec
        let isSure = entry.deduction.isSure ? "by its payloads" : "likely, by its clock"
        deduced.append("ssrc \(stream.ssrc) is \(codec)/\(meaning.clockRate) \(isSure)")
      }
      if isUnannounced(entry) { unannounced.append("ssrc \(stream.ssrc)") }
    }
    tell(.unknownClock, unknown, "; --map says what a payload type stands for")
    tell(.deduced, deduced, "")
    tell(.unannounced, unannounced, "")
  }

  /// Whether the description of a stream's end names sources, and not this one, and its packets
  /// name no section.
  private func isUnannounced(_ entry: StreamTable.Entry) -> Bool {
    let (stream, index) = (entry.stream, entry.stream.transport - 1)
    guard !entry.hasExtensions, stream.repairs == nil, transports.indices.contains(index),
      let number = transports[index].descriptions[stream.from]
    else { return false }
    let description = descriptionTable.entries[number]
    return !description.sources.isEmpty && description.source(stream.ssrc) == nil
  }

  private mutating func tell(_ kind: CoverageReport.Kind, _ names: [String], _ hint: String) {
    guard !names.isEmpty else { return }
    let more = names.count > Observer.namedMaximum ? ", and others" : ""
    let list = names.prefix(Observer.namedMaximum).joined(separator: ", ")
    tell(kind, by: UInt64(names.count), detail: list + more + hint)
  }

  /// Whether something says that the media of a transport is in the clear: who looks on, or the
  /// descriptions that were given, whatever addresses they have.
  func isClearBySettings(_ index: Int) -> Bool {
    guard transports[index].dtls.facts == nil else { return false }
    if settings.isClear { return true }
    guard transports[index].descriptions.allSatisfy({ $0 == nil }) else { return false }
    let kinds = floatingDescriptions.map { descriptionTable.entries[$0].protectsMedia }
    return kinds.contains(false) && !kinds.contains(true)
  }
}
