import Peer
import SCTP
import Testing
import Wire

@testable import Queries
@testable import Tape

struct QueryTests {
  private func text(_ path: String, _ sql: String, _ format: SQLConsole.Format = .csv) throws
    -> String
  {
    var text = ""
    try SQLConsole.run(path: path, sql: sql, format: format) { text += $0 }
    return text
  }

  @Test(arguments: Table.allCases)
  func theCodeAndTheSchemaHaveTheSameColumns(_ table: Table) throws {
    let folder = try TakeFolder()
    let connection = try TakeFile.open(try folder.record([]))
    let statement = try connection.prepare(
      "SELECT name, type, \"notnull\", hidden FROM pragma_table_xinfo('\(table.storageName)')")
    var stored: [String] = []
    while try statement.step() {
      let (name, type) = (statement.text(0) ?? "", statement.text(1))
      // Hidden value 2 marks `step`, which is computed.
      guard statement.integer(3) == 0, name != "row" else { continue }
      stored.append(name)
      guard let column = table.columns.first(where: { $0.name == name }) else { continue }
      #expect(type == column.kind.sqlType, "\(table).\(name)")
      // SQLite adds a column to an existing table only if it may be null.
      let isKey = table.isNumbered && stored.count == 1
      guard !isKey, column.since == table.since else { continue }
      #expect((statement.integer(2) == 0) == column.isOptional, "\(table).\(name)")
    }
    #expect(stored == table.storageColumns())
  }

