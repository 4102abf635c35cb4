import CFiles
import Crypto
import FoundationEssentials

/// The page without a take: its markup, its style and its script, which allow each other and nobody
/// else.
enum PageDocument {
  /// One script out of all modules.
  static let script = PageScript.page.text

  private static let style = String(cString: cfiles_page_css())

  /// What the page may do (Content Security Policy level 3): run its own script, look like its own
  /// style, show pictures and play media that are inside of it; and ask its own server, where it
  /// has one.
  static func policy(isServed: Bool) -> String {
    """
    default-src 'none'; script-src '\(hash(script))'; style-src '\(hash(style))'; \
    img-src data: blob:; media-src blob:; connect-src \(isServed ? "'self'" : "'none'"); \
    base-uri 'none'; form-action 'none'
    """
  }

  private static func hash(_ text: String) -> String {
    "sha256-" + Data(SHA256.hash(Array(text.utf8))).base64EncodedString()
  }

  /// The whole page.
  ///
  /// - Parameters:
  ///   - data: JSON, which may hold anything in its strings.
  ///   - series: the columns, compressed, in base64.
  ///   - media: files in base64.
  static func html(
    title: String, data: String, series: String, media: [String] = [], isServed: Bool
  ) -> String {
    let values = [
      "title": escaped(title), "policy": policy(isServed: isServed), "style": style,
      "script": script, "data": inert(data), "series": series,
      "media": media.enumerated().map { index, file in
        "<script type=\"text/plain\" id=\"media-\(index)\">\(file)</script>\n"
      }.joined(),
    ]
    // The pieces between marks are the document's own, so that nothing in a value is taken for one.
    var html = ""
    for (index, piece) in String(cString: cfiles_page_html())
      .split(separator: "{{", omittingEmptySubsequences: false).enumerated()
    {
      guard index > 0, let end = piece.firstRange(of: "}}") else {
        html += piece
        continue
      }
      html += values[String(piece[..<end.lowerBound])] ?? ""
      html += piece[end.upperBound...]
    }
    return html
  }

  /// JSON that cannot end the element that it stands in.
  private static func inert(_ json: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(json.utf8.count + 1024)
    for byte in json.utf8 {
      if byte == UInt8(ascii: "<") {
        bytes += #"\u003c"#.utf8
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
  }
}
