import Foundation
import Lab
import Media
import Peer
import RTP
import Testing
import Wire

@testable import Page
@testable import Queries
@testable import Tape

@Suite struct PacketFilterTests {
  @Test(arguments: [
    "in rtp", "rtcp pli", "packet in rtp sequence>=9 size<1300", "ssrc 1234", "peer=1 stun",
    "remote~10.0.0.2", "local='", "direction!=in", "turn", "marker=1 payload_type=96",
    "local=x'OR'1'='1",
  ])
  func wordsOfConditionsAreQueries(text: String) throws {
    let filter = try PacketFilter(text)
    try PageSample.withTake { path in
      let connection = try TakeFile.openForQueries(path)
      let rows = try PagePackets.rows(filter, connection)
      let all = try PagePackets.rows(try PacketFilter(""), connection)
      #expect(rows.count < all.count && Set(rows).isSubset(of: all))
    }
  }

  @Test(arguments: [
    ("size>x", "size needs a whole number"), ("colour=red", "no field colour"),
    ("quickly", "does not select packets"), ("ssrc", "ssrc needs a number"),
    ("size><1", "is not a comparison"), ("bytes=1", "no field bytes"),
    ("ssrc 1;DROP", "ssrc needs a whole number"),
  ])
  func otherWordsAreRefusedInASentence(text: String, reason: String) {
    let failure = #expect(throws: PacketFilter.Failure.self) { try PacketFilter(text) }
    #expect(failure?.description.contains(reason) == true, "\(failure?.description ?? "")")
  }
}

@Suite struct PagePacketsTests {
  private struct Detail: Decodable {
    struct Packet: Decodable {
      var size: Int
      var bytes: String
    }
    struct Link: Decodable { var what: String }
    struct Frame: Decodable { var first: Double }
    struct Layer: Decodable { var name: String }
    var packet: [Packet]
    var links: [Link]
    var frames: [Frame]
    var layers: [Layer]
  }

  private func detail(_ row: Int64, _ connection: borrowing SQLiteConnection) throws -> Detail {
    let json = try PagePackets.detail(row, connection)
    return try JSONDecoder().decode(Detail.self, from: Data(json.utf8))
  }

  @Test func aPacketIsShownWithItsResponses() throws {
    try PageSample.withTake { path in
      let connection = try TakeFile.openForQueries(path)
      let checks = try PagePackets.rows(try PacketFilter("stun"), connection)
      let check = try detail(try #require(checks.first), connection)
      #expect(check.packet.first?.bytes.count == 2 * (check.packet.first?.size ?? 0))
      #expect(check.layers.map(\.name) == ["STUN"])
      var links: Set<String> = []
      for row in checks.prefix(8) { links.formUnion(try detail(row, connection).links.map(\.what)) }
      #expect(links.contains("same transaction"))
      let nacks = try PagePackets.rows(try PacketFilter("out rtcp nack"), connection)
      #expect(!nacks.isEmpty)
      let sent = try PagePackets.rows(try PacketFilter("in rtp"), connection)
      #expect(try !detail(sent[sent.count / 2], connection).frames.isEmpty)
    }
  }

  @Test func aListStartsAtTheRequestedTime() throws {
    try PageSample.withTake { path in
      let connection = try TakeFile.openForQueries(path)
      let rows = try PagePackets.rows(try PacketFilter(""), connection)
      let index = try PagePackets.index(of: 3, in: rows, connection)
      let at = try #require(
        try connection.integer("SELECT at_ns FROM packet_store WHERE row = \(rows[index])"))
      #expect(at >= 3_000_000_000 && at < 3_100_000_000)
      #expect(try PagePackets.index(of: -1, in: rows, connection) == 0)
      #expect(try PagePackets.index(of: .infinity, in: rows, connection) == 0)
      #expect(try PagePackets.index(of: 1e6, in: rows, connection) == rows.count)
      let list = try PagePackets.list(rows[index..<(index + 3)], connection)
      let lines = try JSONSerialization.jsonObject(with: Data(list.utf8)) as? [[Any]]
      #expect(lines?.map(\.count) == [17, 17, 17])
      let checks = try PagePackets.rows(try PacketFilter("stun"), connection)
      let words = try PagePackets.list(checks.prefix(4)[...], connection)
      #expect(words.contains("\"Binding request\"") && words.contains("success response\""))
    }
  }
}

