import Foundation
import Testing

/// Imports compressed captures, and captures with several calls.
struct ImportFilesTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  // MARK: Compression

  @Test(arguments: [
    ("gzip -c", "gz"), ("zstd -qc", "zst"),
    // Several files, concatenated.
    ("sh -c 'head -c 90000 $0 | gzip; tail -c +90001 $0 | gzip'", "gz"),
    ("sh -c 'head -c 90000 $0 | zstd -q; tail -c +90001 $0 | zstd -q'", "zst"),
  ])
  func aCompressedCaptureIsTheSameTake(_ command: String, _ ending: String) async throws {
    try #require(Tool.has("zstd") && Tool.has("gzip"))
    let folder = try Folder()
    let capture = sample("firefox-loop.pcap")
    let (whole, again) = (folder.file("whole.take"), folder.file("again.take"))
    let compressed = folder.file("call.pcap.\(ending)")
    let packing = try await Tool.shell("\(command) '\(capture)' > '\(compressed)'")
    try #require(packing.status == 0, "\(packing.errors)")
    #expect(try await Tool.run("import", capture, "--out", whole).status == 0)
    let made = try await Tool.run("import", compressed, "--out", again)
    #expect(made.status == 0, "\(made.errors)")
    let digest = "SELECT digest FROM ending"
    #expect(try Takes.bytes(whole, digest) == Takes.bytes(again, digest))
  }

  @Test(arguments: ["gzip -c", "zstd -qc"])
  func theIntactPartOfACompressedCaptureIsUsed(_ command: String) async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let cut = folder.file("cut")
    _ = try await Tool.shell(
      "\(command) '\(sample("chromium-noenc-VP8.pcap"))' | head -c 150000 > '\(cut)'")
    let made = try await Tool.run("import", cut, "--out", path)
    #expect(made.status == 0 && made.errors.contains("are cut off"), "\(made.errors)")
    #expect(try Takes.number(path, "SELECT count(*) FROM packet") > 50)
  }

  @Test(arguments: ["gzip -c", "zstd -qc"])
  func damageOfACompressedCaptureIsReported(_ command: String) async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let damaged = folder.file("damaged")
    _ = try await Tool.shell("\(command) '\(sample("firefox-loop.pcap"))' > '\(damaged)'")
    var bytes = [UInt8](try Data(contentsOf: folder.url("damaged")))
    for index in stride(from: 5_000, to: bytes.count, by: 50) { bytes[index] ^= 0x5a }
    _ = try folder.write("damaged", bytes)
    let made = try await Tool.run("import", damaged, "--out", path)
    #expect(made.status == 65 && made.errors.contains("damaged"), "\(made.errors)")
    #expect(made.errorLines.count == 1)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  /// A compressed hundred megabytes must import in little memory, because they are read piece by
  /// piece.
  @Test(arguments: ["gzip -1c", "zstd -qc"])
  func decompressedBytesAreNotBuffered(_ command: String) async throws {
    let folder = try Folder()
    let (path, bomb) = (folder.file("call.take"), folder.file("bomb"))
    let outcome = try await Tool.shell(
      """
      { head -c 24 '\(sample("firefox-loop.pcap"))'
        python3 -c 'import sys
      frame = bytes(8) + b"\\0\\0\\1\\0" * 2 + bytes(65536)
      for _ in range(1530): sys.stdout.buffer.write(frame)'
      } | \(command) > '\(bomb)'
      ulimit -v 400000; "$RETAKE" import '\(bomb)' --out '\(path)'
      """)
    // All frames are empty, so the import may find no call in the capture.
    #expect([0, 65].contains(outcome.status) && !outcome.wasKilled, "\(outcome.errors)")
    let size = try FileManager.default.attributesOfItem(atPath: bomb)[.size] as? Int
    #expect(try #require(size) < 1_000_000)
  }

  // MARK: Several calls

  /// Concatenates pcap captures, keeping only the first file's header; returns the path.
  private func joined(_ names: [String], _ folder: Folder) throws -> String {
    var all = Data()
    for name in names {
      let bytes = try Data(contentsOf: URL(filePath: sample("\(name).pcap")))
      all += all.isEmpty ? bytes : bytes.dropFirst(24)
    }
    return try folder.write("several.pcap", all)
  }

  @Test func aFolderGetsATakeOfEachCall() async throws {
    let folder = try Folder()
    let names = ["chromium-aiortc", "aiortc-offers-chromium"]
    let capture = try joined(names, folder)
    let calls = folder.file("calls")
    var arguments = ["import", capture, "--out", "\(calls)/"]
    for name in names {
      arguments += ["--keys", sample("\(name).keys")]
      for end in ["offer", "answer"] { arguments += ["--sdp", sample("\(name)-\(end).sdp")] }
    }
    let made = try await Tool.run(arguments)
    #expect(made.status == 0, "\(made.errors)")
    let takes = try FileManager.default.contentsOfDirectory(atPath: calls).sorted()
    #expect(takes == ["several-1.take", "several-2.take"])
    for (take, packets) in zip(takes, [835, 844]) {
      let path = "\(calls)/\(take)"
      #expect(try Takes.number(path, "SELECT count(*) FROM peer") == 2)
      let count = "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND direction = 'in'"
      #expect(try Takes.number(path, count) == packets)
      // Each call's take has only that call's secrets and descriptions.
      let told = "SELECT count(*) FROM call_request WHERE name ="
      #expect(try Takes.number(path, "\(told) 'keyLog'") == 1)
      #expect(try Takes.number(path, "\(told) 'description'") == 2)
      #expect(try Takes.number(path, "SELECT count(*) FROM coverage") == 0)
      #expect(try Takes.number(path, "SELECT length(label) > 10 FROM take") == 1)
      try await Takes.expectIdentical(path)
    }
    // The output already exists.
    let again = try await Tool.run(arguments)
    #expect(again.status == 74 && again.errors.contains("exists already"), "\(again.errors)")
  }

  @Test func aFolderNeedsAFileWithCalls() async throws {
    let folder = try Folder()
    let piped = try await Tool.run("import", "-", "--out", folder.path)
    #expect(piped.status == 64 && piped.errors.contains("read twice"), "\(piped.errors)")
    let empty = try folder.write(
      "empty.pcap",
      Data(
        contentsOf: URL(
          filePath: sample("firefox-loop.pcap"))
      ).prefix(24))
    let made = try await Tool.run("import", empty, "--out", "\(folder.path)/calls/")
    #expect(made.status == 65 && made.errors.contains("it contains no call"), "\(made.errors)")
    #expect(!FileManager.default.fileExists(atPath: folder.file("calls")))
  }
}
