import Tape
import Wire

/// The first place where the replayed stack behaved differently from the recording.
package struct Divergence: Hashable, Sendable, Codable {
  /// The maximum number of preceding inputs that are listed.
  package static let historyLength = 10

  package var step: Int
  package var atNanoseconds: Int64
  package var actor: UInt32
  /// The peer number of the actor; nil if it is not an endpoint.
  package var peer: UInt32?
  package var peerLabel: String
  /// The layer that differs: `ice`, `dtls`, `rtp`, `rtcp`, `signaling`, `media`, `stats`, `api`,
  /// `timer`, `entropy` or another one.
  package var layer: String
  /// The output that differs, as in `packet out STUN Binding request to 127.0.0.1:5000`.
  package var what: String
  /// The field that differs: a column or, within a packet's bytes, a protocol field with the
  /// offset.
  package var field: String
  package var recorded: String
  package var replayed: String
  /// The input of the step, on one line.
  package var input: String
  /// The inputs of the preceding steps, one line each and the latest last.
  package var previous: [String]
  /// The fields of both messages; empty if only the machine's state differs.
  package var fields: [FieldPair]
  /// The machine's state after the step, such as its deadline and how many random bytes it drew.
  package var inside: [FieldPair]
  /// The first later output that shows a difference in state; nil if the step's own outputs differ,
  /// or if no later output showed it.
  package var shows: String?
  /// Other differences after the step that may hint at the cause.
  package var notes: [String]
  /// The command that replays the take up to the step.
  package var command: String

  init(
    _ found: StepCheck.Finding, consequence: StepCheck.Finding? = nil, label: String,
    path: String, snapshot: (any MachineSnapshot)? = nil
  ) {
    let step = found.step
    self.step = step.head.number
    atNanoseconds = step.head.at.nanoseconds
    actor = step.head.actor
    peer = step.peer
    peerLabel = label
    input = InputText(step).line
    previous = found.history.map { InputText($0).line }
    command = ShellText.command("retake", "replay", path, "--until", "step:\(step.head.number)")
    notes = []
    let place = PacketPlace(path: path, peer: step.peer, before: step.head.number)
    fields = FieldPair.pairs(
      found.difference, found.recordedRows, found.replayedRows, open: place.data)
    inside = FieldPair.inside(found, snapshot)
    shows = consequence.map { later in
      let finding = Finding(
        later.difference, later.recordedRows, later.replayedRows,
        inputRows: later.step.inputRows)
      return "step \(later.step.head.number), \(timeText(later.step.head.at.nanoseconds)): "
        + "\(finding.what), \(finding.field): \(finding.recorded) recorded, "
        + "\(finding.replayed) replayed"
    }
    let finding = Finding(
      found.difference, found.recordedRows, found.replayedRows, inputRows: step.inputRows)
    layer = finding.layer
    what =
      finding.what + (place.remote(found.difference, found.recordedRows).map { " to \($0)" } ?? "")
    field = finding.field
    let values = FieldPair(
      name: finding.field, recorded: finding.recorded, replayed: finding.replayed
    ).withoutSecrets
    recorded = values.recorded ?? ""
    replayed = values.replayed ?? ""
    if step.head.entropyDrawn != found.entropyDrawn, layer != "entropy" {
      notes.append(
        "random bytes drawn: \(step.head.entropyDrawn) recorded, \(found.entropyDrawn) replayed")
    }
    if step.head.deadline != found.deadline, layer != "timer" {
      notes.append(
        "deadline: \(FieldPair.exact(step.head.deadline)) recorded, "
          + "\(FieldPair.exact(found.deadline)) replayed")
    }
  }
}

