import Foundation
import Testing

@testable import Wire

struct JSONTextTests {
  @Test func membersKeepTheirOrderAndMissingOnesAreLeftOut() {
    let object = JSONText.object([
      ("z", .integer(-3)), ("a", nil), ("b", .flag(true)), ("a", .null),
      ("list", .list([.text("x"), .number(1.5), .object([])])),
    ])
    #expect(object.text == #"{"z":-3,"b":true,"a":null,"list":["x",1.5,{}]}"#)
    #expect(JSONText.list([], separator: ",\n").text == "[]")
    #expect(JSONText.list([.null, .null], separator: ",\n").text == "[null,\nnull]")
  }

  @Test(
    arguments: [
      (0.0, "0"), (-0.0, "0"), (3.0, "3"), (-2.5, "-2.5"), (1e15, "1000000000000000"),
      (9_007_199_254_740_992, "9007199254740992.0"), (1e300, "1e+300"), (.nan, "null"),
      (.infinity, "null"),
    ] as [(Double, String)])
  func numbersArePrintedAsInJavaScript(number: Double, text: String) {
    #expect(JSONText.number(number).text == text)
  }

  @Test(arguments: ["", "plain", "\"", "\\", "a\nb\r\t", "\u{0}\u{1f}\u{7f}", "é\u{301}😀", "</x>"])
  func stringsAreReadAsTheyWere(text: String) throws {
    for byNumber in [false, true] {
      let json = JSONText.text(text, escapesByNumber: byNumber).text
      let read = try JSONSerialization.jsonObject(
        with: Data(json.utf8), options: .fragmentsAllowed)
      #expect(read as? String == text)
      #expect(!json.utf8.contains { $0 < 0x20 })
    }
  }

  @Test func controlCharactersHaveShortEscapesUnlessNumericOnesAreRequested() {
    #expect(JSONText.text("\n\r\t\u{1}").text == #""\n\r\t\u0001""#)
    #expect(
      JSONText.text("\n\r\t\u{1}\"", escapesByNumber: true).text
        == #""\u000a\u000d\u0009\u0001\"""#)
  }
}
