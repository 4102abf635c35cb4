import Foundation
import Testing

extension LiveTests {
  /// Starts `record serve` on a free loopback port; it listens when this returns.
  ///
  /// - Parameter path: the end of the address: the signaling endpoint, such as `/offer`.
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

  /// Returns the header field with the token that a recorder printed.
  static func bearer(_ run: Run) throws -> String {
    let word = run.errors.split { " \n".contains($0) }.first { $0.contains("#token=") }
    let token = try #require(word).drop { $0 != "=" }.dropFirst()
    return "Authorization: Bearer \(token)"
  }
}
