import Foundation
import SDP
import Testing

struct CandidateInitTests {
  @Test(arguments: [
    (CandidateInit(candidate: ""), #"{"candidate":""}"#),
    (
      CandidateInit(candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 2, usernameFragment: "u"),
      #"{"candidate":"candidate:1","sdpMLineIndex":2,"sdpMid":"0","usernameFragment":"u"}"#
    ),
  ])
  func asJSONItHasTheFieldsOfTheDictionary(candidate: CandidateInit, text: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(String(decoding: try encoder.encode(candidate), as: UTF8.self) == text)
    #expect(try JSONDecoder().decode(CandidateInit.self, from: Data(text.utf8)) == candidate)
  }

  @Test func unknownFieldsMayBeNull() throws {
    let text = #"{"candidate":"candidate:1","sdpMid":null,"sdpMLineIndex":0}"#
    let candidate = try JSONDecoder().decode(CandidateInit.self, from: Data(text.utf8))
    #expect(candidate == CandidateInit(candidate: "candidate:1", sdpMLineIndex: 0))
  }
}
