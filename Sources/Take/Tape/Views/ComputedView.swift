/// A view of the schema whose rows are computed in one pass over the packets.
///
/// In SQL, the packets would have to be sorted first. Each value equals the value in the SQL view.
struct ComputedView: Sendable {
  let name: String
  let columns: [Column]
  /// The column that can be looked up without computing all rows; nil if there is none.
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

  /// Returns a list without rows that has the view's columns.
  func empty() -> ComputedRows { ComputedRows(columns.map(\.kind)) }

  static let all: [ComputedView] =
    StreamViews.all + PacketViews.all + FrameViews.all + ClearViews.all

  /// Parses the names and types of columns, as in `row step peer direction:t ssrc gap_ms:r`.
  static func columns(_ text: String) -> [Column] {
    text.split(separator: " ").map { word in
      let parts = word.split(separator: ":")
      let kind: ComputedRows.Kind = parts.count < 2 ? .integer : parts[1] == "t" ? .text : .real
      return Column(String(parts[0]), kind)
    }
  }
}

/// Data that the computed views of a connection share.
///
/// Each pass over the packets is made only once, unless the take has grown.
final class ViewFacts {
  /// The connection's handle, which stays open until its virtual tables are gone.
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

  /// Calls a closure for each row of a table, in order; throws if it returns false.
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

  /// Identifies a take and the last row of its `tape`; computed rows are valid until either
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

  /// Returns the loss of each stream, in the order of `streams()`.
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

  // MARK: Path ends

  /// A peer, and whether its packets are sent or received.
  struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  /// The ends of each path, as in the view `path_end`; a path of an observed call has two.
  struct PathEnds {
    private(set) var ends: [End] = []
    private var endPlaces: [End: Int] = [:]
    private var places = PlaceTable()
    private var lists: [[Int]] = []

    /// The indexes of the ends of a path.
    subscript(path: Int64) -> [Int] {
      places[UInt64(bitPattern: path), 0].map { lists[$0] } ?? []
    }

    /// Returns the index of an end; nil if no path has such an end.
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

/// The rows of a computed view, stored as numbers to save memory: ten minutes of a call have
/// hundreds of thousands of rows.
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

  /// The number that represents NULL; no count or time is that low.
  private static let null = Int64.min

  init(_ kinds: [Kind]) { self.kinds = kinds }

  var count: Int { numbers.count / max(1, kinds.count) }

  /// Reserves memory for a number of rows.
  mutating func reserve(_ count: Int) { numbers.reserveCapacity(count * kinds.count) }

  mutating func add(_ number: Int64?) { numbers.append(number ?? Self.null) }

  /// Adds a real number, or NULL for nil.
  mutating func add(real: Double?) {
    // Adding 0 turns -0.0 into 0.0, because the bits of -0.0 are the number that represents NULL.
    numbers.append(real.map { Int64(bitPattern: ($0 + 0).bitPattern) } ?? Self.null)
  }

  /// Adds a string; equal strings are stored once.
  mutating func add(text: String) { add(text: stored(text)) }

  /// Adds a string that was stored with `stored`.
  mutating func add(text: StoredText) { numbers.append(text.place) }

  /// The index of a string that is already stored.
  struct StoredText {
    fileprivate var place: Int64
  }

  /// Stores a string so that it can be added to many rows; equal strings are stored once.
  mutating func stored(_ text: String) -> StoredText {
    // Most columns have only two or three strings; comparing them is faster than hashing.
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

  /// Returns the rows sorted by integer and text columns, with NULL first.
  ///
  /// SQLite returns views that group by these columns in the same order.
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

  /// Returns the indexes of rows by their values in an integer column.
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
/// Views look up hundreds of thousands of packets; with a `Dictionary`, that would take most of
/// their time. Keys are never removed, so every search can stop at an empty slot.
struct PlaceTable {
  private struct Key: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private struct Slot {
    var key = Key(first: 0, second: 0)
    /// The index in the list; negative if the slot is empty.
    var place: Int32 = -1
  }

  private var slots: [Slot]
  private var count = 0
  /// Keys for which there was no free slot; a file can be crafted so that many keys collide.
  private var crowded: [Key: Int32] = [:]

  /// The number of slots to search for a key.
  private static let searched = 32

  /// - Parameter capacity: the number of keys, if it is known.
  init(capacity: Int = 0) {
    var size = 64
    while size < capacity * 2 { size *= 2 }
    slots = [Slot](repeating: Slot(), count: size)
  }

  /// The index of a key; nil if the table does not have the key.
  subscript(first: UInt64, second: UInt64) -> Int? {
    let key = Key(first: first, second: second)
    let found = search(key)
    if found >= 0 {
      let place = slots[found].place
      return place < 0 ? nil : Int(place)
    }
    return crowded[key].map { Int($0) }
  }

  /// Sets the index of a key.
  ///
  /// - Returns: the index that the key had before; nil if it had none.
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

  /// Returns a key's slot, or an empty one for it; -1 if other keys occupy all `searched` slots.
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
