import Wire

/// The packets of a take in memory, read in one pass over their rows.
///
/// RTP packets are grouped by stream; all others are listed in `others`. Each packet has the
/// position of its bytes in `wire`.
struct PacketFacts {
  struct Packet {
    var row: Int64
    var at: Int64
    var size: Int64
    /// The position of the packet's bytes in `wire`.
    var position: Int64
    var end: Int32
    /// The index of the packet's stream in `streams`.
    var stream: Int32
    var ssrc: UInt32
    var rtpTime: UInt32
    /// The transport-wide sequence number; 65,536 if there is none.
    var transportSequence: UInt32
    var sequence: UInt16
    var payloadType: UInt8
    var marker: UInt8

    /// RTP time and sequence number as a single number, which mostly increases within a stream.
    var moment: UInt64 { PacketFacts.moment(rtpTime, sequence) }
  }

  /// The packets that have one SSRC at one end.
  struct Stream {
    var end: Int
    var ssrc: UInt32
    fileprivate(set) var count = 0
    /// The index in `order` at which the stream's packets begin.
    fileprivate var start = 0
  }

  /// A packet that is not RTP; both ends of its path may be in the take, as in an observed call.
  struct Other {
    var row: Int64
    var at: Int64
    var size: Int64
    /// The position of the packet's bytes in `wire`.
    var position: Int64
    var path: Int64
    /// The sender of an RTCP packet; nil for other protocols.
    var ssrc: UInt32?
  }

  let paths: ViewFacts.PathEnds
  var ends: [ViewFacts.End] { paths.ends }
  private(set) var packets: [Packet] = []
  private(set) var streams: [Stream] = []
  private(set) var others: [Other] = []
  private var streamPlaces = PlaceTable()
  /// The indexes of all packets, grouped by stream.
  private var order: [Int32] = []
  /// For each end, whether each of the 128 payload types carries media.
  private var mediaTypes: [Bool]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    paths = try facts.ends()
    mediaTypes = [Bool](repeating: false, count: paths.ends.count * 128)
    let tracks = try facts.prepare(
      "SELECT DISTINCT peer, direction, payload_type FROM payload WHERE codec <> 'rtx'")
    while try tracks.step() {
      let end = ViewFacts.End(peer: tracks.integer(0), direction: tracks.text(1) ?? "")
      guard let place = paths.place(of: end) else { continue }
      let type = UInt8(truncatingIfNeeded: tracks.integer(2))
      if type < 128 { mediaTypes[place * 128 + Int(type)] = true }
    }
    // Reserves memory for as many packets as there can be. Unused memory costs nothing, but a
    // growing array would be copied.
    let rows = Int(try TakeSchema.rowBytes(facts.handle, nil) / Self.rowBytes)
    packets.reserveCapacity(min(rows, Self.maximum))
    try facts.forEachRow(
      of: "packet_store",
      """
      row, at_ns, path, size, ssrc, marker_type, sequence, rtp_time, transport_sequence, position
      """
    ) { row in
      add(row)
      return packets.count + others.count < Self.limit
    }
    sort()
  }

  /// The usual size of a packet's row, in bytes.
  private static let rowBytes: Int64 = 44

  /// The maximum number of packets in memory: ten times what an hour of a typical call has.
  static let maximum = 6_000_000
  /// The number of entries in memory at which reading stops.
  ///
  /// A packet has an entry for each of its ends, at most two, and the take may grow while it is
  /// read.
  static let limit = 4 * maximum

  private mutating func add(_ row: RowValues) {
    let path = row.integer(2)
    let list = paths[path]
    guard !list.isEmpty else { return }
    guard !row.isNull(5) else {
      others.append(
        Other(
          row: row.integer(0), at: row.integer(1), size: row.integer(3), position: row.integer(9),
          path: path, ssrc: row.isNull(4) ? nil : UInt32(truncatingIfNeeded: row.integer(4))))
      return
    }
    let kind = UInt8(truncatingIfNeeded: row.integer(5))
    var packet = Packet(
      row: row.integer(0), at: row.integer(1), size: row.integer(3), position: row.integer(9),
      end: 0, stream: 0, ssrc: UInt32(truncatingIfNeeded: row.integer(4)),
      rtpTime: UInt32(truncatingIfNeeded: row.integer(7)),
      transportSequence: row.isNull(8)
        ? 1 << 16 : UInt32(UInt16(truncatingIfNeeded: row.integer(8))),
      sequence: UInt16(truncatingIfNeeded: row.integer(6)), payloadType: kind & 127,
      marker: kind >> 7)
    for end in list {
      packet.end = Int32(truncatingIfNeeded: end)
      let stream = place(ofStream: end, packet.ssrc)
      packet.stream = Int32(truncatingIfNeeded: stream)
      streams[stream].count += 1
      packets.append(packet)
    }
  }

  private mutating func place(ofStream end: Int, _ ssrc: UInt32) -> Int {
    if let known = streamPlaces[UInt64(end), UInt64(ssrc)] { return known }
    streamPlaces.update(UInt64(end), UInt64(ssrc), to: streams.count)
    streams.append(Stream(end: end, ssrc: ssrc))
    return streams.count - 1
  }

  /// Fills `order` with the indexes of all packets, grouped by stream.
  private mutating func sort() {
    var next: [Int] = []
    var start = 0
    for place in streams.indices {
      streams[place].start = start
      next.append(start)
      start += streams[place].count
    }
    order = [Int32](repeating: 0, count: packets.count)
    for (place, packet) in packets.enumerated() {
      let stream = Int(packet.stream)
      order[next[stream]] = Int32(truncatingIfNeeded: place)
      next[stream] += 1
    }
  }

  /// Returns the indexes of the packets in a stream, in the order of their rows.
  func places(ofStream stream: Int) -> ArraySlice<Int32> {
    order[streams[stream].start..<streams[stream].start + streams[stream].count]
  }

  /// Returns the index of the stream with the given SSRC at an end; nil if there is none.
  func stream(_ end: Int, _ ssrc: UInt32) -> Int? { streamPlaces[UInt64(end), UInt64(ssrc)] }

  func isMedia(_ packet: Packet) -> Bool {
    mediaTypes[Int(packet.end) * 128 + Int(packet.payloadType)]
  }

  static func moment(_ rtpTime: UInt32, _ sequence: UInt16) -> UInt64 {
    UInt64(rtpTime) << 16 | UInt64(sequence)
  }
}