extension Divergence: CustomStringConvertible {
  /// The divergence on several lines, as `retake replay` prints it.
  package var description: String {
    var lines = [
      "diverged at step \(step), \(timeText(atNanoseconds)), "
        + ActorWords.name(actor: actor, peer: peer)
        + (peerLabel.isEmpty ? "" : " (\(peerLabel))") + ", layer \(layer)",
      "  what      \(what)",
      "  field     \(field)",
      "  recorded  \(recorded)",
      "  replayed  \(replayed)",
    ]
    lines += notes.map { "  note      \($0)" }
    if let shows { lines.append("  shows     \(shows)") }
    lines += FieldPair.table(fields, title: "fields", marksNew: true)
    lines += FieldPair.table(inside, title: "inside", marksNew: false)
    lines.append("  input     \(input)")
    if !previous.isEmpty { lines.append("  inputs before it, latest last:") }
    lines += previous.map { "    \($0)" }
    lines.append("  stop just before it:  \(command)")
    return lines.map(PrintableText.line).joined(separator: "\n")
  }

  /// The divergence as a JSON object.
  package var json: String { CanonicalJSON.text(self, isIndented: true) }
}

/// Where a difference is, and the recorded and replayed values.
private struct Finding {
  var layer = ""
  var what = ""
  var field = ""
  var recorded = ""
  var replayed = ""

  init(
    _ difference: StepDifference, _ left: RowList, _ right: RowList, inputRows: Range<Int>
  ) {
    switch difference {
    case .deadline(let before, let after):
      layer = "timer"
      what = "the deadline after the step"
      field = "deadline"
      recorded = FieldPair.exact(before)
      replayed = FieldPair.exact(after)
    case .entropy(let before, let after):
      layer = "entropy"
      what = "the random bytes drawn since genesis"
      field = "drawn"
      recorded = String(before)
      replayed = String(after)
    case .row(let before, let after):
      let isInput = before.map { inputRows.contains($0) } ?? false
      let recordedText = before.map { RowText(left, $0, isInput: isInput) }
      let replayedText = after.map { RowText(right, $0) }
      layer = (recordedText ?? replayedText)?.layer ?? ""
      what = recordedText?.title ?? "an output that was not recorded"
      if isInput { what = "input " + what }
      field = "the output as a whole"
      recorded = recordedText?.title ?? "nothing"
      replayed = replayedText?.title ?? "nothing"
    case .value(let before, let after, let column):
      // The file may have been altered, so the replayed row determines the layer.
      layer = RowText(right, after).layer
      let isInput = inputRows.contains(before)
      what = (isInput ? "input " : "") + RowText(left, before, isInput: isInput).title
      let name = left.table(before).columnNames[column]
      if case .blob(let old) = left[before, column], case .blob(let new) = right[after, column] {
        setBytes(name, old, new, isPacket: left.table(before) == .packet)
      } else if case .text(let old) = left[before, column],
        case .text(let new) = right[after, column]
      {
        setText(name, old, new)
      } else {
        field = name
        recorded = left.text(before, column)
        replayed = right.text(after, column)
      }
    }
  }

  private mutating func setBytes(
    _ name: String, _ old: [UInt8], _ new: [UInt8], isPacket: Bool
  ) {
    let offset = firstDifference(old, new)
    let place = isPacket ? PacketText.field(of: old, at: offset) : name
    field = "\(place), byte \(offset)"
    recorded = excerpt(old, around: offset)
    replayed = excerpt(new, around: offset)
  }

  /// Sets the field and its two values; long values are cut to the part around the difference.
  private mutating func setText(_ name: String, _ old: String, _ new: String) {
    field = name
    let longest = 100
    let equal = zip(old, new).prefix { $0.0 == $0.1 }.count
    guard max(old.count, new.count) > longest else {
      (recorded, replayed) = (old, new)
      return
    }
    field += ", character \(equal)"
    let start = max(0, equal - longest / 4)
    func excerpt(_ text: String) -> String {
      let part = text.dropFirst(start).prefix(longest)
      return (start > 0 ? "..." : "") + part
        + (start + part.count < text.count ? "..." : "") + " (\(text.count) characters)"
    }
    (recorded, replayed) = (excerpt(old), excerpt(new))
  }
}
