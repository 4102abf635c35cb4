/// A schema view computed in one pass over the packets, which SQL would have to sort.
///
/// Its rows equal the SQL view's, value by value.
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

  /// Returns an empty list with the view's columns.
  func empty() -> ComputedRows { ComputedRows(columns.map(\.kind)) }

  static let all: [ComputedView] =
    StreamViews.all + PacketViews.all + FrameViews.all + ClearViews.all

  /// Parses a list of columns, as in `row step peer direction:t ssrc gap_ms:r`.
  static func columns(_ text: String) -> [Column] {
    text.split(separator: " ").map { word in
      let parts = word.split(separator: ":")
      let kind: ComputedRows.Kind = parts.count < 2 ? .integer : parts[1] == "t" ? .text : .real
      return Column(String(parts[0]), kind)
    }
  }
}

/// Data that a connection's computed views share, so that each pass over the packets happens once,
/// and again only after the take has grown.
final class ViewFacts {
  /// The connection, which outlives its virtual tables.
  let handle: OpaquePointer
  private let statements: StatementStore?
  private var rowFunction: RowFunction?
  private var stamp: Stamp?
  private var streamFacts: StreamFacts?
  private var streamLosses: [StreamLoss]?
  private var packetFacts: PacketFacts?
  private var clearFacts: ClearFacts?
  private var feedbackFacts: [ClearFacts.Feedback]?
  private var retransmissionFacts: ClearFacts.Retransmissions?

  init(handle: OpaquePointer, _ statements: StatementStore?) {
    self.handle = handle
    self.statements = statements
  }

  func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle, statements)
  }

  /// Passes the rows of a table to a closure, in their order, while it returns true.
  func forEachRow(
    of table: String, _ columns: String, _ body: (RowValues) -> Bool
  ) throws(SQLiteError) {
    let function: RowFunction
    if let rowFunction {
      function = rowFunction
    } else {
      function = try RowFunction(on: handle)
      rowFunction = function
    }
    try function.forEachRow(of: table, columns, statements, body)
  }

  /// Identifies a take and how much of it was written: computed rows are valid while neither
  /// changes.
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
    (streamFacts, streamLosses, packetFacts, clearFacts) = (nil, nil, nil, nil)
    (feedbackFacts, retransmissionFacts) = (nil, nil)
  }

  func streams() throws(SQLiteError) -> StreamFacts {
    try refresh()
    if let streamFacts { return streamFacts }
    let facts = try StreamFacts(self)
    streamFacts = facts
    return facts
  }

  /// Returns the loss of each stream, in their order.
  func losses() throws(SQLiteError) -> [StreamLoss] {
    try refresh()
    if let streamLosses { return streamLosses }
    let losses = try StreamLoss.all(self)
    streamLosses = losses
    return losses
  }

  func packets() throws(SQLiteError) -> PacketFacts {
    try refresh()
    if let packetFacts { return packetFacts }
    let facts = try PacketFacts(self)
    packetFacts = facts
    return facts
  }

  private func clear() throws(SQLiteError) -> ClearFacts {
    if let clearFacts { return clearFacts }
    let facts = try ClearFacts(self)
    clearFacts = facts
    return facts
  }

  func feedback() throws(SQLiteError) -> [ClearFacts.Feedback] {
    try refresh()
    if let feedbackFacts { return feedbackFacts }
    var clear = try clear()
    let facts = try clear.feedback(self)
    feedbackFacts = facts
    return facts
  }

  func retransmissions() throws(SQLiteError) -> ClearFacts.Retransmissions {
    try refresh()
    if let retransmissionFacts { return retransmissionFacts }
    var clear = try clear()
    let facts = try clear.retransmissions(self)
    retransmissionFacts = facts
    return facts
  }

  // MARK: Whose packets are whose

  /// A peer and a direction.
  struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  /// The ends of paths, as in the `path_end` view: two for observed calls.
  struct PathEnds {
    private(set) var ends: [End] = []
    private var endPlaces: [End: Int] = [:]
    private var places = PlaceTable()
    private var lists: [[Int]] = []

    /// The indexes of a path's ends.
    subscript(path: Int64) -> [Int] {
      places[UInt64(bitPattern: path), 0].map { lists[$0] } ?? []
    }

    /// Returns the index of an end; nil if no path has it.
    func place(of end: End) -> Int? { endPlaces[end] }

    fileprivate mutating func add(_ one: End, to path: Int64) {
      let end = endPlaces[one] ?? ends.count
      if end == ends.count {
        ends.append(one)
        endPlaces[one] = end
      }
      if let place = places[UInt64(bitPattern: path), 0] { return lists[place].append(end) }
      places.update(UInt64(bitPattern: path), 0, to: lists.count)
      lists.append([end])
    }
  }

  func ends() throws(SQLiteError) -> PathEnds {
    var found = PathEnds()
    let statement = try prepare("SELECT path, peer, direction FROM path_end")
    while try statement.step() {
      let (path, peer, direction) = statement.values(Int64.self, Int64.self, String.self)
      found.add(End(peer: peer, direction: direction), to: path)
    }
    return found
  }
}

