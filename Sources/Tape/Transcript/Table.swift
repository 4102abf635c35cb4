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

  /// The table's name for people: that of its view, where it has one.
  package var name: String {
    switch self {
    case .packet: "packet"
    case .frame: "frame"
    case .message: "message"
    default: storageName
    }
  }

  /// The table that holds the rows.
  package var storageName: String {
    switch self {
    case .packet: "packet_store"
    case .frame: "frame_store"
    case .message: "message_store"
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
  var format: Int64 {
    switch self {
    case .clock: 3
    default: 2
    }
  }

  /// The columns of the storage table: the bytes of packets stand in `wire`, those of frames in
  /// `media`.
  var storageColumns: [String] {
    switch self {
    case .packet: columns.dropLast() + ["size", "position"]
    case .frame: columns.dropLast() + ["position"]
    default: columns
    }
  }

  /// The columns after `row` that are written, read, hashed and compared, in this order.
  package var columns: [String] { Table.columnNames[Int(rawValue)] }

  private static let columnNames: [[String]] = {
    var names = [[String]](repeating: [], count: Int(UInt8.max) + 1)
    for table in Table.allCases {
      names[Int(table.rawValue)] = table.columnList.split(separator: " ").map { String($0) }
    }
    return names
  }()

  private var columnList: String {
    switch self {
    case .peer: "peer at_ns label role seed wall_clock_ns configuration"
    case .path: "path peer direction local remote"
    case .format:
      "format peer track kind direction codec ssrc outcome key voice width height channels samples"
    case .content: "content digest bytes"
    case .network: "peer at_ns direction kind request address remote code packets bytes"
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
