import ArgumentParser
import Foundation
import Media
import Peer
import Replay
import Tape
import Wire

/// Re-drives the stack from a take.
struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Re-drive the whole stack from a take and compare everything it does.",
    discussion: """
      Prints "identical", or the first thing that differs: an altered file is told apart from a \
      stack that behaves differently. The exit status is 0 when identical, 1 when not.

      Examples:
        retake replay call.take
        retake replay call.take --skip-codecs
        retake replay call.take --until step:1234
      """)

  @OptionGroup var options: TakeOptions

  @Flag(help: "Let recorded frames stand in for the codecs; all but decoded media is compared.")
  var skipCodecs = false

  @Option(help: "Stop before a step (step:123) or at a time (12.5s).")
  var until: ReplayLimit?

  func run() throws {
    var replayOptions = Replayer.Options()
    replayOptions.skipsCodecs = skipCodecs
    replayOptions.until = until?.stop
    let report = try reading { () throws(TapeError) in
      replayOptions.toolchain = try Toolchain.current(for: options.take)
      let replayer = try Replayer(
        path: options.take, options: replayOptions, codecs: { LibraryCodecs() },
        peer: { PeerMachine(codecs: $0) })
      warn(replayer.toolchainDifferences)
      let end = try replayer.lastTime() ?? .zero
      let progress = Progress("replaying")
      defer { progress.clear() }
      return try replayer.run { at in
        progress.show(String(format: "replaying: %.1f of %.1f s", at.seconds, end.seconds))
      }
    }
    print(options.json ? report.json : report.description)
    if case .identical = report.verdict { return }
    throw CommandFailure(.difference, "")
  }

  /// Says before the replay what may explain a divergence.
  private func warn(_ differences: [ToolchainDifference]) {
    guard !differences.isEmpty, !options.json else { return }
    printError("retake: \(options.take): made with another toolchain, bytes may differ:")
    for difference in differences {
      printError(
        "  \(difference.part): recorded \(difference.recorded), here \(difference.present)")
    }
  }
}

/// Where a replay ends, as `step:123` or `12.5s`.
struct ReplayLimit: ExpressibleByArgument {
  var stop: Replayer.Stop

  init?(argument: String) {
    if argument.hasPrefix("step:") {
      guard let number = Int(argument.dropFirst(5)), number > 0 else { return nil }
      stop = .step(number)
    } else {
      let digits = argument.hasSuffix("s") ? String(argument.dropLast()) : argument
      guard let seconds = Double(digits), (0...1e9).contains(seconds) else { return nil }
      stop = .time(Instant(nanoseconds: Int64(seconds * 1e9)))
    }
  }
}

extension Instant {
  /// The time since the beginning of the take in seconds.
  var seconds: Double { Double(nanoseconds) / 1e9 }
}
