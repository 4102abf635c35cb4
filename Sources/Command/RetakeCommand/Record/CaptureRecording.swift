import Dispatch
import FoundationEssentials
import Glibc
import Importing
import Observer
import Synchronization
import Tape
import Wire

/// Records what a capture shows while it is made.
final class CaptureRecording: Sendable {
  /// Where packets come from.
  enum Origin: Sendable {
    case interface(String, filter: String?, snapLength: Int32)
    /// A file, or standard input.
    case stream(String)
  }

  private let origin: Origin
  private let settings: ImportSettings
  private let keys: [String]
  private let path: String
  private let isStopping = Atomic(false)
  private let progress: Progress

  /// How long nothing may come before key logs and the wish to stop are looked at.
  private static let tickMilliseconds: Int32 = 100
  /// What the kernel holds back comes after twice the time that it was given: its timer has to find
  /// the same block of the ring begun two times.
  private static let holdMilliseconds = 5 * InterfaceSource.holdMilliseconds

  /// - Parameters:
  ///   - keys: key logs that are read as they grow.
  ///   - path: the take to write.
  init(
    _ origin: Origin, _ settings: ImportSettings, keys: [String], path: String,
    progress: Progress
  ) {
    self.origin = origin
    self.settings = settings
    self.keys = keys
    self.path = path
    self.progress = progress
  }

  /// Lets the recording end.
  func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Records on a thread of its own until the source ends or a stop is asked for.
  ///
  /// - Returns: what came of it.
  /// - Throws: also when there was no packet, and says what there was.
  func run() async throws -> CaptureSummary {
    try await withCheckedThrowingContinuation { continuation in
      startWorker(named: "capture") {
        continuation.resume(with: Result { try importing { try self.record() } })
      }
    }
  }

  private func record() throws -> CaptureSummary {
    let recorder = CaptureRecorder(settings, writing: path)
    switch origin {
    case .interface(let name, let filter, let snapLength):
      let source = try InterfaceSource(name, filter: filter, snapLength: snapLength)
      try recorder.begin(unixNanoseconds: Self.unixNanoseconds)
      printError(
        "capturing on \(name) with times in \(source.hasNanoseconds ? "nano" : "micro")seconds; "
          + "Ctrl-C ends it")
      return try follow(source, recorder, name: name, isLive: true)
    case .stream(let name):
      return try follow(try DescriptorSource(name), recorder, name: name, isLive: false)
    }
  }

  private func follow(
    _ source: any CaptureSource, _ recorder: CaptureRecorder, name: String, isLive: Bool
  ) throws -> CaptureSummary {
    let feed = CaptureFeed(name) { printError($0) }
    var logs = keys.map { KeyLogFollower($0) }
    var failure: (any Error)?
    do {
      let isWhole = try read(source, through: feed, to: recorder, &logs, isLive: isLive)
      try feed.finish(isWhole: isWhole) { try recorder.show($0, of: $1) }
    } catch {
      failure = error
    }
    if isLive { recorder.observer?.pass(to: Self.unixNanoseconds) }
    look(&logs, source, recorder, isLast: true)
    progress.clear()
    // What came before a failure is a take all the same.
    let summary = try recorder.finish(feed.counters)
    if let failure { throw failure }
    guard let summary else { throw feed.counters.nothingFound(in: name) }
    return summary
  }

  /// Reads until nothing follows or a stop is asked for.
  ///
  /// - Returns: whether nothing follows.
  private func read(
    _ source: any CaptureSource, through feed: CaptureFeed, to recorder: CaptureRecorder,
    _ logs: inout [KeyLogFollower], isLive: Bool
  ) throws -> Bool {
    var bytes: [UInt8] = []
    var nextLook = ContinuousClock.now
    var end: ContinuousClock.Instant?
    while true {
      let now = ContinuousClock.now
      if isStopping.load(ordering: .relaxed) {
        guard isLive else { return false }
        end = end ?? now + .milliseconds(Self.holdMilliseconds)
      }
      if now >= nextLook {
        nextLook = now + .milliseconds(Self.tickMilliseconds)
        look(&logs, source, recorder)
        if let error = recorder.observer?.error { throw error }
      }
      bytes.removeAll(keepingCapacity: true)
      let goesOn = try source.read(into: &bytes, waiting: Self.tickMilliseconds)
      if !bytes.isEmpty { try feed.receive(bytes) { try recorder.show($0, of: $1) } }
      guard goesOn else { return !isLive }
      // The kernel holds the last frames back for a moment: one look more after that has all.
      if let end, now >= end { return false }
    }
  }

  /// Looks whether there are further keys, or frames were lost.
  private func look(
    _ logs: inout [KeyLogFollower], _ source: any CaptureSource, _ recorder: CaptureRecorder,
    isLast: Bool = false
  ) {
    for index in logs.indices {
      if let news = logs[index].news(isLast: isLast) { recorder.receive(keyLog: news) }
    }
    guard let observer = recorder.observer else { return }
    observer.recordDropped(source.removeDropped())
    let summary = observer.summary
    progress.show(
      "recording: \(counted(summary.calls, "call")), "
        + "\(counted(summary.packets, "RTP and RTCP packet")), "
        + "\(summary.ofNoCall) of no call, \(summary.dropped) lost")
  }

  private static var unixNanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
