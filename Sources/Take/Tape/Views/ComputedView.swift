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
  private let statements: StatementStore?
  private var stamp: Stamp?
  private var streamFacts: StreamFacts?
  private var packetFacts: PacketFacts?
  private var clearFacts: ClearFacts?

  init(handle: OpaquePointer, _ statements: StatementStore?) {
    self.handle = handle
    self.statements = statements
  }

  func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle, statements)
  }

  /// Which take it is, and how much of it there is: computed rows hold as long as neither changes.
  struct Stamp: Equatable {
    var content: Int
    var lastStep: Int64
  }

  func currentStamp() throws(SQLiteError) -> Stamp {
    let statement = try prepare("SELECT max(first_step) FROM main.tape")
    return Stamp(
      content: statements?.content ?? 0, lastStep: try statement.step() ? statement.integer(0) : 0)
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

  /// The ends of paths, as the view `path_end` has them: of calls between others two.
  struct PathEnds {
    fileprivate(set) var ends: [End] = []
    private var places = PlaceTable()
    private var lists: [[Int]] = []

    /// The places of the ends of a path.
    subscript(path: Int64) -> [Int] {
      places[UInt64(bitPattern: path), 0].map { lists[$0] } ?? []
    }

    fileprivate mutating func add(_ end: Int, to path: Int64) {
      if let place = places[UInt64(bitPattern: path), 0] { return lists[place].append(end) }
      places.update(UInt64(bitPattern: path), 0, to: lists.count)
      lists.append([end])
    }
  }

  func ends() throws(SQLiteError) -> PathEnds {
    var found = PathEnds()
    var places: [End: Int] = [:]
    let statement = try prepare("SELECT path, peer, direction FROM path_end")
    while try statement.step() {
      let (path, peer, direction) = statement.values(Int64.self, Int64.self, String.self)
      let end = End(peer: peer, direction: direction)
      let place = places[end] ?? found.ends.count
      if place == found.ends.count { found.ends.append(end) }
      places[end] = place
      found.add(place, to: path)
    }
    return found
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

  /// Makes room for so many rows.
  mutating func reserve(_ count: Int) { numbers.reserveCapacity(count * kinds.count) }

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

// MARK: - PlaceTable

/// A hash table from two numbers to a place in a list.
///
/// The views look up hundreds of thousands of packets, for most of their time where a `Dictionary`
/// does it. Nothing is ever taken out, so an empty slot ends each search.
struct PlaceTable {
  private struct Key: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private struct Slot {
    var key = Key(first: 0, second: 0)
    /// Negative: empty.
    var place: Int32 = -1
  }

  private var slots: [Slot]
  private var count = 0
  /// Keys whose slots others have: a file can be made so that many meet.
  private var crowded: [Key: Int32] = [:]

  /// How many slots are searched.
  private static let searched = 32

  /// - Parameter capacity: how many keys there will be, where that is known.
  init(capacity: Int = 0) {
    var size = 64
    while size < capacity * 2 { size *= 2 }
    slots = [Slot](repeating: Slot(), count: size)
  }

  /// The place of a key; nil where it has none.
  subscript(first: UInt64, second: UInt64) -> Int? {
    let key = Key(first: first, second: second)
    let found = search(key)
    if found >= 0 {
      let place = slots[found].place
      return place < 0 ? nil : Int(place)
    }
    return crowded[key].map { Int($0) }
  }

  /// Sets the place of a key.
  ///
  /// - Returns: the one that it had before.
  @discardableResult
  mutating func update(_ first: UInt64, _ second: UInt64, to place: Int) -> Int? {
    let key = Key(first: first, second: second)
    let found = search(key)
    guard found >= 0 else {
      return crowded.updateValue(Int32(truncatingIfNeeded: place), forKey: key).map { Int($0) }
    }
    let former = slots[found].place
    slots[found] = Slot(key: key, place: Int32(truncatingIfNeeded: place))
    guard former < 0 else { return Int(former) }
    count += 1
    if count * 2 > slots.count { grow() }
    return nil
  }

  /// The slot of a key, or the one that it would have; negative where all of them are others'.
  private func search(_ key: Key) -> Int {
    let product = (key.first ^ 0x9e37_79b9_7f4a_7c15)
      .multipliedFullWidth(by: key.second ^ 0xd6e8_feb8_6659_fd93)
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: product.high ^ product.low) & mask
    for _ in 0..<Self.searched {
      let one = slots[slot]
      if one.place < 0 || one.key == key { return slot }
      slot = (slot + 1) & mask
    }
    return -1
  }

  private mutating func grow() {
    let (old, others) = (slots, crowded)
    slots = [Slot](repeating: Slot(), count: old.count * 2)
    (count, crowded) = (0, [:])
    for slot in old where slot.place >= 0 {
      update(slot.key.first, slot.key.second, to: Int(slot.place))
    }
    for (key, place) in others { update(key.first, key.second, to: Int(place)) }
  }
}