/// A view's computed rows, stored as numbers: a ten-minute call has hundreds of thousands.
struct ComputedRows {
  /// A column's type.
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

  /// A value in a row.
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

  /// Reserves capacity for a number of rows.
  mutating func reserve(_ count: Int) { numbers.reserveCapacity(count * kinds.count) }

  mutating func add(_ number: Int64?) { numbers.append(number ?? Self.null) }

  /// Appends a real; nil is NULL.
  mutating func add(real: Double?) {
    // Negative zero has the same bits as the mark for NULL.
    numbers.append(real.map { Int64(bitPattern: ($0 + 0).bitPattern) } ?? Self.null)
  }

  /// Appends a text, which is stored once.
  mutating func add(text: String) { add(text: stored(text)) }

  /// Appends a text that is stored already.
  mutating func add(text: StoredText) { numbers.append(text.place) }

  /// A stored text, by its index.
  struct StoredText {
    fileprivate var place: Int64
  }

  /// Stores a text, for many rows that have it.
  mutating func stored(_ text: String) -> StoredText {
    // Most columns have two or three texts, which are faster to compare than to hash.
    if texts.count <= Self.fewTexts, let place = texts.firstIndex(of: text) {
      return StoredText(place: Int64(place))
    }
    if let place = places[text] { return StoredText(place: place) }
    let place = Int64(texts.count)
    texts.append(text)
    places[text] = place
    return StoredText(place: place)
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

  /// Returns the rows sorted by integer and text columns, NULL first: the order of a view that
  /// groups by them.
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

  /// Returns row indexes by an integer column's values.
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

/// A hash table from two numbers to an index in a list.
///
/// Views look up hundreds of thousands of packets; with a `Dictionary`, this would take most of
/// their time. Nothing is ever removed, so an empty slot ends each search.
struct PlaceTable {
  private struct Key: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private struct Slot {
    var key = Key(first: 0, second: 0)
    /// The index; negative if the slot is empty.
    var place: Int32 = -1
  }

  private var slots: [Slot]
  private var count = 0
  /// Keys without a free slot: a file can be crafted so that many collide.
  private var crowded: [Key: Int32] = [:]

  /// The number of slots to search.
  private static let searched = 32

  /// - Parameter capacity: the number of keys, if known.
  init(capacity: Int = 0) {
    var size = 64
    while size < capacity * 2 { size *= 2 }
    slots = [Slot](repeating: Slot(), count: size)
  }

  /// A key's index; nil if it has none.
  subscript(first: UInt64, second: UInt64) -> Int? {
    let key = Key(first: first, second: second)
    let found = search(key)
    if found >= 0 {
      let place = slots[found].place
      return place < 0 ? nil : Int(place)
    }
    return crowded[key].map { Int($0) }
  }

  /// Sets a key's index.
  ///
  /// - Returns: the previous index.
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

  /// Returns a key's slot, or the empty one that it would get; -1 if other keys occupy all
  /// `searched` slots.
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
