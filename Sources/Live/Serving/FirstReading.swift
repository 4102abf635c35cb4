import Page
import Tape

/// All of a take, as each page of it has it at first.
struct FirstReading: Sendable {
  /// What a page continues from when the take grows.
  let content: PageContent
  let reading: PageContent.Reading
  /// The tracks that can be played, as JSON.
  let media: String

  init(path: String, shortMaximum: Int) throws(TapeError) {
    var content = PageContent(path: path)
    reading = try content.read(shortMaximum: shortMaximum)
    self.content = content
    media = try Self.media(path)
  }

  /// The tracks of a take that can be played, as JSON.
  static func media(_ path: String) throws(TapeError) -> String {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      return "[" + (try PageMedia.places(connection)).map(\.facts).joined(separator: ",") + "]"
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
