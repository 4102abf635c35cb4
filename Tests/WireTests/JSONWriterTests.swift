import Testing

@testable import Wire

struct JSONWriterTests {
  @Test func membersAndElementsAreSeparated() {
    var json = JSONWriter(capacity: 16)
    json.beginObject()
    json.member("a", UInt32.max)
    json.name("list")
    json.beginList()
    json.beginObject()
    json.endObject()
    json.unsigned(0)
    json.beginList()
    json.endList()
    json.integer(-10)
    json.endList()
    json.member("text", .text("a\n\"b\""))
    json.endObject()
    #expect(json.text == #"{"a":4294967295,"list":[{},0,[],-10],"text":"a\n\"b\""}"#)
  }

  @Test func nothingIsAnEmptyObject() {
    var json = JSONWriter(capacity: 0)
    json.beginObject()
    json.endObject()
    #expect(json.text == JSONText.object([]).text)
  }

  @Test(arguments: [0, 7, 10, -1, 1_234_567_890, Int64.min, Int64.max])
  func numbersMatchTheText(_ number: Int64) {
    var json = JSONWriter(capacity: 0)
    json.integer(number)
    #expect(json.text == JSONText.integer(number).text)
    var unsigned = JSONWriter(capacity: 0)
    unsigned.unsigned(UInt64(bitPattern: number))
    #expect(unsigned.text == JSONText.integer(UInt64(bitPattern: number)).text)
  }
}
