/// A view of the schema that is computed in one pass over the packets where SQL would sort them
/// all.
///
/// Its rows equal those of the SQL view, value by value.
struct ComputedView: Sendable {
  let name: String
  let columns: [Column]
  /// The column with fast look-ups; nil if all rows are computed at once.
  var key: String?
  let rows: @Sendable (ViewFacts, _ key: Int64?) throws(SQLiteError) -> ComputedRows

  struct Column: Sendable {
    var name: String
    var kind: ComputedRows.Kind

    init(_ name: String, _ kind: ComputedRows.Kind = .integer) {
      self.name = name
      self.kind = kind
    }
  }

  /// An empty list with the columns of the view.
  func empty() -> ComputedRows { ComputedRows(columns.map(\.kind)) }

  static let all: [ComputedView] =
    StreamViews.all + PacketViews.all + FrameViews.all + ClearViews.all

  /// Parses a list of columns such as `row step peer direction:t ssrc gap_ms:r`.
  static func columns(_ text: String) -> [Column] {
    text.split(separator: " ").map { word in
      let parts = word.split(separator: ":")
      let kind: ComputedRows.Kind = parts.count < 2 ? .integer : parts[1] == "t" ? .text : .real
      return Column(String(parts[0]), kind)
    }
  }
}

/// Data that the computed views of a connection share, so that each pass over the packets is made
/// once, and repeated only when the take has grown.
final class ViewFacts {
  /// The connection, which outlives its virtual tables.
  let handle: OpaquePointer
  private var stamp: Int64 = -1
  private var streamFacts: StreamFacts?
  private var packetFacts: PacketFacts?
  private var clearFacts: ClearFacts?

  init(handle: OpaquePointer) { self.handle = handle }

  func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle)
  }

  /// A stamp of the take's size: computed rows are valid as long as it does not change.
  func currentStamp() throws(SQLiteError) -> Int64 {
    let statement = try prepare("SELECT max(first_step) FROM main.tape")
    return try statement.step() ? statement.integer(0) : 0
  }

  private func refresh() throws(SQLiteError) {
    let now = try currentStamp()
    guard now != stamp else { return }
    stamp = now
    (streamFacts, packetFacts, clearFacts) = (nil, nil, nil)
  }

  func streams() throws(SQLiteError) -> StreamFacts {
    try refresh()
    if let streamFacts { return streamFacts }
    let facts = try StreamFacts(self)
    streamFacts = facts
    return facts
  }

  func packets() throws(SQLiteError) -> PacketFacts {
    try refresh()
    if let packetFacts { return packetFacts }
    let facts = try PacketFacts(self)
    packetFacts = facts
    return facts
  }

  func clear() throws(SQLiteError) -> ClearFacts {
    try refresh()
    if let clearFacts { return clearFacts }
    let facts = try ClearFacts(self)
    clearFacts = facts
    return facts
  }

  // MARK: Whose packets are whose

  /// A peer and a direction.
  struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  /// The ends of each path, as in the view `path_end`; calls between others have two.
  func ends() throws(SQLiteError) -> (ends: [End], byPath: [Int64: [Int]]) {
    var ends: [End] = []
    var places: [End: Int] = [:]
    var byPath: [Int64: [Int]] = [:]
    let statement = try prepare("SELECT path, peer, direction FROM path_end")
    while try statement.step() {
      let (path, peer, direction) = statement.values(Int64.self, Int64.self, String.self)
      let end = End(peer: peer, direction: direction)
      let place = places[end] ?? ends.count
      if place == ends.count { ends.append(end) }
      places[end] = place
      byPath[path, default: []].append(place)
    }
    return (ends, byPath)
  }
}

/// Computed rows of a view, stored as numbers: a ten-minute call has hundreds of thousands.
struct ComputedRows {
  /// The type of a column.
  enum Kind {
    case integer
    case real
    case text

    var sqlType: String {
      switch self {
      case .integer: "INTEGER"
      case .real: "REAL"
      case .text: "TEXT"
      }
    }
  }

  /// One value of a row.
  enum Cell {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
  }

  private let kinds: [Kind]
  private var numbers: [Int64] = []
  private var texts: [String] = []
  private var places: [String: Int64] = [:]

  private static let fewTexts = 8

  /// Represents NULL; counts and times never reach this value.
  private static let null = Int64.min

  init(_ kinds: [Kind]) { self.kinds = kinds }

  var count: Int { numbers.count / max(1, kinds.count) }

  mutating func add(_ number: Int64?) { numbers.append(number ?? Self.null) }

  /// Appends a real; nil is NULL.
  mutating func add(real: Double?) {
    // Negative zero has the same bits as the mark of NULL.
    numbers.append(real.map { Int64(bitPattern: ($0 + 0).bitPattern) } ?? Self.null)
  }

  /// Appends a text, which is stored once.
  mutating func add(text: String) {
    // Most columns have two or three texts, which are faster to compare than to hash.
    if texts.count <= Self.fewTexts, let place = texts.firstIndex(of: text) {
      return numbers.append(Int64(place))
    }
    if let place = places[text] { return numbers.append(place) }
    let place = Int64(texts.count)
    texts.append(text)
    places[text] = place
    numbers.append(place)
  }

  func cell(_ row: Int, _ column: Int) -> Cell {
    guard row < count, column < kinds.count else { return .null }
    let number = numbers[row * kinds.count + column]
    guard number != Self.null else { return .null }
    switch kinds[column] {
    case .integer: return .integer(number)
    case .real:
      let real = Double(bitPattern: UInt64(bitPattern: number))
      return real.isNaN ? .null : .real(real)
    case .text: return .text(texts[Int(number)])
    }
  }

  /// The rows sorted by integer and text columns, NULL first: the order of a view that groups by
  /// them.
  func sorted(by columns: [Int]) -> ComputedRows {
    func isBefore(_ left: Int, _ right: Int) -> Bool {
      for column in columns {
        let one = numbers[left * kinds.count + column]
        let other = numbers[right * kinds.count + column]
        guard one != other else { continue }
        guard kinds[column] == .text, one != Self.null, other != Self.null else {
          return one < other
        }
        return texts[Int(one)] < texts[Int(other)]
      }
      return false
    }
    var copy = self
    copy.numbers = []
    copy.numbers.reserveCapacity(numbers.count)
    for row in (0..<count).sorted(by: isBefore) {
      copy.numbers += numbers[row * kinds.count..<(row + 1) * kinds.count]
    }
    return copy
  }

  /// The row indexes by the values of an integer column.
  func index(of column: Int) -> [Int64: [Int]] {
    var index: [Int64: [Int]] = [:]
    for row in 0..<count {
      let number = numbers[row * kinds.count + column]
      if number != Self.null { index[number, default: []].append(row) }
    }
    return index
  }
}
