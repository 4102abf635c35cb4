import Testing

@testable import Wire

struct JSONValueTests {
  @Test(arguments: [
    #"{"a":1,"b":[true,false,null],"a2":{"x":-1.5}}"#, #"[]"#, #"{}"#, #""é\n\u0001\"\\""#,
    "9007199254740993", "-0.25", #"[[[[]]]]"#, #"{"":""}"#,
  ])
  func orderedValuesRoundTrip(text: String) throws {
    #expect(try JSONValue(parsing: text).json == text)
  }

  @Test(arguments: [
    (#" { "a" : [ 1 , 2 ] } "#, #"{"a":[1,2]}"#), (#""\/\b\f\u0041""#, "\"/\\u0008\\u000cA\""),
    (#""\ud83d\ude00""#, "\"😀\""), (#""\ud83d!""#, "\"\u{fffd}!\""),
    (#""\ud83d\u0041""#, "\"\u{fffd}A\""), (#""\ude00""#, "\"\u{fffd}\""),
    ("1e2", "100"), ("1.50", "1.5"), ("99999999999999999999", "1e+20"), ("-0", "0"),
  ])
  func otherSpellingsAreRead(text: String, canonical: String) throws {
    #expect(try JSONValue(parsing: text).json == canonical)
  }

  @Test(arguments: [
    "", " ", "{", "[", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "\"", "\"\\", "\"\\x\"", "\"\\u12\"",
    "01", "-", "1.", "1e", ".5", "+1", "1e999", "tru", "nulll", "[1] 2", "{\"a\":1,}", "\"\u{1}\"",
    "\"\\ud83d\\u12\"",
  ])
  func invalidJSONIsRefused(text: String) {
    #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
  }

  @Test func depthAndNumberOfValuesAreLimited() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try JSONValue(parsing: nested(33))
    #expect(throws: JSONError.self) { try JSONValue(parsing: nested(34)) }
    #expect(throws: JSONError.self) { try JSONValue(parsing: nested(200_000)) }
    var limits = JSONValue.Limits()
    limits.values = 4
    _ = try JSONValue(parsing: "[1,2,3]", limits: limits)
    #expect(throws: JSONError.self) { try JSONValue(parsing: "[1,2,3,4]", limits: limits) }
  }

  @Test func membersAreFoundByName() throws {
    let value = try JSONValue(parsing: #"{"a":1,"b":"x","a":2,"c":2.0,"d":2.5,"e":[{"f":true}]}"#)
    #expect(value["a"]?.integer == 2)
    #expect(value["b"]?.text == "x" && value["b"]?.integer == nil)
    #expect(value["c"]?.integer == 2 && value["d"]?.integer == nil)
    #expect(value["e"]?.elements.first?["f"]?.flag == true)
    #expect(value["a"]?.identifier == "2" && value["b"]?.identifier == "x")
    #expect(value["z"] == nil && JSONValue.null["a"] == nil)
  }
}