@Suite struct PageMediaTests {
  @Test func mediaAreFilesThatBeginWhenTheyWereSeen() throws {
    try PageSample.withTake { path in
      let connection = try TakeFile.openForQueries(path)
      let places = try PageMedia.places(connection)
      #expect(places.count == 8)
      #expect(try PageMedia.byteCount(connection) > 10_000)
      for place in places {
        let media = try #require(try PageMedia(place, connection))
        #expect(media.bytes.starts(with: [0x1a, 0x45, 0xdf, 0xa3]))
        #expect(media.type == "\(place.kind)/webm")
        #expect(media.bytes.count > 1_000)
        #expect(media.begin > 0 && media.begin < 2)
      }
      let nobody = PageMedia.Place(peer: 9, direction: "in", track: 1, kind: "video")
      #expect(try PageMedia(nobody, connection) == nil)
    }
  }

  /// Video that was passed on undecoded has no size in any row; browsers need one.
  @Test func videoThatWasPassedOnHasTheSizeInItsFrames() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    var configuration = PeerConfiguration()
    configuration.codecs = ["opus", "AV1"]
    let recording = try RecordedVirtualCall(
      path: path, seed: 14, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    call.call(1, .addTrack(kind: .video, streamIDs: ["s"], source: .echo))
    #expect(call.negotiate() == nil)
    // A temporal delimiter, a 640x360 sequence header, and key frames (AV1 section 5).
    let frame: [UInt8] = [
      0x12, 0, 0x0a, 8, 0, 0, 0, 0x2c, 0xc4, 0xff, 0x67, 0, 0x32, 0x90, 3, 0x10,
    ]
    for _ in 0..<12 {
      call.run(for: .milliseconds(100))
      let bytes = frame + [UInt8](repeating: 7, count: 399)
      call.step(0, .captured(transceiver: 1, .encoded(.av1, bytes)))
    }
    _ = try recording.finish()
    let connection = try TakeFile.openForQueries(path)
    let passedOn = "FROM frame WHERE direction = 'out' AND kind = 'video' AND width = 0"
    let peer = try #require(try connection.integer("SELECT min(peer) \(passedOn)"))
    let track = try #require(try connection.integer("SELECT min(track) \(passedOn)"))
    let place = PageMedia.Place(peer: peer, direction: "out", track: track, kind: "video")
    let file = try #require(try PageMedia(place, connection)).bytes
    // The track's PixelWidth and PixelHeight (RFC 9559 section 5.1.4.1.28).
    let length: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 2]
    let size = [0xb0] + length + [2, 0x80, 0xba] + length + [1, 0x68]
    #expect(file.indices.contains { file[$0...].starts(with: size) })
  }

  @Test func aCatalogueListsTakesAndUnreadableFiles() throws {
    try PageSample.withTake { path in
      let list = TakeList(present: [path, path + ".nowhere"])
      // A reading with named rules leaves no file behind.
      let reading = CatalogueReading(rules: FindingRule.all)
      let catalogue = try TakeCatalogue(list, reading: reading, jobs: 2)
      let entries = try PageCatalogue.entries(catalogue)
      let entry = try #require(entries[path]).json(name: "a", isLive: true)
      #expect(entry.contains("\"peers\":\"call, callee\"") && entry.contains("\"isLive\":false"))
      #expect(entry.contains("\"worst\":") && entry.contains("\"spark\":["))
      #expect(entry.contains("\"codecs\":[\"") && entry.contains("\"relay\":false"))
      let none = try #require(entries[path + ".nowhere"]).json(name: "b", isLive: false)
      #expect(none.contains("\"error\":"))
    }
  }
}
