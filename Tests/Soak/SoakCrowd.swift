import ArgumentParser
import Foundation
import Live

/// Many calls at once.
struct SoakCrowd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crowd", abstract: "Hold many calls at once.")

  @OptionGroup var options: SoakOptions
  @Option(help: "How many calls.")
  var calls = 1000
  @Option(help: "For how many seconds all of them are held.")
  var seconds = 10.0
  @Option(help: "How many begin at the same time.")
  var width = 16
  @Flag(help: "Whether each call gets a take of its own.")
  var each = false

  @Flag(help: "Whether each sends a tone; without it their media is still.")
  var sounds = false

  func run() async throws {
    DescriptorLimit.raise()
    let folder = try options.prepared()
    let recorder = try await options.recorder(
      folder, "crowd", usesFolder: each, calls: calls)
    let session = try options.session()
    print("before: \(recorder.usage)")
    let before = recorder.usage
    let begin = Date()
    var callers = try await gather(session, recorder)
    print(
      String(format: "%d calls after %.1f s: ", calls, Date().timeIntervalSince(begin))
        + "\(recorder.usage)")
    try await Task.sleep(for: .seconds(seconds))
    let present = try await recorder.calls()
    guard present == calls else { throw SoakFailure("\(present) of \(calls) calls are there") }
    for index in stride(from: 0, to: calls, by: max(1, calls / 50)) {
      try await callers[index].talk("still here")
    }
    print("held: \(recorder.usage)")
    for caller in callers { await caller.hangUp() }
    callers = []
    let idle = try await recorder.waitUntilIdle(within: 60)
    // A call's slot is free at once, but its resources are released only when the call has ended.
    let end = Date().addingTimeInterval(30)
    while recorder.usage.descriptors > before.descriptors + 4 {
      guard Date() < end else {
        throw SoakFailure("descriptors remain: \(before) -> \(recorder.usage)")
      }
      try await Task.sleep(for: .milliseconds(100))
    }
    print(String(format: "idle after %.1f s: ", idle) + "\(recorder.usage)")
    try await recorder.finish()
    try await replay(recorder.out)
  }

  /// Replays the take, or a sample of twenty.
  private func replay(_ out: String) async throws {
    let takes =
      each
      ? try FileManager.default.contentsOfDirectory(atPath: out).filter { $0.hasSuffix(".take") }
        .map { out + $0 } : [out]
    guard !each || takes.count == calls else { throw SoakFailure("\(takes.count) takes") }
    let sample = takes.shuffled().prefix(20)
    for take in sample {
      let process = Process()
      process.executableURL = URL(filePath: options.retake)
      process.arguments = ["replay", take]
      process.standardOutput = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else {
        throw SoakFailure("\(take) does not replay as it was recorded")
      }
    }
    print("replayed identical: \(sample.count) of \(takes.count) takes")
  }

  private func gather(_ session: Session, _ recorder: Recorder) async throws -> [Caller] {
    try await withThrowingTaskGroup(of: Caller.self) { group in
      var callers: [Caller] = []
      for number in 0..<calls {
        if number >= width, let caller = try await group.next() { callers.append(caller) }
        group.addTask {
          var caller = Caller(session, recorder)
          try await caller.call(sounds: sounds)
          return caller
        }
      }
      for try await caller in group { callers.append(caller) }
      return callers
    }
  }
}
