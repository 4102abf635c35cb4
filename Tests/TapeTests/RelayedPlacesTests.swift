import Peer
import Testing
import Wire

@testable import Tape

/// Tests packets that a relay's leg sends and its observer sees, and that a take stores only once.
struct RelayedPlacesTests {
  private static let seen = (
    SocketAddress(IPAddress(ipv4: 0xc000_0201), port: 10_000),
    SocketAddress(IPAddress(ipv4: 0xc000_0202), port: 10_000)
  )

  private static func packet(_ sequence: UInt16, payload: Int = 300) -> [UInt8] {
    SampleSteps.rtp(sequence: sequence, payload: payload)
  }

  /// Records a leg's and an observer's inputs with these packets, in this order.
  private func record(
    _ folder: TakeFolder, isRelay: Bool = true, _ packets: [(isOfLeg: Bool, bytes: [UInt8])]
  ) throws -> String {
    let path = folder.file("relay.take")
    let writer = try TapeWriter(path: path, options: TapeWriter.Options())
    let (leg, _) = writer.addPeer(label: "near 1", role: "relay")
    let observer = writer.addActor(.observer, label: "relay")
    var genesis = SampleSteps.genesis
    if isRelay { genesis.configuration.relays = true }
    func add(_ actor: UInt32, _ input: any RecordedInput, _ time: Int64) {
      writer.record(
        StepRecord(
          actor: actor, at: Instant(nanoseconds: time), input: input,
          outputs: OutputList<Never>([]), deadline: nil, entropyDrawn: 0))
    }
    add(leg, PeerInput.genesis(genesis), 1)
    add(observer, ObserverInput.genesis(.ofToday), 1)
    for (index, packet) in packets.enumerated() {
      let time = Int64(index + 2)
      if packet.isOfLeg {
        let relayed = RelayedPacket(kind: .rtp, transport: 0, bytes: packet.bytes)
        add(leg, PeerInput.relayed(relayed), time)
      } else {
        let datagram = Datagram(
          local: Self.seen.0, remote: Self.seen.1, bytes: packet.bytes)
        add(
          observer,
          ObserverInput.datagram(
            datagram, isTruncated: false, arrival: Instant(nanoseconds: time)), time)
      }
    }
    _ = try writer.finish()
    return path
  }

  private func wireBytes(_ path: String) throws -> Int {
    Int(try TakeFile.open(path).integer("SELECT sum(length(bytes)) FROM wire") ?? 0)
  }

  private func packets(_ path: String) throws -> [[UInt8]] {
    try steps(of: path).compactMap { step in
      if case .relayed(let packet) = step.peerInput { return packet.bytes }
      guard case .datagram(let datagram, _, _) = step.input as? ObserverInput else { return nil }
      return datagram.bytes
    }
  }

  @Test func whoeverComesSecondRefersToTheFirst() throws {
    let folder = try TakeFolder()
    let (one, two, three) = (Self.packet(1), Self.packet(2), Self.packet(3))
    let sequence = [
      (true, one), (false, one), (false, two), (true, two), (true, three), (true, one),
      (false, three),
    ]
    let path = try record(folder, sequence)
    #expect(try wireBytes(path) == one.count + two.count + three.count)
    #expect(try packets(path) == sequence.map(\.1))
    #expect(try TapeAudit.run(path: path).alteration == nil)
    let take = try TakeFile.openForQueries(path)
    let rows = try take.prepare("SELECT bytes FROM relayed ORDER BY \"row\"")
    for expected in sequence where expected.0 {
      #expect(try rows.step())
      #expect(rows.bytes(0) == expected.1)
    }
  }

  @Test func aLongPacketAndAPacketOfNoRelayAreStoredAsOftenAsTheyCome() throws {
    let folder = try TakeFolder()
    let long = Self.packet(1, payload: WirePiece.repeatedMaximum)
    var path = try record(folder, [(true, long), (false, long)])
    #expect(try wireBytes(path) == 2 * long.count)
    #expect(try packets(path) == [long, long])
    try folder.remove("relay.take")
    let usual = Self.packet(1)
    path = try record(folder, isRelay: false, [(false, usual), (false, usual)])
    #expect(try wireBytes(path) == 2 * usual.count)
  }

  @Test func aCopySharesTheBytesAnew() throws {
    let folder = try TakeFolder()
    let packet = Self.packet(1)
    let path = try record(folder, [(true, packet), (false, packet), (false, Self.packet(2))])
    // If the leg's step is left out, the observer's step stores its own bytes.
    let reader = try TapeReader(path: path)
    let copy = try TakeCopy(path: folder.file("copy.take"), header: reader.header)
    while let chunk = try reader.next() {
      for step in chunk.steps where step.head.kind != .relayed || step.head.actor != 1 {
        try copy.append(step.head, chunk.rows, step.rows)
      }
    }
    try copy.finish()
    #expect(try packets(folder.file("copy.take")) == [packet, Self.packet(2)])
    #expect(try TapeAudit.run(path: folder.file("copy.take")).alteration == nil)
  }

  @Test(arguments: [
    "UPDATE packet_store SET position = position + 1", "UPDATE packet_store SET position = -1",
    "UPDATE packet_store SET position = 9223372036854775807",
    "UPDATE packet_store SET size = 9223372036854775807", "UPDATE packet_store SET size = 0",
    "UPDATE packet_store SET size = size - 1", "UPDATE packet_store SET size = 2048, position = 0",
    "UPDATE packet_store SET position = 'a'",
    "UPDATE relayed_store SET position = position + 1", "UPDATE relayed_store SET position = 400",
    "UPDATE wire SET bytes = CAST(substr(bytes, 1, 50) || x'2a' || substr(bytes, 52) AS BLOB)",
    "DELETE FROM wire", "DELETE FROM relayed_store",
  ])
  func anAlteredReferenceIsFound(_ sql: String) throws {
    let folder = try TakeFolder()
    let (one, two) = (Self.packet(1), Self.packet(2))
    let path = try record(folder, [(true, one), (true, two), (false, two), (true, one)])
    try folder.alter(path, sql)
    #expect(try TapeAudit.run(path: path).alteration != nil)
    // Queries do not fail because of the altered reference.
    let take = try TakeFile.openForQueries(path)
    for view in ["relayed", "packet", "rtp"] {
      #expect(throws: Never.self) {
        _ = try take.integer("SELECT sum(length(\(view == "rtp" ? "size" : "bytes"))) FROM \(view)")
      }
    }
  }
}
