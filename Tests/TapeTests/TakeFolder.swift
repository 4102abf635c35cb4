import Foundation
import Tape

/// A folder for takes that is removed after the test.
final class TakeFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/take-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Records steps into a file and returns its path.
  func record(
    _ steps: [StepRecord], as name: String = "a.take",
    _ change: (inout TapeWriter.Options) -> Void = { _ in }
  ) throws -> String {
    var options = TapeWriter.Options()
    options.label = "test"
    options.startUnixNanoseconds = 1_767_225_600_123_456_789
    options.toolVersion = "1"
    options.toolchain = Toolchain(openssl: "3.0", cpu: "x86_64")
    change(&options)
    let writer = try TapeWriter(path: file(name), options: options)
    _ = writer.addPeer(label: "caller", role: "offerer")
    _ = writer.addPeer(label: "callee", role: "answerer")
    for step in steps { writer.record(step) }
    _ = try writer.finish()
    return file(name)
  }

  /// Copies a take from `Captures` and returns the copy's path.
  func copy(_ name: String) throws -> String {
    let captures = FileManager.default.currentDirectoryPath + "/Captures/"
    try FileManager.default.copyItem(atPath: captures + name + ".take", toPath: file("a.take"))
    return file("a.take")
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: file(name)) }

  /// Executes SQL on a take's file, without updating the digest chain.
  func alter(_ path: String, _ sql: String) throws {
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try connection.execute(sql)
  }
}

/// Returns all of a take's steps, read in chunks of at most `at` steps.
func steps(of path: String, at once: Int = 256) throws -> [TapeChunk.Step] {
  let reader = try TapeReader(path: path)
  var steps: [TapeChunk.Step] = []
  while let chunk = try reader.next(steps: once) { steps += chunk.steps }
  return steps
}
