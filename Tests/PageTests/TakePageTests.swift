import Foundation
import Lab
import Media
import Peer
import SCTP
import Testing
import Wire

@testable import Page
@testable import Tape

@Suite struct TakePageTests {
  private struct Drawing: Decodable {
    struct Part: Decodable {
      struct Item: Decodable {
        var numbers: [Double] = []
        var text: String?

        init(from decoder: any Decoder) throws {
          var list = try decoder.unkeyedContainer()
          while !list.isAtEnd {
            if let number = try? list.decode(Double.self) {
              numbers.append(number)
            } else {
              text = try list.decode(String.self)
            }
          }
        }
      }
      var peer: Int
      var name: String
      var items: [Item]
    }
    var title: String
    var form: String
    var sql: String
    var parts: [Part]
  }

  private struct Content: Decodable {
    struct Named: Decodable { var label: String }
    struct Problem: Decodable { var problem: String }
    struct Message: Decodable { var text: String }
    var label: String
    var seconds: Double
    var peers: [Named]
    var drawings: [Drawing]
    var problems: [Problem]
    var messages: [Message]
  }

  /// A call of six seconds with everything in it, over a path that loses some of it.
  private func call(label: String = "call") throws -> String {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("page-\(UInt64.random(in: 0 ... .max)).take").path
    var link = LinkSettings()
    link.lossPerMille = 80
    link.delay = .milliseconds(20)
    let recorded = try RecordedVirtualCall(
      path: path, seed: 12, links: [link, link], labels: [label, "callee"])
    recorded.call.addMedia(videoFrames: .pattern(width: 96, height: 64, framesPerSecond: 15))
    recorded.call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    recorded.call.negotiate()
    recorded.run(for: .seconds(6))
    _ = try recorded.finish()
    return path
  }

  /// What the page's script reads, as a browser finds it: up to the end of its element.
  private func content(_ html: String) throws -> Content {
    let begin = try #require(html.range(of: "id=\"data\">"))
    let end = try #require(html[begin.upperBound...].range(of: "</script>"))
    return try JSONDecoder().decode(
      Content.self, from: Data(html[begin.upperBound..<end.lowerBound].utf8))
  }

  @Test func aPageHasWhatTheTakeHas() throws {
    let path = try call()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let content = try content(TakePage(path: path).html)
    #expect(content.peers.map(\.label) == ["call", "callee"])
    #expect((5.9...7).contains(content.seconds))
    #expect(Set(content.problems.map(\.problem)).isSuperset(of: ["loss", "loss-at-peer"]))
    let found = Set(content.drawings.map(\.title))
    #expect(
      found.isSuperset(of: [
        "States", "Path", "Data channels", "On the wire", "Video frames", "Packets lost",
        "Round trip",
        "Jitter", "Wait in the jitter buffer", "Audio made up", "Loudness", "Bits allowed",
      ]), "\(found)")

    let states = try #require(content.drawings.first { $0.title == "States" })
    let connection = try #require(states.parts.first { $0.name == "connection" })
    #expect(connection.items.map(\.text) == ["connecting", "connected", "closed"])
    // What lasts begins where the former ended.
    #expect(connection.items[0].numbers[1] == connection.items[1].numbers[0])

    // The curve of the wire has the bits that the take has.
    let wire = try #require(content.drawings.first { $0.title == "On the wire" })
    let drawn = wire.parts.flatMap(\.items).reduce(0) { $0 + $1.numbers[1] }
    let connectionToTake = try TakeFile.open(path)
    let bytes = try #require(try connectionToTake.integer("SELECT sum(size) FROM packet_store"))
    #expect(abs(drawn - Double(bytes) * 8 / 1e3) < 1)
    let videoFrames = try #require(content.drawings.first { $0.title == "Video frames" })
    #expect(videoFrames.parts.allSatisfy { $0.items.allSatisfy { $0.numbers[1] <= 17 } })
  }

  @Test func nothingInATakeEndsThePageEarlyOrLoadsSomething() throws {
    let hostile = "</script><img src=http://203.0.113.1/>{{script}}{{data}}"
    let path = try call(label: hostile)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let html = try TakePage(path: path).html
    #expect(try content(html).peers.first?.label == hostile)
    // Two scripts begin and two end, and the page refers to nothing outside of itself.
    #expect(html.components(separatedBy: "<script").count == 3)
    #expect(html.components(separatedBy: "</script>").count == 3)
    #expect(!html.contains("<img"))
    #expect(html.contains("default-src 'none'"))
    #expect(!html.contains("src=\"") && !html.contains("url("))
  }

  @Test func everyDrawingIsOneQueryThatAnyoneCanRun() throws {
    let path = try call()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let content = try content(TakePage(path: path).html)
    for query in PageQuery.all {
      #expect(!query.sql.contains(";"))
    }
    #expect(
      content.drawings.allSatisfy { drawing in
        PageQuery.all.contains { $0.title == drawing.title && $0.sql == drawing.sql }
      })
    #expect(Set(PageQuery.all.map(\.title)).count == PageQuery.all.count)
    // Rows of one name stand together, else one curve would become two.
    for drawing in content.drawings {
      let names = drawing.parts.map { "\($0.peer) \($0.name)" }
      #expect(Set(names).count == names.count, "\(drawing.title)")
    }
  }
}
