import Foundation
import Testing

/// Tests the files that are installed with the executable.
struct InstallTests {
  private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  @Test(.enabled(if: Tool.has("python3")))
  func everyVerbHasAManualPageWithItsOptions() async throws {
    let folder = try Folder()
    let made = try await Tool.shell("'\(Self.repository)/.ci/manual' \"$RETAKE\" '\(folder.path)'")
    #expect(made.status == 0 && made.errors.isEmpty, "\(made.errors)")
    for (verb, words) in [
      (["replay"], ["\\-\\-until", "retake replay call.take", "64"]),
      (["record", "serve"], ["\\-\\-listen", "127.0.0.1:8080", "\\-\\-out"]),
      (["export"], ["\\-\\-pcap"]), ([], ["retake\\-record"]),
    ] as [([String], [String])] {
      let name = (["retake"] + verb).joined(separator: "-") + ".1"
      let page = try String(contentsOfFile: folder.file(name), encoding: .utf8)
      for word in words { #expect(page.contains(word), "\(name): \(word)") }
    }
    let count = try FileManager.default.contentsOfDirectory(atPath: folder.path).count
    #expect(count >= 24)
  }

  @Test(arguments: ["bash", "zsh", "fish"])
  func shellsCompleteVerbsAndOptions(shell: String) async throws {
    let script = try await Tool.run("--generate-completion-script", shell)
    #expect(script.status == 0 && script.errors.isEmpty)
    for word in ["whatif", "until", "ice-transport-policy", "max-bundle"] {
      #expect(script.output.contains(word), "\(word)")
    }
  }
}
