import Crypto
import Foundation
import Queries
import Testing

@testable import Page

struct TakePageTests {
  /// Returns the data that the page's script reads, up to the end of its element, as in a browser.
  private func content(_ html: String, of id: String = "data") throws -> String {
    let begin = try #require(html.range(of: "id=\"\(id)\">"))
    let end = try #require(html[begin.upperBound...].range(of: "</script>"))
    return String(html[begin.upperBound..<end.lowerBound])
  }

  @Test func thePageCarriesTheTake() throws {
    try PageSample.withTake { path in
      let html = try TakePage(path: path).html
      let data = try PageData(content(html))
      #expect(data.peers.map(\.label) == ["call", "callee"])
      #expect(data.findings?.isEmpty == false)
      #expect(data.signaling.contains { $0.message?.contains("a=ice-pwd") ?? false })
      let packed = try #require(Data(base64Encoded: content(html, of: "series")))
      #expect(packed.count > 1000)
      #expect(html.contains("<title>call ↔ callee</title>"))
    }
  }

  @Test func withoutJavaScriptThePageHasTheSummaryInWords() throws {
    try PageSample.withTake(label: "caller </pre></noscript>") { path in
      let html = try TakePage(path: path).html
      let begin = try #require(html.range(of: "<noscript>"))
      let end = try #require(html[begin.upperBound...].range(of: "</noscript>"))
      let text = html[begin.upperBound..<end.lowerBound]
      let findings = try TakeFindings(path: path)
      let summary = try TakeSummary(path: path, findings: findings)
      let name = path.split(separator: "/").last.map(String.init)
      let lines = summary.text(named: name).split(separator: "\n")
        .map { $0.replacing("&", with: "&amp;").replacing("<", with: "&lt;") }
      #expect(lines.count > 10 && lines.allSatisfy(text.contains))
      // Pages are sent to others, so they must not contain the take's path.
      #expect(!text.contains(path) && !text.contains("</pre></noscript>"))
    }
    #expect(!ServedPage.html.contains("<pre>"))
  }

  @Test func nothingInATakeEndsThePageEarlyOrLoadsAResource() throws {
    let hostile = "</noscript></script><img src=http://203.0.113.1/>{{script}}{{data}}<!--"
    try PageSample.withTake(label: hostile) { path in
      let html = try TakePage(path: path).html
      #expect(try PageData(content(html)).peers.first?.label == hostile)
      // Every script element is closed, and the page has no external references.
      let files = html.components(separatedBy: "id=\"media-").count - 1
      #expect(files == 8)
      #expect(html.components(separatedBy: "<script").count == 4 + files)
      #expect(html.components(separatedBy: "</script>").count == 4 + files)
      #expect(!html.contains("<img") && !html.contains("<!--"))
      #expect(!html.contains("src=\"") && !html.contains("url("))
    }
  }

  @Test func thePolicyAllowsTheScriptAndTheStyleByTheirHashesAlone() throws {
    try PageSample.withTake { path in
      let html = try TakePage(path: path).html
      for (element, end) in [("<script type=\"module\">", "</script>"), ("<style>", "</style>")] {
        let begin = try #require(html.range(of: element))
        let last = try #require(html[begin.upperBound...].range(of: end))
        let text = html[begin.upperBound..<last.lowerBound]
        let hash = Data(SHA256.hash(Array(text.utf8))).base64EncodedString()
        #expect(html.contains("'sha256-\(hash)'"))
      }
      #expect(html.contains("default-src 'none'") && html.contains("connect-src 'none'"))
      #expect(!html.contains("unsafe-"))
    }
  }

  @Test func excludedPartsAreNotInThePage() throws {
    try PageSample.withTake { path in
      var options = TakePage.Options()
      options.keepsMessages = false
      options.keepsAddresses = false
      let html = try TakePage(path: path, options: options).html
      let data = try content(html)
      #expect(!data.contains("a=ice-pwd") && !data.contains("10.0.0."))
      #expect(data.contains("address-1:4"))
      #expect(!html.contains("10.0.0."))
      #expect(try PageData(data).signaling.allSatisfy { $0.message == nil })
    }
  }
}

struct AddressCoverTests {
  @Test(arguments: [
    ("from 192.0.2.7:5000 to [2001:db8::1]:443", "from address-1:5000 to [address-2]:443"),
    ("192.0.2.7 and 192.0.2.70 and 192.0.2.7.", "address-1 and address-2 and address-1."),
    (
      "2f1b6d1e-6c0a-4a8e-9d4b-1f2e3d4c5b6a.local 1 typ host",
      "address-1 1 typ host"
    ),
    ("::ffff:192.0.2.7 stays one", "address-1 stays one"),
  ])
  func addressesGetNames(text: String, covered: String) {
    var cover = AddressCover()
    #expect(cover.covered(text) == covered)
  }

  @Test(arguments: [
    "2026-11-21T10:39:00.123Z", "version 1.2.3", "AB:CD:EF:01:02", "a::b(c)", "1.2.3.400",
    "x192.0.2.7", "10.0.0.1.2", "dead:beef", "é 12:34",
  ])
  func otherTextsThanAddressesStay(text: String) {
    var cover = AddressCover()
    let result = cover.covered(text)
    #expect(result == text || text == "a::b(c)")
  }
}
