import FoundationEssentials
package import Tape

/// A take as one web page that needs no server and no network: what `retake page` writes.
///
/// States, paths, speakers and curves on one clock, findings, and everything that happened with
/// the text of each signaling message, and its media when they are not large. It has no keys, but
/// descriptions with their addresses and ICE passwords: it is as secret as the take.
package struct TakePage: Sendable {
  /// What may leave with a page.
  package struct Options: Sendable {
    /// The texts of signaling messages.
    package var keepsMessages = true
    /// IP addresses; else each becomes a name, the same one everywhere.
    package var keepsAddresses = true
    /// Sound and video, as long as they are not larger than `mediaMaximum`.
    package var keepsMedia = true

    package init() {}
  }

  /// Larger media make a file that nobody sends around; `retake open` plays those.
  package static let mediaMaximum = 24_000_000

  /// The page as text.
  package private(set) var html = ""
  /// How many bytes of media were left out because they are too many.
  package private(set) var omittedMediaBytes = 0

  /// Asks a take everything that a page draws.
  ///
  /// - Parameter tell: hears what is being read.
  package init(
    path: String, options: Options = Options(),
    tell: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(TapeError) {
    // The rules take as long as all the rest, and read on their own.
    let findings = Aside { () throws(TapeError) in try PageContent.findings(path: path) }
    var content = PageContent(path: path)
    let reading = try content.read(keepsMessages: options.keepsMessages, tell: tell)
    tell("findings")
    let media = try media(path, isWanted: options.keepsMedia, tell: tell)
    var data = reading.object(with: [
      ("form", "\"file\""), ("findings", try findings.value()),
      ("media", "[" + media.map(\.facts).joined(separator: ",") + "]"),
    ])
    var title = reading.title
    if !options.keepsAddresses {
      var cover = AddressCover()
      data = cover.covered(data)
      title = cover.covered(title)
    }
    tell("the page")
    let columns = Deflate.compressed(reading.columns) ?? []
    html = PageDocument.html(
      title: title, data: data, series: Data(columns).base64EncodedString(),
      media: media.map { Data($0.bytes).base64EncodedString() }, isServed: false)
  }

  private mutating func media(_ path: String, isWanted: Bool, tell: (String) -> Void)
    throws(TapeError) -> [PageMedia]
  {
    guard isWanted else { return [] }
    tell("media")
    let connection = try TakeFile.openForQueries(path, largestValue: TakeFile.largestOnPage)
    do throws(SQLiteError) {
      let bytes = try PageMedia.byteCount(connection)
      guard bytes <= Self.mediaMaximum else {
        omittedMediaBytes = bytes
        return []
      }
      var found: [PageMedia] = []
      for place in try PageMedia.places(connection) {
        if let media = try PageMedia(place, connection) { found.append(media) }
      }
      return found
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
