import Foundation
import Lab
import Media
import Peer
import SCTP
import Testing
import Wire

@testable import Page

/// A call of six seconds with every feature, over a lossy path.
enum PageSample {
  static func path() -> String {
    FileManager.default.temporaryDirectory
      .appendingPathComponent("page-\(UInt64.random(in: 0 ... .max)).take").path
  }

  /// Starts a call; the test calls `run` and `finish`.
  static func begun(_ path: String, label: String = "call") throws -> RecordedVirtualCall {
    var link = LinkSettings()
    link.lossPerMille = 80
    link.delay = .milliseconds(20)
    let recorded = try RecordedVirtualCall(
      path: path, seed: 12, links: [link, link], labels: [label, "callee"])
    recorded.call.addMedia(videoFrames: .pattern(width: 96, height: 64, framesPerSecond: 15))
    recorded.call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    recorded.call.negotiate()
    return recorded
  }

  /// Calls the body with the take of this call.
  static func withTake(label: String = "call", _ body: (String) throws -> Void) throws {
    let path = path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try begun(path, label: label)
    recorded.run(for: .seconds(6))
    _ = try recorded.finish()
    try body(path)
  }
}

/// The part of a page's data that exists even if the take is read at its very start.
struct PageSeriesData: Decodable {
  var series: [PageData.Series]
}

/// A page's data, as its script reads it.
struct PageData: Decodable {
  struct Peer: Decodable { var label: String }

  struct Series: Decodable {
    var what: String
    var of: String?
    var peer: Int?
    var direction: String?
    var `protocol`: String?
    var ssrc: Int64?
    var kind: String?
    var isMedia: Bool?
    var count: Int
    var columns: [String: [Int]]
    var overview: [String: [Int]]?
  }

  struct Finding: Decodable {
    var rule: String
    var peer: Int
    var severity: Int
    var text: String
    var symptoms: [Finding]?
    var count: Int
    var seconds: Double
  }

  struct Message: Decodable { var message: String? }

  /// A cell of a list row: strings stay, numbers become strings.
  struct Cell: Decodable {
    var text: String

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let decoded = try? value.decode(String.self) {
        text = decoded
      } else {
        text = String(try value.decode(Double.self))
      }
    }

    var number: Double { Double(text) ?? .nan }
  }

  var title: String
  var seconds: Double
  var peers: [Peer]
  var states: [[Cell]]
  var freezes: [[Cell]]?
  var channels: [[Cell]]?
  var signaling: [Message]
  var findings: [Finding]?
  var series: [Series]
  var queries: [String: String]

  init(_ json: String) throws {
    self = try JSONDecoder().decode(PageData.self, from: Data(json.utf8))
  }

  /// Returns a column's numbers; empty if the series has no such column.
  static func numbers(_ series: Series, _ name: String, in bytes: [UInt8]) -> [Int64] {
    series.columns[name].map { numbers(at: $0, in: bytes) } ?? []
  }

  /// Returns the numbers at a place: its offset, its length in bytes, and its coding.
  static func numbers(at place: [Int], in bytes: [UInt8]) -> [Int64] {
    var index = place[0]
    var last: Int64 = 0
    let count = bytes[index..<(index + place[1])].count { $0 < 128 }
    return (0..<count).map { _ in
      var value: UInt64 = 0
      var shift: UInt64 = 0
      while true {
        let byte = bytes[index]
        index += 1
        value |= UInt64(byte & 127) << shift
        shift += 7
        if byte < 128 { break }
      }
      let number = Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
      last = place[2] == 1 ? last &+ number : number
      return last
    }
  }
}
