import Foundation
import Testing

struct RepositoryTests {
  /// Paths that exist on one machine only: a home folder or a workspace.
  static let ownPlace = #"(?<![\w./:~-])/(?:home|root|Users|work|workspace|workspaces)/[\w.]"#

  @Test func noFileKnowsTheMachineItWasWrittenOn() throws {
    let place = try Pattern(Self.ownPlace, "a path of one machine")
    let findings = trackedFiles().filter { $0.target != "TidyTests" }.flatMap {
      place.findings(in: $0, text: \.text)
    }
    expectNone(findings)
  }

  @Test func pathsOfOneMachineAreFound() throws {
    let place = try Pattern(Self.ownPlace, "a path of one machine")
    for text in ["see /home/ann/x", "\"/root/.cache\"", "cd /work/tree", "=/Users/a"] {
      #expect(!place.matches(in: text).isEmpty, "\(text)")
    }
    for text in ["https://a.example/home/x", "Sources/work/a", "/usr/bin/env", "at home/work"] {
      #expect(place.matches(in: text).isEmpty, "\(text)")
    }
  }

  @Test func theTopLevelIsWhatTheReadersExpect() {
    let expected: Set = [
      "Package.swift", "Package.resolved", "Makefile", "README.md", "CONTRIBUTING.md", "LICENSE",
      "Sources", "Tests", "Captures", "Schema",
    ]
    let tops = Set(trackedPaths().compactMap { $0.split(separator: "/").first.map(String.init) })
    #expect(tops.filter { !expected.contains($0) && !$0.hasPrefix(".") }.sorted() == [])
  }

  /// Returns the text files that git tracks; in an export without git, those below the usual
  /// folders.
  private func trackedFiles() -> [SourceFile] {
    let binary: Set = ["take", "pcap", "pcapng", "ivf", "png", "webm"]
    return trackedPaths()
      .filter { !binary.contains(($0 as NSString).pathExtension) }
      .map { SourceTree.file($0, isRead: false) }
  }

  private func trackedPaths() -> [String] {
    let git = Process()
    git.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    git.arguments = ["git", "ls-files", "-z"]
    git.currentDirectoryURL = SourceTree.root
    let output = Pipe()
    git.standardOutput = output
    git.standardError = FileHandle.nullDevice
    guard (try? git.run()) != nil else { return exported() }
    let listing = output.fileHandleForReading.readDataToEndOfFile()
    git.waitUntilExit()
    let paths = listing.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    return git.terminationStatus == 0 && !paths.isEmpty ? paths : exported()
  }

  private func exported() -> [String] {
    (SourceTree.sources + SourceTree.tests + SourceTree.schema).map(\.path) + ["Package.swift"]
  }
}