  @Test func packetsAreQueriedByTheWordsOfTheField() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 4, payload: 10))
    #expect(
      try text(
        path,
        """
        SELECT step, peer, at_ns, direction, local, remote, size, protocol, ssrc, payload_type,
          sequence, rtp_time, marker, transport_sequence FROM packet LIMIT 2
        """)
          == """
          step,peer,at_ns,direction,local,remote,size,protocol,ssrc,payload_type,sequence,rtp_time,\
          marker,transport_sequence\r
          2,1,-60000,in,127.0.0.1:5000,10.0.0.1:6000,30,rtp,3735928559,96,0,4026531840,1,7\r
          3,1,5000011,out,127.0.0.1:5000,10.0.0.1:6000,30,rtp,3735928559,96,1,4026534840,1,8\r\n
          """)
  }

  @Test func theViewReturnsTheBytesOfEveryPacket() throws {
    let folder = try TakeFolder()
    var steps = [SampleSteps.call(packets: 0, payload: 0)[0]]
    let sizes = [0, 1, 8_130, 40, 0, 1_200, 8_152, 20_000, 3, 65_507, 0]
    for size in sizes {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) }
      steps.append(
        StepRecord(
          peer: 1, at: .zero, input: .datagram(SampleSteps.datagram(bytes), arrival: .zero),
          outputs: [], deadline: nil, entropyDrawn: 0))
    }
    let path = try folder.record(steps)
    let statement = try TakeFile.open(path).prepare("SELECT bytes, size FROM packet ORDER BY row")
    for size in sizes {
      #expect(try statement.step())
      #expect(statement.integer(1) == size)
      let expected = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) }
      #expect(statement.bytes(0) == expected, "\(size)")
    }
    #expect(try TapeAudit.run(path: path).alteration == nil)
  }

  @Test func protocolsAreDistinguishedByTheirFirstBytes() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let lines = try text(
      path,
      "SELECT DISTINCT protocol, ssrc IS NOT NULL, sequence IS NOT NULL FROM packet ORDER BY 1, 2")
    #expect(
      lines.split(separator: "\r\n").dropFirst()
        == ["dtls,0,0", "other,0,0", "rtcp,1,0", "rtp,1,1", "stun,0,0"])
  }

  @Test func everyViewAnswers() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let connection = try TakeFile.open(path)
    let views = try connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")
    var count = 0
    while try views.step() {
      let name = views.text(0) ?? ""
      #expect(try !text(path, "SELECT * FROM \(name)").isEmpty, "\(name)")
      count += 1
    }
    #expect(count >= 10)
  }

  @Test func lossIsCountedAcrossTheWrapOfSequenceNumbers() throws {
    let folder = try TakeFolder()
    var steps = [SampleSteps.call(packets: 0, payload: 0)[0]]
    for sequence: UInt16 in [65_533, 65_534, 0, 0, 1, 4, 3] {
      steps.append(
        StepRecord(
          peer: 1, at: .zero,
          input: .datagram(
            SampleSteps.datagram(SampleSteps.rtp(sequence: sequence)), arrival: .zero),
          outputs: [], deadline: nil, entropyDrawn: 0))
    }
    let path = try folder.record(steps)
    #expect(
      try text(path, "SELECT expected, received, lost FROM loss")
        == "expected,received,lost\r\n8,6,2\r\n")
  }

  @Test func callsStandWithTheirReplies() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let rows = try text(
      path, "SELECT name, arguments FROM call GROUP BY call ORDER BY call LIMIT 2")
    #expect(
      rows
        == "name,arguments\r\ncreateOffer,\"{\"\"iceRestart\"\":true}\"\r\n"
        + "setLocalDescription,{}\r\n"
    )
  }

  @Test func messagesAndChannelsAreQueriedByTheWordsOfTheField() throws {
    let folder = try TakeFolder()
    var closed = SampleSteps.channel
    closed.state = .closed
    func step(_ input: PeerInput, _ outputs: [PeerOutput], at: Int64) -> StepRecord {
      StepRecord(
        peer: 1, at: Instant(nanoseconds: at), input: input, outputs: outputs, deadline: nil,
        entropyDrawn: 0)
    }
    let text8 = Array("grüß".utf8)
    let path = try folder.record([
      step(.genesis(SampleSteps.genesis), [], at: 0),
      step(
        .call(id: 1, .createDataChannel(SampleSteps.channel.options)),
        [.event(.dataChannel(SampleSteps.channel))], at: 10),
      step(
        .send(id: 2, DataMessage(channel: 3, isBinary: false, bytes: text8)),
        [.reply(id: 2, .done)], at: 20),
      step(
        .send(id: 3, DataMessage(channel: 3, isBinary: true, bytes: [1, 2])),
        [.reply(id: 3, .failure(PeerError(name: "TypeError", message: "no")))], at: 30),
      step(
        .deadline,
        [
          .event(.message(DataMessage(channel: 3, isBinary: true, bytes: [9, 9, 9]))),
          .event(.message(DataMessage(channel: 3, isBinary: true, bytes: []))),
          .event(.dataChannel(closed)),
        ], at: 2_000_000_000),
    ])
    #expect(
      try text(path, "SELECT step, direction, channel, kind, size, text, error FROM message") == """
        step,direction,channel,kind,size,text,error\r
        3,out,3,text,6,grüß,\r
        4,out,3,binary,2,,TypeError: no\r
        5,in,3,binary,3,,\r
        5,in,3,binary,0,,\r\n
        """)
    #expect(
      try text(path, "SELECT * FROM channel_total") == """
        peer,channel,label,id,direction,from_ns,open_ns,closed_ns,messages_sent,bytes_sent,\
        messages_received,bytes_received\r
        1,3,"a ""label\""",7,out,10,10,2000000000,1,6,2,3\r\n
        """)
    let lines = try Timeline(path: path).entries.map { "\($0.lane): \($0.text)" }
    #expect(
      lines.filter { $0.hasPrefix("channel") || $0.hasPrefix("message") } == [
        "channel: 3 \"a \"label\"\" open, stream 7, unordered, at most 2 retransmissions",
        "message: -> text message, 6 bytes, channel 3",
        "message: -> binary message, 2 bytes, channel 3, refused: TypeError: no",
        "message: <- 2 binary messages, 0 to 3 bytes, 3 in all, channel 3",
        "channel: 3 \"a \"label\"\" closed, 0 messages (0 bytes) sent, 0 (0 bytes) received",
      ])
  }

  @Test func anUnchangedStatsObjectHasNoNewRow() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let connection = try TakeFile.open(path)
    // The same report occurs many times at two peers.
    #expect(try connection.integer("SELECT count(*) FROM stat") == 4)
    #expect(
      try text(path, "SELECT members ->> '$.nested.flag', members ->> '$.nan' FROM stat LIMIT 1")
        .hasSuffix("1,\r\n"))
  }

  @Test func formatsOfTheConsole() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    let sql = "SELECT 1 AS number, 'a,\"b' AS text, x'00ff' AS bytes, NULL AS none"
    #expect(try text(path, sql) == "number,text,bytes,none\r\n1,\"a,\"\"b\",00ff,\r\n")
    #expect(
      try text(path, sql, .json)
        == #"[{"number":1,"text":"a,\"b","bytes":"00ff","none":null}]"# + "\n")
    #expect(
      try text(path, sql, .table) == """
        number  text  bytes  none
        ------  ----  -----  ----
             1  a,"b  00ff

        """)
    #expect(try text(path, "SELECT 1 WHERE 0", .json) == "[]\n")
  }

  @Test(arguments: [
    "DELETE FROM take", "SELEC 1", "SELECT 1; SELECT 2", "", "PRAGMA user_version = 9",
  ])
  func theConsoleOnlyReads(_ sql: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    _ = try? SQLConsole.run(path: path, sql: sql) { _ in }
    #expect(try TapeAudit.run(path: path).alteration == nil)
    if !sql.hasPrefix("PRAGMA") {
      let error = #expect(throws: TapeError.self) {
        try SQLConsole.run(path: path, sql: sql) { _ in }
      }
      #expect(error?.place == "sql")
    }
  }

  @Test func theSummaryNamesPeersStatesAndTracks() throws {
    let folder = try TakeFolder()
    let info = try TakeInfo(path: try folder.record(SampleSteps.all))
    #expect(info.isComplete)
    #expect(info.steps == Int64(SampleSteps.all.count))
    #expect(info.durationNanoseconds == SampleSteps.all.last?.at.nanoseconds)
    #expect(info.peers.map(\.label) == ["caller"])
    #expect(info.peers[0].tracks == ["1 video in vp8"])
    #expect(info.peers[0].dataChannels == 1 && info.peers[0].messagesIn.map { $0 > 0 } == true)
    #expect(info.description.contains("channels  1, messages"))
    #expect(info.peers[0].states.first?.machine == "dtls")
    #expect(info.description.contains("complete"))
    #expect(info.json.contains("\"label\":\"caller\""))
  }

  @Test func theTimelineIsInTheOrderOfTheSteps() throws {
    let folder = try TakeFolder()
    let timeline = try Timeline(path: try folder.record(SampleSteps.all))
    #expect(timeline.entries.map(\.step) == timeline.entries.map(\.step).sorted())
    let lanes = Set(timeline.entries.map(\.lane))
    #expect(
      lanes == [
        "peer", "api", "signaling", "state", "candidate", "pair", "track", "media", "rtcp", "event",
        "channel", "message",
      ])
    #expect(timeline.text().contains("dtls: new -> connecting"))
    #expect(timeline.json.hasPrefix("[{\"at_ns\":0"))
  }

  @Test func aTimeShortlyBeforeTheStartIsNegative() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(
      path,
      """
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES (131072, 1, -39000000, 'connection', 'connecting', 'connected');
      """)
    let lines = try Timeline(path: path).text().split(separator: "\n")
      .filter { $0.contains("connecting -> connected") }
    #expect(lines.count == 1 && lines.allSatisfy { $0.contains(" -0.039 ") }, "\(lines)")
  }
}
