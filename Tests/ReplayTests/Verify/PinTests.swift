import Foundation
import Tape
import Testing

@testable import Replay

struct PinTests {
  @Test func aPinIsReadAsItWasWritten() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let pin = Pin(mode: .meaning, note: "a \"note\"", measures: try Measures(path: path))
    try pin.write(forTake: path)
    #expect(try Pin.read(forTake: path) == pin)
    #expect(pin.misses(of: try Measures(path: path)) == [])
    #expect(try folder.text("call.pin.json").split(separator: "\n").count == pin.checks.count + 6)
    #expect(try Pin.read(forTake: folder.file("other.take")) == nil)
  }

  @Test func importantResultsAreMeasured() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 3_000, lossPerMille: 30)
    let measures = try Measures(path: path)
    #expect(
      measures["peer 1 connection: states"] == .words("connecting > connected > closed"))
    #expect(measures["peer 2: selected pair"] == .words("host to host"))
    #expect(measures["peer 1 track 2 video in: picture size"] == .words("64x48"))
    #expect(measures["peer 1 track 2 video in: freezes"] == .number(0))
    for (name, range) in [
      ("peer 1: connected after, ms", 10.0...900), ("peer 2 track 1 audio in: frames", 90...150),
      ("peer 2 track 2 video out: frames", 25...46), ("peer 1: lost in, %", 1...15),
      ("peer 1 track 1 audio out: mean level, dBov", -90 ... -5),
      ("peer 2: bit rate out, bit/s", 50_000...600_000),
      ("peer 1 track 1 audio in: made up, ms", 20...600),
    ] {
      guard case .number(let value)? = measures[name] else {
        Issue.record("\(name): \(String(describing: measures[name]))")
        continue
      }
      #expect(range.contains(value), "\(name): \(value)")
    }
  }

  /// Two streams in succession do not double the bit rate.
  @Test func aBitRateIsThatOfTheWholePeer() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300)
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    // A packet of 1,000 bytes every 10 ms for ten seconds, from another stream in the second half.
    try connection.execute(
      """
      DELETE FROM packet_store;
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      INSERT INTO packet_store
        SELECT (100 + i) << 16, i * 10000000,
          (SELECT path FROM path WHERE peer = 1 AND direction = 'in' LIMIT 1), 1 + i / 500, 96, i,
          i, NULL, 1000, 0, NULL FROM n;
      """)
    let measures = try Measures(path: path, isForPin: true)
    guard case .number(let rate)? = measures["peer 1: bit rate in, bit/s"] else {
      Issue.record("no bit rate")
      return
    }
    #expect((799_000...802_000).contains(rate))
    // New pins do not contain the old measures, which are still computed to compare older pins.
    #expect(measures["peer 1: bits per second in"] == nil)
    #expect(try Measures(path: path)["peer 1: bits per second in"] != nil)
  }

  @Test(
    arguments: [
      (MeasuredValue.number(100), 5, MeasuredValue.number(105), true),
      (.number(100), 5, .number(105.1), false), (.number(100), 5, .number(94), false),
      (.number(3), nil, .number(3), true), (.number(3), nil, .number(4), false),
      (.number(2), 3, nil, true), (.number(4), 3, nil, false),
      (.words("a > b"), nil, .words("a > b"), true), (.words("a"), nil, .words("b"), false),
      (.words("a"), nil, nil, false), (.words("1"), nil, .number(1), false),
      (.number(0.3), 0.1, .number(0.4), true),
    ] as [(MeasuredValue, Double?, MeasuredValue?, Bool)])
  func valuesAreComparedWithinTheirTolerance(
    _ value: MeasuredValue, _ tolerance: Double?, _ found: MeasuredValue?, _ isMet: Bool
  ) {
    #expect(Measure(name: "x", value: value, tolerance: tolerance).isMet(by: found) == isMet)
  }

  @Test(arguments: [
    ("{}", "mode"), ("", ""), ("{\"mode\": \"loosely\", \"note\": \"\", \"checks\": []}", "mode"),
    (
      "{\"mode\": \"exact\", \"note\": \"\", \"checks\": [{\"name\": \"a\", \"value\": []}]}",
      "checks 1 value"
    ),
    ("{\"mode\": \"exact\", \"note\": \"\", \"checks\": [{\"value\": 1}]}", "checks 1 name"),
  ])
  func anInvalidPinIsNamedWithItsPlace(_ text: String, _ place: String) throws {
    let folder = try Folder()
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file("call.pin.json")))
    let error = #expect(throws: TapeError.self) {
      _ = try Pin.read(forTake: folder.file("call.take"))
    }
    #expect(error?.place == place)
    #expect(error?.path == folder.file("call.pin.json"))
  }
}
