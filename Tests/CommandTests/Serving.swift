import Foundation
import Testing

extension LiveTests {
  /// Starts `record serve` on a free port of loopback; it listens when this returns.
  ///
  /// - Parameter path: what the address ends in: the way of signaling, such as `/offer`.
  static func serve(_ arguments: String..., at path: String = "") async throws -> (
    run: Run, url: String
  ) {
    let run = try Run(
      Tool.path,
      ["record", "serve", "--listen", "127.0.0.1:0", "--bind", "127.0.0.1"] + arguments)
    try await run.waitForErrors(with: "/whep")
    let word = run.errors.split { " \n".contains($0) }.first { $0.hasSuffix("/offer") }
    return (run, String(try #require(word).dropLast("/offer".count)) + path)
  }

  /// The field that carries the token which a recorder has printed.
  static func bearer(_ run: Run) throws -> String {
    let word = run.errors.split { " \n".contains($0) }.first { $0.contains("#token=") }
    let token = try #require(word).drop { $0 != "=" }.dropFirst()
    return "Authorization: Bearer \(token)"
  }
}
