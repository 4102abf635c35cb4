import Foundation
import Testing

/// Tests `retake merge`, `whatif --build` and `replay --substitute` with valid and invalid
/// arguments.
struct MergeCommandTests {
  @Test func bothEndsOfACallAreJoinedIntoATakeThatReplays() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let joint = folder.file("joint.take")
    let ends = ["merge", made.path, made.path, "--first-peer", "1", "--second-peer", "2"]
    let merged = try await Tool.run(ends + ["--out", joint])
    #expect(merged.status == 0, "\(merged.errors)")
    #expect(merged.output.contains("2 callee begins ") && merged.output.contains("1 caller"))
    #expect(merged.output.contains("\(joint): ") && merged.output.contains("on one clock"))
    let replayed = try await Tool.run("replay", joint)
    #expect(replayed.status == 0 && replayed.output.contains("identical"), "\(replayed.errors)")
    #expect(try Takes.number(joint, "SELECT count(*) FROM one_way_delay") > 100)
    let json = try await Tool.run(ends + ["--json"])
    let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
    #expect((object?["ways"] as? [Any])?.count == 2)

    let again = try await Tool.run(ends + ["--out", joint])
    #expect(again.status == 74 && again.output.isEmpty)
    #expect(again.errors.contains("exists already") && again.errorLines.count == 1)
    let nowhere = try await Tool.run(ends + ["--out", "\(folder.path)/no/joint.take"])
    #expect(nowhere.status == 74 && nowhere.errorLines.count == 1, "\(nowhere.errors)")
  }

  @Test(
    arguments: [
      ([], 65, "1 caller, 2 callee; name the one that is an end of this call with --first-peer"),
      (["--first-peer", "7", "--second-peer", "2"], 65, "it has no peer 7, only 1 caller"),
      (["--first-peer", "1", "--second-peer", "1"], 1, "are these the two ends of one call?"),
      (["--first-peer", "one"], 64, "is invalid for '--first-peer"),
    ] as [([String], Int32, String)])
  func endsThatDoNotFitAreRefused(_ options: [String], _ status: Int32, _ words: String)
    async throws
  {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run(["merge", made.path, made.path] + options)
    #expect(outcome.status == status && outcome.errors.contains(words), "\(outcome.errors)")
  }

  @Test func missingTakesAreNamed() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("merge", made.path, "/nowhere/b.take", "--first-peer", "1")
    #expect(outcome.status == 66 && outcome.errors.contains("/nowhere/b.take: there is no such"))
    let alone = try await Tool.run("merge", made.path)
    #expect(alone.status == 64 && alone.errors.contains("<second>"))
  }

  @Test func whatIfRunsAnotherBuild() async throws {
    let made = try await Takes.lossyCall()
    let same = try await Tool.run("whatif", made.path, "--build", Tool.path)
    #expect(same.status == 0 && same.output.contains("no result differs"))
    let other = try await Tool.run(
      "whatif", made.path, "--build", Tool.path, "--jitter-buffer", "300", "--json")
    #expect(other.status == 0 && other.output.contains("jitter buffers of at least 300 ms"))
    for (build, status, words) in [
      ("/nowhere/retake", 66, "there is no such executable"),
      ("/tmp", 64, "it is not an executable"), ("/etc/passwd", 64, "it is not an executable"),
      ("/bin/true", 74, "supports whatif --outcomes"),
    ] as [(String, Int32, String)] {
      let wrong = try await Tool.run("whatif", made.path, "--build", build)
      #expect(wrong.status == status && wrong.errors.contains(words), "\(wrong.errors)")
      #expect(wrong.errorLines.count == 1)
    }
  }

  @Test(arguments: [
    (["--peer", "7", "--jitter-buffer", "9"], "it has no peer 7, only 1 caller, 2 callee"),
    (["--set", "colour=1"], "there is no setting colour, only iceServers"),
    (["--set", "audioBitrate=loud"], "loud is not a value of the setting audioBitrate"),
    (["--set", "audioBitrate"], "a setting is NAME=VALUE"),
    (["--drop", "rtp"], "neither a place nor a table"),
  ])
  func invalidChangesAreRefused(_ options: [String], _ words: String) async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run(["whatif", made.path] + options)
    #expect(outcome.status == 64 && outcome.errors.contains(words), "\(outcome.errors)")
    #expect(outcome.errorLines.count == 1)
  }

  @Test func aTakeReplaysFromItsLibrariesRecordedOutputs() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("replay", made.path, "--substitute")
    #expect(outcome.status == 0 && outcome.output.contains("identical"), "\(outcome.errors)")
    #expect(outcome.output.contains("DTLS: 2 certificates, the keys of 2 associations, "))
    #expect(outcome.output.contains("SRTP: 0 of "))
    let none = try await Tool.run("replay", "/nowhere/a.take", "--substitute")
    #expect(none.status == 66 && none.errorLines.count == 1)
  }

  /// The machine's debugger stops at the requested step, and then in the stack's own code.
  @Test(.enabled(if: Tool.has("gdb")))
  func aDebuggerStopsAtTheStepAndInTheStack() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let source = try String(
      contentsOf: DebugTests.root.appending(path: "Sources/Stack/Peer/PeerMachine.swift"),
      encoding: .utf8)
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
    let line = try #require(lines.firstIndex { $0.contains("func step(") }) + 1
    // lldb is not found, so gdb is used.
    let outcome = try await Tool.shell(
      """
      mkdir '\(folder.path)/bin'
      printf '#!/bin/sh\\nexit 127\\n' > '\(folder.path)/bin/lldb'
      chmod +x '\(folder.path)/bin/lldb'
      printf '%s\\n' bt 'break PeerMachine.swift:\(line)' continue bt kill quit \
        | PATH="\(folder.path)/bin:$PATH" "$RETAKE" replay '\(made.path)' --until step:30 --lldb
      """)
    #expect(outcome.output.contains("Breakpoint 1, cprocess_stop_here"), "\(outcome.output)")
    #expect(outcome.output.contains("ReplayCommand.swift"))
    #expect(outcome.output.contains("Breakpoint 2, "), "\(outcome.output)")
    #expect(outcome.output.contains("PeerMachine.swift:"))
  }
}
