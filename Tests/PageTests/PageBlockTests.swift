import Testing

@testable import Page
@testable import Tape

struct PageBlockTests {
  @Test func manyBlocksOfADeviceAreReadQuickly() throws {
    try PageSample.withTake { path in
      let take = try SQLiteConnection(path: path, mode: .readWrite)
      try take.execute("UPDATE format SET kind = 'pcm' WHERE kind = 'audio'")
      var content = PageContent(path: path)
      let reading = try content.read(shortMaximum: 60)
      let data = try PageData(reading.object(with: []))
      let frames = data.series.filter { $0.what == "frames" && $0.count > 60 }
      #expect(Set(frames.compactMap(\.kind)) == ["pcm", "video"])
      #expect(frames.allSatisfy { ($0.overview == nil) == ($0.kind == "pcm") })
    }
  }
}
