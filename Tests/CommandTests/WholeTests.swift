import Foundation
import Testing

/// Tests files that are written in one piece, and incomplete takes: recordings in progress and
/// copies of them.
struct WholeTests {
  /// Interrupts a command in the middle of its work, and returns the files that it left beside the
  /// take.
  ///
  /// A separate process waits for the right moment: other tests may delay this one for longer than
  /// the work takes.
  private func interrupted(_ arguments: [String], in folder: Folder) async throws -> [String] {
    let script = """
      import os, signal, subprocess, sys
      run = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
      while not any(n.endswith(".part") for _, _, f in os.walk(sys.argv[1]) for n in f):
        try:
          run.wait(timeout=0.005)
          break
        except subprocess.TimeoutExpired:
          pass
      run.send_signal(signal.SIGINT)
      print(run.wait())
      """
    let run = try Run("/usr/bin/python3", ["-c", script, folder.path, Tool.path] + arguments)
    let outcome = try await run.outcome()
    #expect(outcome.output == "\(-SIGINT)\n", "\(arguments): \(outcome)")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  @Test func anInterruptLeavesNothing() async throws {
    let folder = try Folder()
    let new = folder.file("new.take")
    let left = try await interrupted(
      ["record", "demo", "--seed", "1", "--seconds", "600", "--out", new], in: folder)
    #expect(left.isEmpty)
    let long = try await Takes.virtual("--seed", "4", "--seconds", "20")
    for arguments in [
      ["upgrade", long.path, "--out", new], ["export", long.path, "--media", folder.file("media")],
      ["export", long.path, "--pcap", folder.file("a.pcap"), "--clear"],
    ] {
      #expect(try await interrupted(arguments, in: folder).isEmpty)
    }
  }

  @Test func failedWritesAreReportedAndLeaveNothing() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    for (arguments, limit) in [
      (["page", made.path, "--out", folder.file("a.html")], 20),
      (["upgrade", made.path, "--out", folder.file("a.take")], 200),
      (["export", made.path, "--pcap", folder.file("a.pcap")], 20),
      (["export", made.path, "--media", folder.file("media")], 20),
      (
        [
          "merge", made.path, made.path, "--first-peer", "1", "--second-peer", "2", "--out",
          folder.file("b.take"),
        ], 200
      ),
    ] {
      let line = arguments.map { "'\($0)'" }.joined(separator: " ")
      // The shell's limit counts in units of 512 bytes.
      let outcome = try await Tool.shell("ulimit -f \(limit); \"$RETAKE\" \(line)")
      #expect(outcome.status == 74 && !outcome.wasKilled, "\(arguments): \(outcome)")
      #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
      #expect(outcome.errors.contains(arguments[arguments.count - 1]), "\(outcome.errors)")
      let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(left.allSatisfy { $0 == "media" }, "\(arguments): \(left)")
    }
    let full = try await Tool.run("page", made.path, "--out", "/dev/full")
    #expect(full.status == 74 && full.errors.contains("/dev/full"), "\(full)")
  }

  @Test func writtenFilesAreAccessibleOnlyToTheirOwner() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let outcome = try await Tool.run(
      "debug", made.path, "-c", "seek end", "-c", "picture \(folder.file("a.png"))", "-c",
      "sound \(folder.file("a.wav"))")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let page = try await Tool.run("page", made.path, "--out", folder.file("a.html"))
    #expect(page.status == 0)
    for name in ["a.png", "a.wav", "a.html"] {
      let values = try FileManager.default.attributesOfItem(atPath: folder.file(name))
      #expect(values[.posixPermissions] as? Int == 0o600, "\(name)")
    }
  }

  @Test func filesThatAreNoTakesFailAsEverywhereElse() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let bad = try folder.write("bad.take", "hello".utf8)
    let reports = folder.file("reports")
    #expect(try await Tool.run("verify", bad, "--reports", reports).status == 65)
    #expect(try await Tool.run("verify", bad, made.path, "--reports", reports).status == 65)
    #expect(try await Tool.run("verify", folder.file("none")).status == 66)
  }

  @Test func anUnmetConditionIsNoDifference() async throws {
    let path = try await Takes.lossyCall().path
    for arguments in [
      ["replay", path, "--skip-codecs", "--until", "state connection failed"],
      ["debug", path, "-c", "seek state connection failed"],
      ["debug", path, "-c", "next event refused", "-c", "next"],
      ["whatif", path, "--drop", "packet rtp ssrc=1"],
      ["stats", path, "--at", "0", "--sampled"],
    ] {
      #expect(try await Tool.run(arguments).status == 2, "\(arguments)")
    }
    #expect(try await Tool.run("debug", path, "-c", "seek state connected").status == 0)
  }
}

extension LiveTests {
  struct UnfinishedTests {
    /// Verbs that read a take.
    private static let verbs = [
      ["timeline"], ["stats"], ["stats", "--problems"], ["speakers"], ["debug", "-c", "state"],
      ["sql", "SELECT 1"],
    ]

    @Test func anUnfinishedTakeAndOneWithoutItsLogAreReported() async throws {
      let folder = try Folder()
      let (path, copy) = (folder.file("live.take"), folder.file("copy.take"))
      let run = try Run(
        Tool.path, ["record", "demo", "--size", "160x120", "--seconds", "60", "--out", path])
      // Wait until SQLite has moved part of the log into the file, so that the copy has content.
      try await poll("the beginning of the take") {
        let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        return size ?? 0 > 500_000
      }
      try await expect(path, "still being recorded, by process \(run.processIdentifier)")
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      try await expect(copy, "without \(copy)-wal")
      run.send(SIGINT)
      #expect(try await run.outcome().status == 0)
      #expect(try await Tool.run("timeline", path).errors.isEmpty)
    }

    private func expect(_ path: String, _ words: String) async throws {
      for verb in ["info", "replay"] {
        let outcome = try await Tool.run(verb, path)
        #expect(outcome.output.contains(words), "\(verb): \(outcome.output.prefix(600))")
      }
      let json = try await Tool.run("info", path, "--json")
      #expect(json.output.contains(words))
      for verb in Self.verbs {
        let outcome = try await Tool.run([verb[0], path] + verb.dropFirst())
        #expect(outcome.errors.contains(words), "\(verb): \(outcome.errors)")
      }
    }
  }
}
