import Foundation
import Signaling

/// A running `retake record serve` on loopback, queried like any server.
final class Recorder: Sendable {
  let url: String
  let out: String
  private let process: Process
  private let log: String
  private let token: String

  /// Starts a recorder whose takes are written below `folder`.
  ///
  /// - Parameter usesFolder: whether each call gets a separate take.
  init(_ program: String, folder: String, name: String, usesFolder: Bool, options: [String])
    async throws
  {
    out = usesFolder ? "\(folder)/\(name)/" : "\(folder)/\(name).take"
    log = "\(folder)/\(name).log"
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments =
      ["record", "serve", "--listen", "127.0.0.1:0", "--bind", "127.0.0.1", "--out", out] + options
    process.standardError = FileHandle(forWritingAtPath: log)
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    for _ in 0..<200 {
      let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      if let line = text.split(separator: "\n").first(where: { $0.hasPrefix("open http") }) {
        let address = line.split(separator: " ")[1].split(separator: "#")
        url = address[0].trimmingCharacters(in: ["/"])
        token = address.last.map { String($0.dropFirst("token=".count)) } ?? ""
        return
      }
      guard process.isRunning else { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw SoakFailure("the recorder does not begin: see \(log)")
  }

  var usage: ProcessUsage { ProcessUsage(of: process.processIdentifier) }

  /// Ends the process immediately when a run has failed.
  deinit { if process.isRunning { process.terminate() } }

  /// Returns how many calls are running, according to the recorder.
  func calls() async throws -> Int {
    let body = try await HTTPClient(timeout: .seconds(30)).send(
      "GET", url + "/calls", headers: [("Authorization", "Bearer \(token)")]
    ).body
    return try JSONDecoder().decode(CallList.self, from: Data(body)).calls.count
  }

  /// Waits until no call is left; returns how long it took, in seconds.
  func waitUntilIdle(within limit: Double) async throws -> Double {
    let begin = Date()
    while try await calls() > 0 {
      guard Date().timeIntervalSince(begin) < limit else {
        throw SoakFailure("\(try await calls()) calls are still there after \(limit) s")
      }
      try await Task.sleep(for: .milliseconds(200))
    }
    return Date().timeIntervalSince(begin)
  }

  /// Ends the recording as Ctrl-C does.
  func finish() async throws {
    process.interrupt()
    while process.isRunning { try await Task.sleep(for: .milliseconds(50)) }
    guard process.terminationStatus == 0 else {
      throw SoakFailure("the recorder ended with status \(process.terminationStatus): see \(log)")
    }
  }
}

/// Why a run has failed, in one sentence.
struct SoakFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}
