import Foundation
import Testing

@testable import Page
@testable import Tape

struct PageSchemaTests {
  private struct Relation: Decodable {
    struct Column: Decodable {
      var name: String
      var comment: String
    }
    var name: String
    var kind: String
    var comment: String
    var columns: [Column]

    func comment(of name: String) -> String? { columns.first { $0.name == name }?.comment }
  }

  private let path = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Captures/virtual-heavy-loss.take").standardizedFileURL.path

  private func relations() throws -> [Relation] {
    try JSONDecoder().decode([Relation].self, from: Data(PageSchema.json(path: path).utf8))
  }

  @Test func everyTableAndViewHasTheColumnsThatQueriesSee() throws {
    let relations = try relations()
    #expect(!relations.contains { $0.name.hasSuffix("_store") })
    let names = relations.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(Set(TakeSchema.views.map(\.name)).isSubset(of: names))
    let connection = try TakeFile.openForQueries(path)
    for relation in relations {
      let list = relation.columns.map { "\"\($0.name)\"" }.joined(separator: ", ")
      _ = try connection.prepare("SELECT \(list) FROM \(relation.name)")
    }
  }

  @Test func schemaCommentsAreBesideTheirColumns() throws {
    let relations = try relations()
    func relation(_ name: String) throws -> Relation {
      try #require(relations.first { $0.name == name })
    }
    let packet = try relation("packet")
    #expect(packet.kind == "view" && packet.comment.hasPrefix("Datagrams."))
    #expect(packet.comment(of: "size") == "bytes of UDP payload")
    #expect(packet.comment(of: "protocol")?.contains("RFC 7983") == true)
    #expect(packet.comment(of: "peer")?.contains("number of the peer") == true)
    let state = try relation("state")
    #expect(state.kind == "table")
    #expect(state.comment(of: "to_state") == "the new state")
    #expect(state.comment(of: "machine")?.hasPrefix("signaling, ice-connection") == true)
  }
}
