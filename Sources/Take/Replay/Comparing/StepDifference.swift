import Tape
import Wire

/// The first thing in which a re-executed step differs from its recording.
enum StepDifference {
  /// A column of two rows of one table; row numbers are those of the two lists.
  case value(recorded: Int, replayed: Int, column: Int)
  /// Rows of different tables, or a row that only one side has.
  case row(recorded: Int?, replayed: Int?)
  case deadline(recorded: Instant?, replayed: Instant?)
  case entropy(recorded: UInt64, replayed: UInt64)

  /// Whether the difference is inside of the machine and shows in no output yet.
  var isInside: Bool {
    switch self {
    case .deadline, .entropy: true
    case .value, .row: false
    }
  }

  /// Compares the rows of a step; nil when they are equal.
  init?(
    recorded: borrowing RowList, _ range: Range<Int>, replayed: borrowing RowList,
    comparesMedia: Bool
  ) {
    let count = replayed.count
    if recorded.equals(range, replayed, 0..<count) { return nil }
    for index in 0..<max(range.count, count) {
      let row = range.lowerBound + index
      guard index < count, index < range.count, recorded.table(row) == replayed.table(index) else {
        self = .row(
          recorded: index < range.count ? row : nil, replayed: index < count ? index : nil)
        return
      }
      let ignored =
        comparesMedia ? nil : StepDifference.codecColumns[Int(replayed.table(index).rawValue)]
      if let column = recorded.firstDifference(row, replayed, index, ignoring: ignored) {
        self = .value(recorded: row, replayed: index, column: column)
        return
      }
    }
    return nil
  }

  /// Compares what is told of the machine after the step; nil when it is equal.
  init?(head: StepHead, deadline: Instant?, entropyDrawn: UInt64) {
    if head.deadline != deadline {
      self = .deadline(recorded: head.deadline, replayed: deadline)
    } else if head.entropyDrawn != entropyDrawn {
      self = .entropy(recorded: head.entropyDrawn, replayed: entropyDrawn)
    } else {
      return nil
    }
  }

  /// The column of each table that only a codec can tell, by the table's number.
  private static let codecColumns: [Int?] =
    [nil] + Table.allCases.map { table in table.columns.firstIndex(where: \.needsCodec) }
}
