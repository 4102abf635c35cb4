import ArgumentParser
import Foundation
import Live

/// Makes successive calls: a recorder's resources may depend on the running calls, but not on the
/// number of past calls.
struct SoakSeries: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "series", abstract: "Make calls one after another.")

  @OptionGroup var options: SoakOptions
  @Option(help: "How many calls.")
  var calls = 2000
  @Flag(help: "Whether each call gets a take of its own.")
  var each = false

  func run() async throws {
    let folder = try options.prepared()
    let recorder = try await options.recorder(folder, "series", usesFolder: each)
    let session = try options.session()
    var before: ProcessUsage?
    let begin = Date()
    for number in 1...calls {
      var caller = Caller(session, recorder)
      try await caller.call(sounds: false)
      try await caller.talk("call \(number)")
      await caller.hangUp()
      if number == min(200, calls / 10) {
        _ = try await recorder.waitUntilIdle(within: 30)
        before = recorder.usage
      }
      if number % 200 == 0 { print("\(number) calls: \(recorder.usage)") }
    }
    let seconds = Date().timeIntervalSince(begin)
    _ = try await recorder.waitUntilIdle(within: 30)
    try await Task.sleep(for: .seconds(2))
    let problem = before.flatMap { complaint("\(calls) calls", $0, recorder.usage) }
    try await recorder.finish()
    if let problem { throw SoakFailure(problem) }
    print(String(format: "%d calls in %.1f s, none refused: %@", calls, seconds, recorder.out))
  }
}
