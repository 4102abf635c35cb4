import Foundation
import Testing
import Wire

/// Tests unusual file names, and files left by a killed process.
struct FileNameTests {
  @Test func aNameNeedNotBeUTF8() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let outcome = try await Tool.shell(
      """
      cd '\(folder.path)' && bad=$(printf 'caf\\351') && cp '\(made.path)' "$bad.take" \
      && "$RETAKE" info "$bad.take" && "$RETAKE" replay "$bad.take" \
      && "$RETAKE" export "$bad.take" --pcap "$bad.pcap" && "$RETAKE" page "$bad.take" \
      && "$RETAKE" pin "$bad.take" && "$RETAKE" verify . && "$RETAKE" sql "$bad.take" 'SELECT 1' \
      && "$RETAKE" import "$bad.pcap" --out "$bad/" && "$RETAKE" verify "$bad" \
      && "$RETAKE" verify "$bad.take" --json && ls | LC_ALL=C od -c | head -2
      """)
    #expect(outcome.status == 0, "\(outcome)")
    #expect(outcome.output.contains("caf\\xe9.take: "))
    #expect(outcome.output.contains("\"caf\\\\xe9.take"))
    #expect(outcome.output.contains("c   a   f 351"), "\(outcome.output)")
    let missing = try await Tool.shell("\"$RETAKE\" info $(printf 'none\\377')")
    #expect(missing.status == 66)
    #expect(missing.errors == "retake: none\\xff: there is no such file\n")
  }

  @Test func commandsToCopyAreQuoted() async throws {
    let folder = try Folder()
    let made = try await Takes.copy()
    let path = folder.file("it's $(a) take.take")
    try FileManager.default.moveItem(atPath: made.path, toPath: path)
    try Takes.alter(path, "UPDATE state SET to_state = 'failed' WHERE to_state = 'connected'")
    let outcome = try await Tool.run(
      "verify", path, "--reports", folder.file("reports"))
    #expect(outcome.status == 1, "\(outcome)")
    let report = try String(
      contentsOfFile: folder.file("reports/it's $(a) take.txt"), encoding: .utf8)
    let line = try #require(
      report.split(separator: "\n").first { $0.contains("retake replay") })
    // The shell splits the line into the original words.
    let words = try await Tool.shell("printf '%s\\n' \(line)")
    #expect(words.output.split(separator: "\n").map { String($0) } == ["retake", "replay", path])
  }

  /// A killed process leaves files that contain keys, which the next process removes.
  @Test func filesOfAKilledProcessAreRemoved() async throws {
    let (made, folder) = (try await Takes.virtual("--seed", "5", "--seconds", "30"), try Folder())
    func parts() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: folder.path)
        .filter { $0.contains(".part") }
    }
    let run = try Run(Tool.path, ["upgrade", made.path, "--out", folder.file("a.take")])
    try await poll("a part") { try !parts().isEmpty || !run.isRunning }
    run.send(SIGKILL)
    _ = try await run.outcome()
    let left = try parts()
    try #require(!left.isEmpty)
    // The files of a running process stay.
    let other = try Run(Tool.path, ["upgrade", made.path, "--out", folder.file("b.take")])
    try await poll("its part") { try !parts().contains(left[0]) || !other.isRunning }
    #expect(try !parts().contains(left[0]))
    let page = try await Tool.run("page", made.path, "--out", folder.file("a.html"))
    #expect(page.status == 0)
    let outcome = try await other.outcome()
    #expect(outcome.status == 0, "\(outcome)")
    #expect(try parts().isEmpty)
  }

  @Test func foldersForTakesAreAccessibleOnlyToTheirOwner() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let outcome = try await Tool.shell(
      """
      umask 022; "$RETAKE" export '\(made.path)' --pcap '\(folder.file("a.pcap"))' \
      && "$RETAKE" import '\(folder.file("a.pcap"))' --out '\(folder.file("x/calls/"))' \
      && "$RETAKE" export '\(made.path)' --media '\(folder.file("media/deep"))' \
      && cd '\(folder.path)' && "$RETAKE" record demo --seconds 0.1 --seed 1 --out new/ \
      && stat -c %a x x/calls media media/deep new a.pcap
      """)
    #expect(outcome.status == 0, "\(outcome)")
    #expect(outcome.output.hasSuffix("700\n700\n700\n700\n700\n600\n"), "\(outcome.output)")
  }

  /// If an attacker has placed a link at the output's path, the link is not followed.
  @Test func linksAreNotFollowedWhereFilesAreMade() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let victim = try folder.write("victim", "keep".utf8)
    for name in ["a.pcap", "a.pcapng", "a.take"] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.file(name), withDestinationPath: folder.file("dangling-\(name)"))
    }
    for arguments in [
      ["export", made.path, "--pcap", folder.file("a.pcap")],
      ["export", made.path, "--pcapng", folder.file("a.pcapng")],
      ["record", "demo", "--seed", "1", "--seconds", "0.1", "--out", folder.file("a.take")],
    ] {
      let outcome = try await Tool.run(arguments)
      #expect(outcome.status == 74, "\(outcome)")
      #expect(outcome.errors.contains("exists already"), "\(outcome.errors)")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(names == ["a.pcap", "a.pcapng", "a.take", "victim"])
    #expect(try String(contentsOfFile: victim, encoding: .utf8) == "keep")
  }

  @Test func anExportOfNothingIsAFailureAndNoFile() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    for arguments in [
      ["--pcap", folder.file("a"), "--from", "100s"],
      ["--media", folder.file("m"), "--from", "100s"],
      ["--pcap", folder.file("a"), "--clear", "--from", "100s"], ["--pcap", "-", "--from", "100s"],
    ] {
      let outcome = try await Tool.run(["export", made.path] + arguments)
      #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains("it ends before that"))
    }
    // A time before the first packet.
    let nothing = try await Tool.run(
      "export", made.path, "--pcap", folder.file("a"), "--to", "0.000001ms", "--peer", "2",
      "--from", "0.000001ms")
    #expect(nothing.status == 2 && nothing.errors.contains("is not written"), "\(nothing)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test func thePeersOfAnObservedCallHaveTheirPackets() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let capture = folder.file("a.pcap")
    _ = try await Tool.run("export", made.path, "--pcap", capture, "--peer", "1")
    let take = folder.file("seen.take")
    let imported = try await Tool.run("import", capture, "--out", take)
    #expect(imported.status == 0, "\(imported)")
    let all = try await Tool.run("export", take, "--pcap", folder.file("all.pcap"))
    let one = try await Tool.run("export", take, "--pcap", folder.file("one.pcap"), "--peer", "1")
    #expect(all.status == 0 && one.status == 0, "\(all) \(one)")
    // The take has both ends of one call, so each datagram leaves one end and arrives at the other.
    let bytes = try ["a.pcap", "all.pcap", "one.pcap"].map { try Data(contentsOf: folder.url($0)) }
    #expect(bytes[0] == bytes[1] && bytes[1] == bytes[2])
  }

  /// If the last packets are dated a year later, an export does not repeat one frame for the whole
  /// year.
  @Test func aWrongDateDoesNotFillTheDisk() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let capture = folder.file("a.pcap")
    _ = try await Tool.run("export", made.path, "--pcap", capture, "--peer", "1", "--clear")
    var bytes = [UInt8](try Data(contentsOf: folder.url("a.pcap")))
    // Shifts everything after the first half of the packets.
    var offsets: [Int] = []
    var place = 24
    while place < bytes.count {
      offsets.append(place)
      place += 16 + (0..<4).reduce(0) { $0 | Int(bytes[place + 8 + $1]) << (8 * $1) }
    }
    for offset in offsets.suffix(offsets.count / 2) {
      let seconds = (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << (8 * UInt32($1)) }
      for index in 0..<4 {
        bytes[offset + index] = UInt8(truncatingIfNeeded: (seconds + 31_536_000) >> (8 * index))
      }
    }
    _ = try folder.write("b.pcap", bytes)
    let imported = try await Tool.run(
      "import", folder.file("b.pcap"), "--map", "96=vp8,111=opus/48000", "--decode", "--out",
      folder.file("b.take"))
    #expect(imported.status == 0, "\(imported)")
    for (gap, words) in [("10", "are left out (--gap)"), ("10min", "are left out (--gap)")] {
      let media = folder.file("media-\(gap)")
      let outcome = try await Tool.run(
        "export", folder.file("b.take"), "--media", media, "--rate", "1", "--gap", gap)
      #expect(outcome.status == 0 && outcome.output.contains(words), "\(outcome)")
      let size = try FileManager.default.contentsOfDirectory(atPath: media).reduce(0) {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(media)/\($1)")
        return $0 + (attributes[.size] as? Int ?? 0)
      }
      #expect(size < 60_000_000, "\(gap) made \(size) bytes")
    }
  }
}
