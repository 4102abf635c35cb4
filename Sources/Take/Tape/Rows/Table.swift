/// A storage table whose rows are the transcript of steps.
///
/// A number and the type of its rows is all there is of one here; the rest stands with that type,
/// and the meaning of every column in Schema/.
package struct Table: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  private init(_ number: UInt8) { rawValue = number }

  // The numbers are hashed and must never change.
  package static let peer = Table(1)
  package static let path = Table(2)
  package static let format = Table(3)
  package static let content = Table(4)
  package static let network = Table(5)
  package static let callRequest = Table(6)
  package static let callReply = Table(7)
  package static let signaling = Table(8)
  package static let capture = Table(9)
  package static let state = Table(10)
  package static let candidate = Table(11)
  package static let candidatePair = Table(12)
  package static let packet = Table(13)
  package static let track = Table(14)
  package static let rtcp = Table(15)
  package static let frame = Table(16)
  package static let stat = Table(17)
  package static let event = Table(18)
  package static let channel = Table(19)
  package static let message = Table(20)
  package static let level = Table(21)
  package static let speech = Table(22)
  package static let contribution = Table(23)
  package static let clock = Table(24)
  package static let actor = Table(25)
  package static let coverage = Table(26)
  package static let presence = Table(27)
  package static let carriage = Table(28)

  /// The type of each table's rows, in the order of the numbers.
  package static let rowTypes: [any TableRow.Type] = [
    PeerRow.self, PathRow.self, FormatRow.self, ContentRow.self, NetworkRow.self,
    CallRequestRow.self, CallReplyRow.self, SignalingRow.self, CaptureRow.self, StateRow.self,
    CandidateRow.self, CandidatePairRow.self, PacketRow.self, TrackRow.self, RTCPRow.self,
    FrameRow.self, StatRow.self, EventRow.self, ChannelRow.self, MessageRow.self, LevelRow.self,
    SpeechRow.self, ContributionRow.self, ClockRow.self, ActorRow.self, CoverageRow.self,
    PresenceRow.self, CarriageRow.self,
  ]

  /// All tables in the order of their numbers.
  package static let allCases = definitions.map(\.table)

  private static let definitions = rowTypes.map { TableDefinition($0) }

  /// What is told of the table by the type of its rows.
  var definition: TableDefinition { Table.definitions[Int(rawValue) - 1] }

  /// The table's name for people: that of its view, where it has one.
  package var name: String { definition.name }
  /// The table that holds the rows.
  package var storageName: String { definition.storageName }
  /// The format of takes that has the table first.
  package var since: Int64 { definition.since }

  /// The columns after `row` that are written, read, hashed and compared, in this order.
  package var columns: [TableColumn] { definition.columns }
  /// Their names.
  package var columnNames: [String] { definition.names }

  /// Those of them that takes of a format have: later ones came behind the others.
  package func columnNames(format: Int64) -> [String] {
    definition.columns.filter { $0.since <= format }.map(\.name)
  }

  /// The type of its rows.
  package var rowType: any TableRow.Type { Table.rowTypes[Int(rawValue) - 1] }

  /// The column that gives the order of the rows without a sort.
  var key: String { definition.key }

  /// Whether rows have a number by which others refer to them.
  package var isNumbered: Bool { rowType.isNumbered }

  /// The columns of the storage table in takes of a format.
  package func storageColumns(format: Int64 = TakeHeader.currentFormat) -> [String] {
    definition.storageColumns(format: format)
  }

  /// Where a column stands in a row; nil for a name that the table does not have.
  package func column(_ name: String) -> Int? { definition.names.firstIndex(of: name) }
}

extension Table: CustomStringConvertible {
  package var description: String { name }
}

/// What the type of a table's rows tells of the table.
struct TableDefinition: Sendable {
  let table: Table
  let name: String
  let storageName: String
  let since: Int64
  let columns: [TableColumn]
  let names: [String]
  /// The column that gives the order of the rows without a sort.
  let key: String
  /// Where the bytes of one column stand, when they do not stand in the table.
  let stream: ByteStream?
  /// Which column that is.
  let streamColumn: Int?
  /// The format in which the last column is stored smaller, and another one says how.
  let codedSince: Int64?

  init(_ row: any TableRow.Type) {
    table = row.table
    name = row.name
    storageName = row.storageName
    since = row.since
    codedSince = row.codedSince
    columns = row.columns
    names = columns.map(\.name)
    key = row.isNumbered ? names[0] : "row"
    streamColumn = columns.firstIndex { $0.stream != nil }
    stream = streamColumn.flatMap { [columns] in columns[$0].stream }
  }

  /// Whether the storage table says how many bytes a row has in a column of its own.
  var addsSize: Bool { stream != nil && !names.contains("size") }

  /// The columns of the storage table in takes of a format: instead of bytes that stand in a
  /// stream, how many they are and where they begin.
  func storageColumns(format: Int64) -> [String] {
    columns.filter { $0.since <= format }.flatMap { $0.stream == nil ? [$0.name] : placeColumns }
      + (hasCoding(format: format) ? ["coding"] : [])
  }

  /// Whether takes of a format say in a last column how the one before is stored.
  func hasCoding(format: Int64) -> Bool { codedSince.map { $0 <= format } ?? false }

  /// The columns that say where the bytes of the column in a stream are.
  var placeColumns: [String] { (addsSize ? ["size"] : []) + ["position"] }
}

/// How a row of a step is numbered in the file.
enum RowNumber {
  /// How many rows one step can have.
  static let perStep = 65_536

  static func first(ofStep step: Int) -> Int64 { Int64(step) << 16 }

  static func step(of row: Int64) -> Int { Int(row >> 16) }
}
