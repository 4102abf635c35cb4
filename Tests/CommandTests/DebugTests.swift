import Foundation
import Testing

/// Scripted sessions of `retake debug`, `whatif` and `diff`.
struct DebugTests {
  private func debug(_ path: String, _ commands: String...) async throws -> Tool.Outcome {
    try await Tool.run(["debug", path] + commands.flatMap { ["-c", $0] })
  }

  private func json(_ text: Substring) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
  }

  /// A step shows the same state whether the session reaches it forward, or backward from a
  /// checkpoint.
  @Test func aPlaceLooksTheSameFromBothSides() async throws {
    let made = try await Takes.lossyCall()
    let forward = try await debug(made.path, "seek 1.5s", "show")
    #expect(forward.status == 0, "\(forward.errors)")
    let back = try await debug(
      made.path, "seek end", "seek 1.5s", "back 60", "next 60", "show")
    #expect(back.status == 0, "\(back.errors)")
    let lines: [Substring] = forward.output.split(separator: "\n")
    let shown: [Substring] = Array(lines.drop { !$0.hasPrefix("peer 1") })
    #expect(shown.count > 100)
    let ending: [Substring] = back.output.split(separator: "\n").suffix(shown.count)
    #expect(ending == shown)
    #expect(!forward.output.contains("diverged") && !back.output.contains("diverged"))
  }

  @Test func aScriptOnStandardInputPrintsJSON() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.shell(
      """
      printf '%s\\n' 'seek state connection connected' 'next packet in rtp' back \
        'break packet rtcp sr' continue 'watch flow.congestion.target' 'next 3' 'steps 2' mark \
        'next 40' diff quit 'not reached' | "$RETAKE" debug '\(made.path)' --json
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 12)
    let connected = try Takes.number(
      made.path,
      "SELECT min(step) FROM state WHERE machine = 'connection' AND to_state = 'connected'")
    let packet = try Takes.number(
      made.path,
      """
      SELECT min(step) FROM packet WHERE direction = 'in' AND protocol = 'rtp'
        AND step > \(connected)
      """)
    #expect(try json(lines[0])["step"] as? Int64 == connected)
    #expect(try json(lines[1])["step"] as? Int64 == packet)
    #expect(try json(lines[2])["step"] as? Int64 == packet - 1)
    #expect((try json(lines[4])["note"] as? String)?.contains("breakpoint 1") == true)
    #expect((try json(lines[6])["watched"] as? [String: Any])?.count == 2)
    #expect((try json(lines[7])["steps"] as? [Any])?.count == 2)
    #expect((try json(lines[10])["changes"] as? [Any])?.isEmpty == false)
  }

  @Test func goingBackFindsWhatSQLFinds() async throws {
    let made = try await Takes.lossyCall()
    let end = try Takes.number(made.path, "SELECT steps FROM ending")
    for (condition, sql) in [
      ("packet rtcp nack", "rtcp WHERE type = 'nack'"),
      ("frame in video peer=1", "frame WHERE kind = 'video' AND direction = 'in' AND peer = 1"),
      ("state ice-connection completed", "state WHERE to_state = 'completed'"),
      ("call setRemoteDescription", "call_request WHERE name = 'setRemoteDescription'"),
    ] {
      let step = try Takes.number(made.path, "SELECT max(step) FROM \(sql) AND step < \(end)")
      let outcome = try await debug(made.path, "seek end", "back \(condition)")
      #expect(outcome.output.contains("after step \(step)\n"), "\(condition): \(outcome.output)")
    }
    let none = try await debug(made.path, "seek 1s", "back state connection failed")
    #expect(none.output.contains("nothing earlier matches"))
  }

  @Test func replaysStopAtConditionsAndShowTheStack() async throws {
    let made = try await Takes.lossyCall()
    let text = try await Tool.run("replay", made.path, "--until", "state dtls connected peer=1")
    #expect(text.status == 0, "\(text.errors)")
    #expect(
      text.output.contains("peer 1 caller:") && text.output.contains("dtls: connected")
        || text.output.contains("dtls connected"))
    let outcome = try await Tool.run("replay", made.path, "--until", "1.2s", "--json")
    let states = try json(Substring(outcome.output))["states"] as? [String: [String: Any]]
    #expect(states?.keys.sorted() == ["1", "2"])
    #expect(((states?["1"]?["flow"] as? [String: Any])?["receiving"] as? [Any])?.count == 2)
    let none = try await Tool.run("replay", made.path, "--until", "state connection failed")
    #expect(none.status == 2)
    #expect(none.errors.contains("nothing in it matches"))
    let beyond = try await Tool.run("replay", made.path, "--until", "99s")
    #expect(beyond.status == 2 && beyond.output.contains("identical"))
    #expect(beyond.errors.contains("--until 99s: it ends before that, at step "))
  }

  @Test func sessionsAreComparedAndRunAgain() async throws {
    let made = try await Takes.lossyCall()
    let same = try await Tool.run("diff", made.path, made.path)
    #expect(same.status == 0 && same.output.contains("the same in every step"))
    let other = try await Takes.virtual("--seed", "8")
    let diff = try await Tool.run("diff", made.path, other.path, "--json")
    #expect(diff.status == 1)
    #expect((try json(Substring(diff.output))["differences"] as? [Any])?.isEmpty == false)
    let dropped = try await Tool.run(
      "whatif", made.path, "--drop", "packet rtp from=1s to=1.5s", "--peer", "2", "--json")
    #expect(dropped.status == 0, "\(dropped.errors)")
    #expect((try json(Substring(dropped.output))["peers"] as? [Any])?.count == 2)
    for arguments in [
      ["whatif", made.path], ["whatif", made.path, "--set", "colour=1"],
      ["whatif", made.path, "--drop", "state failed"], ["whatif", made.path, "--delay", "packet"],
    ] {
      let outcome = try await Tool.run(arguments)
      #expect(outcome.status == 64 && outcome.errorLines.count == 1, "\(outcome.errors)")
    }
  }

  @Test func whatifReportsThatAnObservedTakeHasNoStackToRun() async throws {
    let outcome = try await Tool.run(
      "whatif", "Captures/observed-aiortc.take", "--drop", "packet rtp")
    #expect(outcome.status == 2 && outcome.errorLines.count == 1, "\(outcome.errors)")
    #expect(outcome.errors.contains("the take has no endpoint") && outcome.output.isEmpty)
  }

  /// Returns the shell commands in a section of the README.
  private static func commands(_ heading: String) throws -> [String] {
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let section = try #require(readme.components(separatedBy: "## \(heading)\n").dropFirst().first)
    return section.components(separatedBy: "\n## ")[0].split(separator: "\n")
      .filter { $0.hasPrefix("    ") }.map { String($0.dropFirst(4)) }
  }

  /// Runs the README's commands after `make demo`, and its walk-through, word for word, in a folder
  /// like the one that `make demo` creates.
  @Test func theReadmesExampleFindsTheFreezeAndRemovesIt() async throws {
    let root = Self.root
    let first = try Self.commands("Two commands")
    try #require(first.count == 4 && first[0].hasPrefix("make demo "))
    let path = first[2]
    let commands = try Self.commands("Why did the video freeze?")
    try #require(commands.count == 4)
    let folder = try Folder()
    let made = folder.file(".build/debug")
    try FileManager.default.createDirectory(atPath: made, withIntermediateDirectories: true)
    let captures = folder.file("Captures")
    try FileManager.default.createDirectory(atPath: captures, withIntermediateDirectories: false)
    let name = "virtual-heavy-loss.take"
    try FileManager.default.copyItem(
      at: root.appending(path: "Captures/\(name)"), to: URL(filePath: "\(captures)/\(name)"))
    try FileManager.default.copyItem(
      atPath: "\(captures)/\(name)", toPath: folder.file(".build/demo.take"))
    let place = "cd '\(folder.path)' && ln -sf \"$RETAKE\" .build/debug/retake"
    let demo = try await Tool.shell("\(place) && \(path) && \(first[3])")
    #expect(demo.status == 0 && demo.output.contains("ice-connection"), "\(demo.errors)")
    var outputs: [String] = []
    for command in commands {
      let outcome = try await Tool.shell("\(place) && \(path) && \(command)")
      #expect(outcome.status == 0, "\(command): \(outcome.errors)")
      outputs.append(outcome.output)
    }
    #expect(outputs[0].contains("freeze"))
    // Packets are missing while the video is frozen.
    #expect(outputs[1].contains { $0.isNumber } && outputs[1].contains("missing: "))
    #expect(!outputs[1].contains("missing: none"))
    #expect(outputs[2].contains("the same samples as in the recording"))
    #expect(FileManager.default.fileExists(atPath: folder.file("frozen.png")))
    #expect(outputs[3].contains("freeze gone"))
    #expect(!outputs[3].contains("freeze added"))
  }

  /// The folder with the manifest, searched upwards from this file.
  static let root: URL = {
    var folder = URL(filePath: #filePath).deletingLastPathComponent()
    while folder.path != "/",
      !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path)
    {
      folder.deleteLastPathComponent()
    }
    return folder
  }()

  /// A debugger that does not start is skipped; if none starts, the output suggests an alternative.
  @Test func withoutADebuggerThatStartsTheWayOutIsReported() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let bin = folder.file("bin")
    let outcome = try await Tool.shell(
      """
      mkdir -p '\(bin)'
      for name in lldb gdb; do
        printf '#!/bin/sh\\nexit 127\\n' > '\(bin)/'$name
        chmod +x '\(bin)/'$name
      done
      PATH='\(bin)' "$RETAKE" replay '\(made.path)' --until step:5 --lldb
      """)
    #expect(outcome.status == 74)
    #expect(outcome.errors.contains("neither lldb nor gdb can be started"))
    #expect(outcome.errors.contains("--until step:5 --stop-here"))
  }
}
