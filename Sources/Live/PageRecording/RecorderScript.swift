import CFiles
import Page
package import Wire

/// The script that records a page, for the page to include or for the extension to inject.
package struct RecorderScript: Sendable {
  /// A script's settings.
  package struct Configuration: Hashable, Sendable {
    /// The WebSocket's address, with the token in its query.
    package var address: String
    /// Whether encoded frames are sent.
    package var hasMedia = false
    /// The interval between readings of statistics, in milliseconds.
    package var intervalMilliseconds = 1000
    /// Whether another script of the extension opens the socket.
    package var isRelayed = false

    package init(address: String) { self.address = address }

    var line: String {
      // No value may end the script element, wherever the script is embedded.
      let json = JSONText.object([
        ("address", .text(address)), ("media", .flag(hasMedia)),
        ("interval", .integer(intervalMilliseconds)), ("relay", .flag(isRelayed)),
      ]).text.replacing("<", with: "\\u003c")
      return "const retakeConfiguration = \(json);\n"
    }
  }

  /// All modules joined into one.
  private static let joined = PageScript(of: "main.js", in: modules)

  /// The reasons why the modules cannot be joined; a test checks that there are none.
  package static var problems: [String] { joined.problems }

  private static let modules: [String: String] = {
    var found: [String: String] = [:]
    var index: UInt32 = 0
    while let name = cfiles_recorder_module_name(index), let text = cfiles_recorder_module(index) {
      found[String(cString: name)] = String(cString: text)
      index += 1
    }
    return found
  }()

  /// Returns the script for `<script src>` and consoles; as a module it exports `recorder`.
  package static func text(_ configuration: Configuration, isModule: Bool = false) -> String {
    "(() => {\n\"use strict\";\n" + configuration.line + joined.text + "})();\n"
      + (isModule ? "export const recorder = globalThis.retakeRecorder;\n" : "")
  }

  /// Returns the extension's files with their names.
  ///
  /// - Parameter origins: the origins to record, such as `https://app.example`.
  package static func extensionFiles(
    _ configuration: Configuration, origins: [String]
  ) -> [(name: String, text: String)] {
    var configuration = configuration
    configuration.isRelayed = true
    let matches = JSONText.list(origins.map { .text("\($0)/*") }).text
    let manifest = String(cString: cfiles_recorder_manifest())
      .replacing("\"matches\": []", with: "\"matches\": \(matches)")
    let relay =
      "(() => {\n" + configuration.line + String(cString: cfiles_recorder_relay()) + "})();\n"
    return [
      ("manifest.json", manifest), ("relay.js", relay),
      ("recorder.js", text(configuration)),
    ]
  }
}
