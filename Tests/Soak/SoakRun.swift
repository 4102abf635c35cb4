import ArgumentParser
import Foundation
import Live
import Media
import Synchronization
import Wire

/// Calls that start and end at random: some die in the middle, some renegotiate, some never finish.
struct SoakRun: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Let calls come and go at random for minutes.")

  @OptionGroup var options: SoakOptions
  @Option(help: "How long, in minutes; what remains is counted from the end of the second on.")
  var minutes = 10.0
  @Option(help: "How many callers are at work at once.")
  var callers = 12

  /// The maximum number of simultaneous calls at a recorder: dead or unanswered ones keep their
  /// slot for up to half a minute, and a fast machine makes dozens of calls per second.
  private static let callsMaximum = 2000

  func run() async throws {
    let folder = try options.prepared()
    let recorders = [
      try await options.recorder(folder, "one", usesFolder: false, calls: Self.callsMaximum),
      try await options.recorder(folder, "each", usesFolder: true, calls: Self.callsMaximum),
    ]
    let session = try options.session()
    let tally = Tally()
    try await drive(recorders, session, tally, for: min(120, minutes * 30))
    let before = try await usages(recorders)
    if minutes > 2 {
      try await drive(recorders, session, tally, for: (minutes - 2) * 60)
    } else {
      try await drive(recorders, session, tally, for: minutes * 30)
    }
    let after = try await usages(recorders)
    var complaints = tally.complaints
    for (index, name) in ["one take", "a folder"].enumerated() {
      if let found = complaint(name, before[index], after[index]) { complaints.append(found) }
    }
    for recorder in recorders { try await recorder.finish() }
    guard complaints.isEmpty else { throw SoakFailure(complaints.joined(separator: "\n")) }
    print("\(tally.text): nothing remains of them")
  }

  /// Lets each caller make one call after another for a time, with a random habit each.
  private func drive(
    _ recorders: [Recorder], _ session: Session, _ tally: Tally, for seconds: Double
  ) async throws {
    let end = Date().addingTimeInterval(seconds)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<callers {
        group.addTask {
          while Date() < end, tally.complaints.isEmpty {
            let recorder = recorders[number % recorders.count]
            let habit = Habit.allCases.randomElement() ?? .talk
            do {
              try await habit.live(Caller(session, recorder))
              tally.count(habit)
            } catch {
              tally.complain("\(habit): \(error)")
            }
          }
        }
      }
      group.addTask {
        while Date() < end, tally.complaints.isEmpty {
          try? await Task.sleep(for: .seconds(10))
          let usage = recorders.map { "\($0.usage)" }.joined(separator: " | ")
          print("\(tally.text): \(usage)")
        }
      }
    }
  }

  /// Returns the recorders' resource usage when no call is left.
  private func usages(_ recorders: [Recorder]) async throws -> [ProcessUsage] {
    var usages: [ProcessUsage] = []
    for recorder in recorders {
      _ = try await recorder.waitUntilIdle(within: 120)
      // Lets temporary runtime threads and closing connections finish.
      try await Task.sleep(for: .seconds(8))
      usages.append(recorder.usage)
    }
    return usages
  }
}

/// How a caller behaves.
enum Habit: String, CaseIterable {
  /// Sends a few text messages and hangs up.
  case talk
  /// Sends a tone for a second or two.
  case audio
  /// Renegotiates during the call.
  case renegotiate
  /// Restarts ICE during the call.
  case restart
  /// Dies in the middle of the call.
  case die
  /// Sends an offer, and never answers a check.
  case vanish
  /// Requests an offer, and never answers it.
  case ignore

  func live(_ made: Caller) async throws {
    var caller = made
    do {
      switch self {
      case .talk:
        try await caller.call(sounds: false)
        for number in 0..<5 { try await caller.talk("hello \(number)") }
      case .audio:
        try await caller.call(sounds: true)
        try await Task.sleep(for: .milliseconds(.random(in: 500...2000)))
      case .renegotiate:
        try await caller.call(sounds: false)
        try await caller.connection.addTrack(.audio, source: .tone(hertz: 300, pauseSeconds: 0))
        try await caller.offer()
        try await caller.talk("again")
      case .restart:
        try await caller.call(sounds: false)
        try await caller.offer(restartsICE: true)
        try await Task.sleep(for: .milliseconds(300))
        try await caller.talk("restarted")
      case .die:
        try await caller.call(sounds: true)
        try await Task.sleep(for: .milliseconds(.random(in: 0...500)))
        return await caller.die()
      case .vanish:
        _ = try await caller.begin(sounds: false)
        return await caller.die()
      case .ignore:
        try await caller.askForOffer()
        return await caller.die()
      }
    } catch {
      await caller.die()
      throw error
    }
    await caller.hangUp()
  }
}

/// Counts of completed actions.
final class Tally: Sendable {
  private let state = Mutex((counts: [Habit: Int](), complaints: [String]()))

  func count(_ habit: Habit) { state.withLock { $0.counts[habit, default: 0] += 1 } }
  func complain(_ text: String) { state.withLock { $0.complaints.append(text) } }
  var complaints: [String] { state.withLock { $0.complaints } }

  var text: String {
    let counts = state.withLock { $0.counts }
    let parts = Habit.allCases.compactMap { habit in
      counts[habit].map { "\($0) \(habit.rawValue)" }
    }
    return "\(counts.values.reduce(0, +)) calls (\(parts.joined(separator: ", ")))"
  }
}