// MARK: - OrderedTable

/// A table of values whose keys are numbers that mostly come in ascending order, such as times.
///
/// A look-up then usually finds its value next to the previous one, whereas a hash table of this
/// size would access memory at random.
struct OrderedTable<Value> {
  private(set) var keys: [UInt64] = []
  private(set) var values: [Value] = []
  private var isSorted = true
  /// The index that the last look-up found.
  private var cursor = 0

  /// The maximum distance over which `append` moves a key to its place; `sort` moves keys that are
  /// farther away.
  private static var nearby: Int { 64 }

  init() {}

  mutating func reserve(_ count: Int) {
    keys.reserveCapacity(count)
    values.reserveCapacity(count)
  }

  /// Adds a value after the values with the same key.
  mutating func append(_ value: Value, at key: UInt64) {
    guard let last = keys.last, last > key else {
      keys.append(key)
      return values.append(value)
    }
    let limit = max(0, keys.count - Self.nearby)
    var place = keys.count
    while place > limit, keys[place - 1] > key { place -= 1 }
    guard place == 0 || keys[place - 1] <= key else {
      isSorted = false
      keys.append(key)
      return values.append(value)
    }
    keys.insert(key, at: place)
    values.insert(value, at: place)
  }

  /// Sorts the values by key, once all are added; values with the same key keep their order.
  mutating func sort() {
    guard !isSorted else { return }
    let order = keys.indices.sorted { (keys[$0], $0) < (keys[$1], $1) }
    keys = order.map { keys[$0] }
    values = order.map { values[$0] }
    isSorted = true
  }

  /// Sorts the values, and combines values with the same key.
  mutating func sort(joining join: (inout Value, Value) -> Void) {
    sort()
    guard zip(keys, keys.dropFirst()).contains(where: { $0 == $1 }) else { return }
    var (joinedKeys, joined): ([UInt64], [Value]) = ([], [])
    for (key, value) in zip(keys, values) {
      if joinedKeys.last == key {
        join(&joined[joined.count - 1], value)
      } else {
        joinedKeys.append(key)
        joined.append(value)
      }
    }
    (keys, values) = (joinedKeys, joined)
  }

  /// Returns the first value with the given key; nil if there is none.
  mutating func value(at key: UInt64) -> Value? {
    let place = firstPlace(notBelow: key)
    return place < keys.count && keys[place] == key ? values[place] : nil
  }

  /// Returns the index of the first key that is at least `key`; the search begins at the last
  /// result.
  mutating func firstPlace(notBelow key: UInt64) -> Int {
    var low = 0
    var high = keys.count
    var step = 1
    if cursor < high, keys[cursor] < key {
      low = cursor + 1
      while low + step < high, keys[low + step] < key {
        low += step + 1
        step *= 2
      }
      high = min(high, low + step)
    } else {
      high = min(cursor, high)
      while high >= step, keys[high - step] >= key {
        high -= step
        step *= 2
      }
      low = max(0, high - step + 1)
    }
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    cursor = low
    return low
  }
}

/// Reads the bytes of datagrams from `wire`, where neighbours are mostly in the same piece.
package final class WireReader {
  private let pieces: SQLiteStatement
  /// The number of the piece that is loaded.
  private var piece: Int64 = -1
  private var isThere = false

  private static let pieceLength = Int64(WirePiece.length)
  /// The maximum size in bytes of a datagram.
  private static let longest: Int64 = 65_535

  private static let query = "SELECT bytes FROM wire WHERE piece = ?1"

  init(_ facts: ViewFacts) throws(SQLiteError) { pieces = try facts.prepare(Self.query) }

  package init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    pieces = try connection.prepare(Self.query)
  }

  /// Returns the bytes at a position, or fewer if the take lacks some of them.
  package func bytes(at position: Int64, count: Int64) throws(SQLiteError) -> [UInt8] {
    guard position >= 0, (1...Self.longest).contains(count) else { return [] }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(count))
    var offset = Int(position % Self.pieceLength)
    let last = (position +| (count - 1)) / Self.pieceLength
    for number in position / Self.pieceLength...last {
      guard try move(to: number) else { return bytes }
      let piece = pieces.lentBytes(0).dropFirst(offset)
      bytes.append(contentsOf: piece.prefix(Int(count) - bytes.count))
      offset = 0
    }
    return bytes
  }

  /// Returns the byte at a position; nil if the take lacks it.
  func byte(at position: Int64) throws(SQLiteError) -> UInt8? {
    guard position >= 0, try move(to: position / Self.pieceLength) else { return nil }
    return pieces.lentBytes(0).dropFirst(Int(position % Self.pieceLength)).first
  }

  private func move(to number: Int64) throws(SQLiteError) -> Bool {
    guard number != piece else { return isThere }
    // If the statement fails, no piece is loaded.
    piece = -1
    pieces.reset()
    pieces.bind(number, at: 1)
    isThere = try pieces.step()
    piece = number
    return isThere
  }
}
