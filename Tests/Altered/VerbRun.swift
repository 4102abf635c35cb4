import CProcess
import Foundation
import RetakeCommand

/// Runs all verbs on one take in forked copies of this process, so that a crash ends only the copy.
struct VerbRun {
  /// The result for one take.
  struct Outcome {
    var statuses: [(verb: String, status: Int32)] = []
    var faults: [String] = []
  }

  let take: String
  let other: String
  let folder: String
  /// The command lines to run, in order.
  private let lines: [[String]]

  /// - Parameters:
  ///   - number: the take's number, which selects command lines.
  ///   - count: how many command lines to run.
  ///   - replays: whether to include a replay even if `number` does not select it.
  ///   - only: the verbs to run; empty for all.
  init(
    take: String, other: String, folder: String, number: UInt64, count: Int, replays: Bool,
    only: Set<String> = []
  ) {
    (self.take, self.other, self.folder) = (take, other, folder)
    let all = Self.all(take, other, folder).filter { only.isEmpty || only.contains($0[0]) }
    guard count < all.count else {
      lines = all
      return
    }
    var chance = Chance(number ^ 0x7e57)
    var left = Array(all.indices)
    var chosen: Set<Int> = replays && only.isEmpty ? [0] : []
    while chosen.count < count, !left.isEmpty {
      chosen.insert(left.remove(at: chance.below(left.count)))
    }
    lines = all.indices.filter(chosen.contains).map { all[$0] }
  }

  /// Returns all command lines; they write into `folder`.
  private static func all(_ take: String, _ other: String, _ folder: String) -> [[String]] {
    let out = "\(folder)/out"
    return [
      ["replay", take], ["info", take], ["info", "--json", take], ["timeline", take],
      ["timeline", "--json", take], ["stats", take], ["stats", "--json", take],
      ["stats", "--series", take], ["stats", "--sdk", take], ["stats", "--problems", take],
      ["findings", take], ["findings", "--json", take], ["summary", take],
      ["summary", "--json", take],
      ["stats", "--at", "0.2", take], ["speakers", take], ["speakers", "--json", take],
      ["sql", "--time-limit", "5", take, "SELECT * FROM packet LIMIT 100"],
      ["sql", "--time-limit", "5", take, "SELECT * FROM stream"],
      ["sql", "--time-limit", "5", take, "SELECT * FROM packet_life"],
      ["sql", "--time-limit", "5", take, "SELECT * FROM frame_journey"],
      ["sql", "--time-limit", "5", take, "SELECT * FROM arrival"],
      ["sql", "--time-limit", "5", take, "SELECT * FROM lost_packet, frame_packet LIMIT 99"],
      ["sql", "--time-limit", "5", "--each", take, other, "SELECT * FROM stream"],
      ["findings", take, other, "--json"], ["info", take, other],
      ["page", take, "--out", "\(out).html"], ["replay", "--substitute", take],
      ["replay", "--skip-codecs", take],
      ["replay", "--until", "state ice-connection connected", take],
      ["debug", take, "-c", "seek step:20", "-c", "back", "-c", "show", "-c", "packet"],
      ["whatif", take, "--drop", "packet rtp share=20%"], ["diff", take, other],
      ["diff", other, take], ["merge", take, other], ["merge", take, take],
      ["verify", take, "--reports", "\(out)-reports"], ["pin", take, "--out", "\(out).json"],
      ["upgrade", take, "--out", "\(out).take"],
      ["redact", take, "--out", "\(out)-3.take"], ["bundle", take, "--out", "\(out).zip"],
      ["minimise", take, "--out", "\(out)-2.take"],
      ["export", take, "--pcap", "\(out).pcap"],
      ["export", take, "--pcap", "\(out)-2.pcap", "--clear"],
      ["export", take, "--pcapng", "\(out).pcapng"], ["export", take, "--media", "\(out)-media"],
      ["export", take, "--format", "webm", "--format", "ogg", "--out", "\(out)-tracks"],
      ["export", take, "--format", "webrtc-internals", "--out", "\(out)-dump"],
      ["export", take, "--format", "perfetto", "--out", "\(out)-trace"],
    ]
  }

  /// The processor seconds that a verb may use, however busy the machine is.
  private static let seconds: UInt32 = 20
  /// The total seconds after which a verb counts as stuck, even if it uses no processor time.
  private static let waiting = 10 * seconds
  private static let memory = 1 << 30

  func outcome() throws -> Outcome {
    var outcome = Outcome()
    let report = "\(folder)/statuses"
    var start = 0
    // If a verb ends the process, a new copy of the process continues after that verb.
    while start < lines.count {
      try? FileManager.default.removeItem(atPath: report)
      let status = try Self.inCopy { run(from: start, report) }
      let text = (try? String(contentsOfFile: report, encoding: .utf8)) ?? ""
      let done = text.split(separator: "\n").compactMap { Int32($0) }
      for (index, status) in done.enumerated() where start + index < lines.count {
        outcome.statuses.append((lines[start + index][0], status))
      }
      for line in text.split(separator: "\n") where line.hasPrefix("fault ") {
        outcome.faults.append(String(line.dropFirst(6)))
      }
      start += done.count
      guard start < lines.count else { break }
      outcome.faults.append(
        "\(lines[start].joined(separator: " ")): ended by signal \(status & 127)")
      start += 1
    }
    return outcome
  }

  /// Runs the verbs from `start` on, and appends their statuses to `report`.
  private func run(from start: Int, _ report: String) {
    let log = open(report, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o600)
    let null = open("/dev/null", O_RDWR)
    for descriptor: Int32 in 0...2 { dup2(null, descriptor) }
    signal(SIGXFSZ, SIG_IGN)
    var files = rlimit(rlim_cur: 256 << 20, rlim_max: 256 << 20)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &files)
    for line in lines[start...] {
      for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      where name.hasPrefix("out") {
        try? FileManager.default.removeItem(atPath: "\(folder)/\(name)")
      }
      Self.forgetPeak()
      Self.limitTime(Self.seconds, Self.waiting)
      let status = RetakeProgram.status(of: line)
      Self.limitTime(0, 0)
      var text = "\(status)\n"
      let peak = Self.peakBytes()
      if peak > Self.memory { text += "fault \(line.joined(separator: " ")): \(peak >> 20) MB\n" }
      if ![0, 1, 2, 64, 65, 66, 74].contains(status) {
        text += "fault \(line.joined(separator: " ")): status \(status)\n"
      }
      _ = text.withCString { write(log, $0, strlen($0)) }
    }
  }

  /// Limits this process's processor time, and its total time; 0 seconds means no limit.
  private static func limitTime(_ seconds: UInt32, _ waiting: UInt32) {
    var processor = itimerval()
    processor.it_value.tv_sec = Int(seconds)
    setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &processor, nil)
    alarm(waiting)
  }

  /// Resets this process's peak resident memory, as the kernel records it.
  private static func forgetPeak() {
    let file = open("/proc/self/clear_refs", O_WRONLY)
    _ = "5".withCString { write(file, $0, 1) }
    close(file)
  }

  private static func peakBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) << 10
  }

  /// Runs `body` in a forked copy of the process and waits for it; returns `waitpid`'s status.
  private static func inCopy(_ body: () -> Void) throws -> Int32 {
    var channel: Int32 = -1
    let process = cprocess_fork(&channel)
    guard process >= 0 else { throw POSIXError(POSIXError.Code(rawValue: -process) ?? .EIO) }
    if process == 0 {
      body()
      cprocess_exit()
    }
    close(channel)
    var status: Int32 = 0
    waitpid(process, &status, 0)
    return status
  }
}
