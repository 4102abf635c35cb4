/// A storage table whose rows are the transcript of steps.
///
/// The numbers are hashed and must never change; the meaning of every column stands in Schema/.
package enum Table: UInt8, CaseIterable, Sendable {
  case peer = 1
  case path = 2
  case format = 3
  case content = 4
  case network = 5
  case callRequest = 6
  case callReply = 7
  case signaling = 8
  case capture = 9
  case state = 10
  case candidate = 11
  case candidatePair = 12
  case packet = 13
  case track = 14
  case rtcp = 15
  case frame = 16
  case stat = 17
  case event = 18
  case channel = 19
  case message = 20
  case level = 21
  case speech = 22
  case contribution = 23
  case clock = 24
  case actor = 25
  case coverage = 26

  /// The table's name for people: that of its view, where it has one.
  package var name: String {
    switch self {
    case .packet: "packet"
    case .frame: "frame"
    case .message: "message"
    case .actor: "actor"
    default: storageName
    }
  }

  /// The table that holds the rows.
  package var storageName: String {
    switch self {
    case .packet: "packet_store"
    case .frame: "frame_store"
    case .message: "message_store"
    case .actor: "actor_store"
    case .callRequest: "call_request"
    case .callReply: "call_reply"
    case .candidatePair: "candidate_pair"
    default: "\(self)"
    }
  }

  /// The column that gives the order of the rows without a sort.
  var key: String {
    switch self {
    case .path, .format, .content: storageName
    default: "row"
    }
  }

  /// The format of takes that has the table first.
  package var since: Int64 {
    switch self {
    case .clock: 3
    case .actor, .coverage: 4
    default: 2
    }
  }

  /// The columns of the storage table: the bytes of packets stand in `wire`, those of frames in
  /// `media`.
  func storageColumns(format: Int64) -> [String] {
    switch self {
    case .packet: columns(format: format).dropLast() + ["size", "position"]
    case .frame: columns(format: format).dropLast() + ["position"]
    default: columns(format: format)
    }
  }

  /// The same for takes of today.
  var storageColumns: [String] { storageColumns(format: TakeHeader.currentFormat) }

  /// The columns after `row` that are written, read, hashed and compared, in this order.
  package var columns: [String] { Table.all[Int(rawValue)].map(\.name) }

  /// Those of them that takes of a format have: later ones came behind the others.
  package func columns(format: Int64) -> [String] {
    Table.all[Int(rawValue)].filter { $0.format <= format }.map(\.name)
  }

  /// Where a column stands in a row; beyond every row for a name that the table does not have.
  package func column(_ name: String) -> Int {
    Table.all[Int(rawValue)].firstIndex { $0.name == name } ?? .max
  }

  /// A column with the format that it came with.
  private struct Column {
    var name: String
    var format: Int64

    /// Reads `name`, or `name@format` for one that came later than its table.
    init(_ text: Substring, _ table: Table) {
      let parts = text.split(separator: "@")
      name = String(parts[0])
      format = parts.count > 1 ? Int64(parts[1]) ?? table.since : table.since
    }
  }

  private static let all: [[Column]] = {
    var all = [[Column]](repeating: [], count: Int(UInt8.max) + 1)
    for table in Table.allCases {
      all[Int(table.rawValue)] = table.columnList.split(separator: " ").map { Column($0, table) }
    }
    return all
  }()

  private var columnList: String {
    switch self {
    case .peer: "peer at_ns label role seed wall_clock_ns configuration actor@4"
    case .path: "path peer direction local remote"
    case .format:
      "format peer track kind direction codec ssrc outcome key voice width height channels samples"
    case .content: "content digest bytes"
    case .network: "peer at_ns direction kind request address remote code packets@3 bytes@3"
    case .callRequest: "peer at_ns call name arguments"
    case .callReply: "peer at_ns call reply error"
    case .signaling: "peer at_ns direction transport type message"
    case .capture: "peer at_ns track kind width height channels samples content"
    case .state: "peer at_ns machine from_state to_state"
    case .candidate:
      """
      peer at_ns type candidate_type foundation component protocol priority address port \
      related_address related_port username_fragment extensions
      """
    case .candidatePair:
      """
      peer at_ns pair local local_type remote remote_type base state nominated selected priority \
      requests_sent requests_received responses_sent responses_received consent_requests_sent \
      current_round_trip_time total_round_trip_time
      """
    case .packet:
      "at_ns path ssrc marker_type sequence rtp_time transport_sequence bytes"
    case .track:
      """
      peer at_ns track mid kind direction ssrc codec payload_type clock_rate transport_sequence_id
      """
    case .rtcp: "peer at_ns direction type ssrc fields"
    case .frame:
      "at_ns format rtp_time size quantiser audio_level peak energy digest bytes"
    case .stat: "peer at_ns call id type timestamp_ms members"
    case .event: "peer at_ns type detail"
    case .channel:
      """
      peer at_ns channel state remote label protocol id ordered max_packet_life_time \
      max_retransmits negotiated priority messages_sent bytes_sent messages_received bytes_received
      """
    case .message: "peer at_ns direction channel call binary size digest bytes"
    case .level: "peer at_ns track direction energy samples peak meter sender_level voice"
    case .contribution: "peer at_ns track direction contributor dbov"
    case .speech: "peer at_ns track direction contributor phase from_ns to_ns blocks decibels"
    case .clock: "peer at_ns added_ns"
    case .actor: "actor at_ns kind label configuration seed"
    case .coverage: "actor at_ns peer from_ns to_ns what reason"
    }
  }
}

/// How a row of a step is numbered in the file.
enum RowNumber {
  /// How many rows one step can have.
  static let perStep = 65_536

  static func first(ofStep step: Int) -> Int64 { Int64(step) << 16 }

  static func step(of row: Int64) -> Int { Int(row >> 16) }
}
