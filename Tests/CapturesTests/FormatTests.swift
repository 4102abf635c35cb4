import Foundation
import Queries
import Replay
import Tape
import Testing

/// Older takes can be opened, queried and exported forever, and replay with the same meaning.
///
/// One take of each format is kept and never recorded again.
struct FormatTests {
  static let folder = CapturesTests.folder.appendingPathComponent("formats")

  private func path(_ format: Int64) -> String {
    FormatTests.folder.appendingPathComponent("format-\(format).take").path
  }

  static let formats = Array(TakeHeader.oldestFormat...TakeHeader.currentFormat)

  @Test(arguments: formats) func aTakeOfEachFormatOpensAndAnswers(format: Int64) throws {
    let path = path(format)
    #expect(try TapeReader(path: path).header.format == format)
    #expect(try TapeAudit.run(path: path).alteration == nil)
    #expect(try TakeInfo(path: path).steps > 100)
    let connection = try TakeFile.openForQueries(path)
    for view in TakeSchema.views {
      #expect(throws: Never.self, "\(view.name)") {
        _ = try connection.integer("SELECT count(*) FROM \(view.name)")
      }
    }
    #expect(try connection.integer("SELECT count(*) FROM actor WHERE kind = 'endpoint'") ?? 0 > 0)
    #expect(try connection.integer("SELECT count(*) FROM coverage") == 0)
    #expect(try connection.integer("SELECT count(*) FROM packet WHERE bytes IS NOT NULL") ?? 0 > 50)
  }

  @Test(arguments: formats) func aTakeOfEachFormatExportsItsDatagrams(format: Int64) throws {
    let history = try DatagramHistory(path: path(format))
    var count = 0
    while try history.next() != nil { count += 1 }
    #expect(count == history.count && count > 50)
  }

  @Test(arguments: formats) func aTakeOfEachFormatReplaysToTheSame(format: Int64) throws {
    let result = TakeVerification.run(path: path(format), mode: .meaning)
    #expect(result.isPassed, "\(result.report(meaning: nil))")
  }
}
