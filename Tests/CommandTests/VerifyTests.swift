import Foundation
import Testing

@testable import Tape

/// Uses takes as regression tests, the way a team would.
struct VerifyTests {
  @Test func aGoodTakePassesAndCanBePinned() async throws {
    let made = try await Takes.copy()
    let passed = try await Tool.run("verify", made.folder.path)
    #expect(passed.status == 0, "\(passed.output)")
    #expect(passed.output.hasPrefix("passed") && passed.output.contains("exact"))
    #expect(passed.output.contains("1 take, 0 failed"))
    let pinned = try await Tool.run("pin", made.path, "--note", "for a test")
    #expect(pinned.status == 0 && pinned.output.contains("checks, compared by meaning"))
    let meaning = try await Tool.run("verify", made.path)
    #expect(meaning.status == 0 && meaning.output.contains("meaning"))
    let twice = try await Tool.run("pin", made.path)
    #expect(twice.status == 74 && twice.errors.contains("--force"))
    #expect(try await Tool.run("pin", made.path, "--force", "--json").status == 0)
  }

  @Test func aPinThatIsNotMetFailsWithAReport() async throws {
    let made = try await Takes.copy()
    _ = try await Tool.run("pin", made.path)
    let pin = made.folder.file("copy.pin.json")
    let text = try String(contentsOfFile: pin, encoding: .utf8)
    try Data(text.replacing("host to host", with: "relay to host").utf8)
      .write(to: URL(filePath: pin))
    let outcome = try await Tool.run(
      "verify", made.path, "--junit", made.folder.file("sub/junit.xml"), "--reports",
      made.folder.file("reports"))
    #expect(outcome.status == 1)
    #expect(outcome.errors.isEmpty)
    let line = "peer 1: selected pair: relay to host was pinned, host to host was measured"
    #expect(outcome.output.contains(line), "\(outcome.output)")
    let report = try String(contentsOfFile: made.folder.file("reports/copy.txt"), encoding: .utf8)
    #expect(report.contains(line) && report.contains("retake verify --mode meaning \(made.path)"))
    let junit = try String(contentsOfFile: made.folder.file("sub/junit.xml"), encoding: .utf8)
    #expect(junit.contains("failures=\"1\"") && junit.contains("type=\"meaning\""))
    let json = try await Tool.run(
      "verify", made.path, "--json", "--reports", made.folder.file("reports"))
    #expect(json.status == 1 && json.output.contains("\"misses\":[{"))
    // In exact mode, the unchanged take still passes.
    #expect(try await Tool.run("verify", made.path, "--mode", "exact").status == 0)
  }

  @Test func anAlteredTakeFailsAndIsNeitherPinnedNorShortened() async throws {
    let made = try await Takes.copy()
    try Takes.alter(made.path, "UPDATE peer SET role = 'x' WHERE peer = 2")
    let outcome = try await Tool.run(
      "verify", made.path, "--reports", made.folder.file("reports"))
    #expect(outcome.status == 1 && outcome.output.contains("altered"))
    #expect(try await Tool.run("pin", made.path).status == 1)
    let short = try await Tool.run("minimise", made.path)
    #expect(short.status == 1 && short.errors.contains("restore the file"))
  }

  @Test func aTakeThatDoesNotFailIsNotShortened() async throws {
    let made = try await Takes.copy()
    let outcome = try await Tool.run("minimise", made.path)
    #expect(outcome.status == 1 && outcome.errors.contains("nothing to shorten"))
  }

  @Test func aTakeIsUpgradedAndTheNewOneReplays() async throws {
    let made = try await Takes.copy()
    let new = made.folder.file("new.take")
    let outcome = try await Tool.run("upgrade", made.path, "--out", new)
    #expect(outcome.status == 0 && outcome.output.contains("has the same results"))
    #expect(try await Tool.run("replay", new).status == 0)
    #expect(try await Tool.run("upgrade", made.path, "--out", new).status == 74)
  }

  @Test func bothEndsOfACallAreLaidOnOneClock() async throws {
    let made = try await Takes.copy()
    let outcome = try await Tool.run(
      "merge", made.path, made.path, "--first-peer", "1", "--second-peer", "2")
    #expect(outcome.status == 0 && outcome.output.contains("lost %"), "\(outcome.output)")
    #expect(try await Tool.run("merge", made.path, made.path).status == 65)
    let same = try await Tool.run(
      "merge", made.path, made.path, "--first-peer", "1", "--second-peer", "1", "--json")
    #expect(same.status == 1 && same.errorLines.count == 1)
  }

  private static let wrongUses: [(arguments: [String], status: Int32)] = [
    (["verify"], 64), (["verify", "/nowhere"], 66), (["pin", "/nowhere.take"], 66),
    (["minimise", "/nowhere.take"], 66), (["merge", "/nowhere.take", "/nowhere.take"], 66),
    (["upgrade", "/nowhere.take", "--out", "/nowhere.new"], 66),
    (["verify", "x", "--jobs", "0"], 64), (["verify", "x", "--mode", "loosely"], 64),
  ]

  @Test(arguments: wrongUses)
  func wrongUsageHasTheRightStatus(_ arguments: [String], _ status: Int32) async throws {
    let outcome = try await Tool.run(arguments)
    #expect(outcome.status == status, "\(outcome.errors)")
    #expect(!outcome.errors.isEmpty)
  }
}
