package import Tape
import Wire

/// How far two takes tell the same, step for step: the beginning of one session under two builds,
/// or all of it.
package struct CommonRun: Hashable, Sendable, Codable {
  /// How many steps from the first one on are the same.
  package var steps = 0
  /// The time of the last one of them.
  package var atNanoseconds: Int64 = 0
  /// What differs first, in words; nil when the takes are the same to the end.
  package var difference: String?
  /// The fields of both messages side by side, when it is a message that differs.
  package var fields: [FieldPair] = []

  /// Reads two takes side by side up to the first difference.
  package init(_ left: String, _ right: String) throws(TapeError) {
    let readers = (try TapeReader(path: left), try TapeReader(path: right))
    while true {
      let before = try readers.0.chunk(steps: 1)
      let after = try readers.1.chunk(steps: 1)
      guard let before, let after else {
        if before != nil || after != nil {
          difference = "\(before == nil ? left : right) ends after step \(steps)"
        }
        return
      }
      if let found = compare(before, after) {
        difference = found
        return
      }
      steps += 1
      atNanoseconds = before.steps[0].head.at.nanoseconds
    }
  }

  private mutating func compare(_ before: TapeChunk, _ after: TapeChunk) -> String? {
    let (left, right) = (before.steps[0], after.steps[0])
    let (here, there) = (InputText(left).line, InputText(right).line)
    let inputs =
      here != there || left.inputRowCount != right.inputRowCount
      || !before.rows.equals(left.inputRows, after.rows, right.inputRows)
    if inputs {
      fields = [FieldPair(name: "input", recorded: here, replayed: there).withoutSecrets]
      if let row = left.inputRows.last, let other = right.inputRows.last,
        before.rows.table(row) == after.rows.table(other)
      {
        fields = FieldPair.pairs(
          .value(recorded: row, replayed: other, column: 0), before.rows, after.rows
        ).filter { !$0.isEqual }
      }
      return SecretText.hidden(in: "another input: \(here), and \(there)")
    }
    var outputs = RowList()
    for row in right.outputRows { outputs.append(after.rows, row) }
    if let found = StepDifference(
      recorded: before.rows, left.outputRows, replayed: outputs, comparesMedia: true)
    {
      fields = FieldPair.pairs(found, before.rows, outputs).filter { !$0.isEqual }
      return "another output after \(here)"
    }
    if left.head.deadline != right.head.deadline {
      return "another deadline after \(here): \(FieldPair.text(left.head.deadline)), and "
        + FieldPair.text(right.head.deadline)
    }
    if left.head.entropyDrawn != right.head.entropyDrawn {
      return "other random bytes drawn after \(here): \(left.head.entropyDrawn), and "
        + "\(right.head.entropyDrawn)"
    }
    return nil
  }
}
