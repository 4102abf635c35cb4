import Foundation
import Testing

@testable import Tape

/// Takes that several tests read; each is made once.
enum Takes {
  /// A take and the folder that contains it.
  struct Made: Sendable {
    var folder: Folder
    var path: String
    var outcome: Tool.Outcome
  }

  private static let lossy = Task {
    try await Takes.virtual("--loss", "5", "--delay", "40", "--jitter", "20", "--seed", "7")
  }

  /// Returns three seconds of a call over a bad virtual network; tests must not change it.
  static func lossyCall() async throws -> Made { try await lossy.value }

  /// Returns a copy of the lossy call, which a test may damage.
  static func copy() async throws -> Made {
    var made = try await lossyCall()
    let folder = try Folder()
    try FileManager.default.copyItem(atPath: made.path, toPath: folder.file("copy.take"))
    made.folder = folder
    made.path = folder.file("copy.take")
    return made
  }

  /// Records a virtual call with small video frames.
  static func virtual(_ options: String...) async throws -> Made {
    let folder = try Folder()
    let path = folder.file("call.take")
    let arguments =
      ["record", "demo", "--out", path, "--size", "160x120", "--rate", "10", "--seconds", "3"]
      + options
    let outcome = try await Tool.run(arguments)
    try #require(outcome.status == 0, "\(outcome.errors)")
    return Made(folder: folder, path: path, outcome: outcome)
  }

  /// Replays a take and expects it to be identical.
  static func expectIdentical(_ path: String) async throws {
    let outcome = try await Tool.run("replay", path)
    #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
  }

  /// Executes SQL on a take's file, without updating the digest chain.
  static func alter(_ path: String, _ sql: String) throws {
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try connection.execute(sql)
  }

  /// Returns the first column of a query's first row, as a number.
  static func number(_ path: String, _ sql: String) throws -> Int64 {
    try #require(try SQLiteConnection(path: path, mode: .readOnly).integer(sql), "\(sql)")
  }

  /// Returns the first column of a query's first row, as bytes.
  static func bytes(_ path: String, _ sql: String) throws -> [UInt8] {
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    let statement = try connection.prepare(sql)
    try #require(try statement.step(), "\(sql)")
    return statement.bytes(0)
  }
}
