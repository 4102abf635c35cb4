import ArgumentParser
import CPcap
import CallRecording
import Dispatch
import FoundationEssentials
import Glibc
import Importing
import Live
import Observer
import Synchronization
import Tape
import Wire

/// Records calls between other endpoints from a network interface or a capture in progress.
struct RecordPcap: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pcap",
    abstract: "Record the calls between others that a network interface shows.",
    discussion: """
      Captures with libpcap, which needs the capability CAP_NET_RAW, or reads tcpdump's output \
      from a pipe, and records the calls in it like retake import. Other packets are counted and \
      dropped. A key log is read as it grows, and once more at the end. With --ring, packets are \
      kept in memory for that long, and become takes when an end fails or for another reason.

      Examples:
        retake record pcap -i any --keys keys.log --out call.take
        retake record pcap -i eth0 --filter 'udp portrange 10000-20000' \\
          --seconds 60 --out sfu.take
        retake record pcap -i eth0 --filter 'udp portrange 10000-20000' --out calls/
        retake record pcap -i eth0 --keys keys.log --ring 60s --on finding:high
        ssh server tcpdump -i any -s 0 -U -w - udp |
          retake record pcap -r - --out call.take
      """)

  @Option(
    name: .shortAndLong, help: "The network interface; any means all of them.",
    transform: Taking.text(1...255))
  var interface: String?

  @Option(
    name: [.customShort("r"), .customLong("read")],
    help: "A capture to read instead of an interface; - is standard input.",
    completion: .file(extensions: ["pcap", "pcapng"]), transform: Taking.path)
  var capture: String?

  @Option(
    help: "Which packets to capture, in libpcap's syntax, as in 'udp port 5000'.",
    transform: Taking.text(1...Taking.textLimit))
  var filter: String?

  @Option(
    name: [.customLong("snap-length"), .customLong("snaplen")],
    help: "How many bytes of each frame to capture. Default: all.",
    transform: Taking.whole(64...262_144))
  var snapLength: Int32 = 262_144

  @Option(
    help: "A key log (NSS format) that may still grow; may be given several times.",
    completion: .file(), transform: Taking.path)
  var keys: [String] = []

  @Option(
    name: .shortAndLong,
    help: """
      The take to write, or a folder for a take of each call. Default: a name with the time.
      """,
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @Option(
    help: "End the recording after this many seconds; without it, Ctrl-C ends it.",
    transform: Taking.seconds(0.001...1_000_000))
  var seconds: Double?

  @OptionGroup var observing: ObservingOptions
  @OptionGroup var ring: RingOptions
  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  func validate() throws {
    guard (interface == nil) != (capture == nil) else {
      throw ValidationError("give either an interface with -i or a capture with -r.")
    }
    guard capture == nil || filter == nil else {
      throw ValidationError("--filter is for -i: filter in the program that writes the capture.")
    }
  }

  private var origin: CaptureRecording.Origin {
    guard let interface else { return .stream(capture ?? "-") }
    return .interface(interface, filter: filter, snapLength: snapLength)
  }

  func run() async throws {
    let path = try RecordOptions.newTakePath(out, prefix: "pcap", overwrite)
    var settings = try observing.settings()
    // On an interface without key logs, no keys can arrive, so packets do not wait for them.
    settings.awaitsKeys = interface == nil || !keys.isEmpty
    settings.followsKeyLogs = !keys.isEmpty
    let stop = StopSignal()
    let plan = ring.plan(settings) { plan in
      // A capture also shows failed connections, so a failure triggers a take as well.
      plan.wishes.insert(.failure, at: 0)
      // A file is read faster than it can be searched for findings, so reading waits for each
      // search.
      plan.isSynchronous = interface == nil
    }
    let recording = CaptureRecording(
      origin, settings, keys: keys, path: path, ring: plan?.recorder(take: path),
      progress: Progress("recording", seconds: seconds))
    let (end, continuation) = AsyncStream<Never>.makeStream()
    let work = Task {
      defer { continuation.finish() }
      return try await recording.run()
    }
    // The task itself is not awaited here, because waiting for a task cannot be cancelled.
    await stop.wait(seconds: seconds) { for await _ in end {} }
    recording.stop()
    guard let summary = try await work.value else {
      return try await recording.ringReport().show(json: json)
    }
    guard TakeNames.isFolder(out), summary.calls > 1 else {
      return try json
        ? Output.json(CanonicalJSON.text(summary), in: JSONForm()) : Output.line(summary.words)
    }
    var report = try Self.split(path, settings)
    report.ofNoCall = summary.ofNoCall
    try json
      ? Output.json(CanonicalJSON.text(report), in: JSONForm()) : Output.line(report.words)
  }

  /// Splits the recorded take into one take per call, then removes the original.
  private static func split(_ path: String, _ settings: ImportSettings) throws
    -> CallsReport
  {
    let folder = FileBytes.folder(of: path)
    let capture = "\(folder)\(folder.isEmpty ? "" : "/")\(FileBytes.stem(of: path)).pcapng"
    defer { FileBytes.remove(capture) }
    _ = try PcapngExport(take: path, only: nil, to: capture, .kept).run()
    WritingWhole.cleanUpOnSignals()
    let report = try importing {
      try CallFolder(
        capture: capture, folder: folder.isEmpty ? "." : folder, settings: settings,
        reports: .onTerminal()
      ).write()
    }
    FileBytes.remove(path)
    return report
  }
}

// MARK: - CaptureRecording

/// Records from a capture in progress.
final class CaptureRecording: Sendable {
  /// The source of packets.
  enum Origin: Sendable {
    case interface(String, filter: String?, snapLength: Int32)
    /// A file or standard input.
    case stream(String)
  }

  private let origin: Origin
  private let settings: ImportSettings
  private let keys: [String]
  private let path: String
  /// The ring that retains the last seconds; nil if everything is recorded into a take.
  private let ring: FlightRecorder?
  private let isStopping = Atomic(false)
  private let progress: Progress

  /// How long to wait for packets before checking key logs and the stop flag.
  private static let tickMilliseconds: Int32 = 100
  /// How long to wait for frames that the kernel holds back: it delivers them only after its timer
  /// has found the same block of the ring twice, which takes at least twice the configured time.
  private static let holdMilliseconds = 5 * InterfaceSource.holdMilliseconds

  /// - Parameters:
  ///   - keys: key logs, which are read as they grow.
  ///   - path: the take to write.
  init(
    _ origin: Origin, _ settings: ImportSettings, keys: [String], path: String,
    ring: FlightRecorder?, progress: Progress
  ) {
    self.ring = ring
    self.origin = origin
    self.settings = settings
    self.keys = keys
    self.path = path
    self.progress = progress
  }

  /// Asks the recording to stop, without waiting for its end.
  func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Records on a separate thread until the source ends or a stop is requested.
  ///
  /// - Returns: nil if a ring retains the packets.
  /// - Throws: the errors of reading and writing; if no call was found, a failure that describes
  ///   what the capture contains.
  func run() async throws -> CaptureSummary? {
    try await withCheckedThrowingContinuation { continuation in
      startWorker(named: "capture") {
        continuation.resume(with: Result { try importing { try self.record() } })
      }
    }
  }

  /// Returns a report on the takes that the ring has written.
  func ringReport() async -> RecordingReport {
    var report = RecordingReport()
    guard let ring else { return report }
    report.add(await TakeSummary(path: path, ring), [], media: "")
    return report
  }

  private func record() throws -> CaptureSummary? {
    guard let ring else {
      let recorder = CaptureRecorder(settings, writing: path)
      return try open(recorder, recorder)
    }
    return try open(CaptureRing(ring), nil)
  }

  /// - Parameter recorder: the consumer, if it records everything into a take; nil for a ring.
  private func open(_ consumer: any CaptureConsumer, _ recorder: CaptureRecorder?) throws
    -> CaptureSummary?
  {
    switch origin {
    case .interface(let name, let filter, let snapLength):
      let source = try InterfaceSource(name, filter: filter, snapLength: snapLength)
      try recorder?.begin(unixNanoseconds: Self.unixNanoseconds)
      printError(
        "capturing on \(name) with times in \(source.hasNanoseconds ? "nano" : "micro")seconds; "
          + "Ctrl-C ends it")
      return try follow(source, consumer, recorder, name: name, isLive: true)
    case .stream(let name):
      let source = try DescriptorSource(name)
      return try follow(source, consumer, recorder, name: name, isLive: false)
    }
  }

  private func follow(
    _ source: any CaptureSource, _ consumer: any CaptureConsumer, _ recorder: CaptureRecorder?,
    name: String, isLive: Bool
  ) throws -> CaptureSummary? {
    let feed = CaptureFeed(name) { printError($0) }
    var logs = keys.map { KeyLogFollower($0) }
    var failure: (any Error)?
    do {
      let isWhole = try read(source, through: feed, to: consumer, &logs, isLive: isLive)
      try feed.finish(isWhole: isWhole) { try consumer.show($0, of: $1) }
    } catch {
      failure = error
    }
    if isLive { consumer.pass(to: Self.unixNanoseconds) }
    look(&logs, source, consumer, isLast: true)
    progress.clear()
    guard let recorder else {
      if let failure { throw failure }
      return nil
    }
    // The frames captured before a failure are kept as a take.
    let summary = try recorder.finish(feed.counters)
    if let failure { throw failure }
    guard let summary else { throw feed.counters.nothingFound(in: name) }
    return summary
  }

  /// Reads until the source ends or a stop is requested.
  ///
  /// - Returns: whether a file or pipe was read to its end.
  private func read(
    _ source: any CaptureSource, through feed: CaptureFeed, to consumer: any CaptureConsumer,
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
        look(&logs, source, consumer)
        if isLive, ring != nil { consumer.pass(to: Self.unixNanoseconds) }
        if let error = consumer.error { throw error }
      }
      bytes.removeAll(keepingCapacity: true)
      let goesOn = try source.read(into: &bytes, waiting: Self.tickMilliseconds)
      if !bytes.isEmpty { try feed.receive(bytes) { try consumer.show($0, of: $1) } }
      guard goesOn else { return !isLive }
      // The kernel holds the last frames back for a moment, so read once more after that.
      if let end, now >= end { return false }
    }
  }

  /// Passes new keys and counts of lost frames to the consumer, and updates the progress line.
  private func look(
    _ logs: inout [KeyLogFollower], _ source: any CaptureSource, _ consumer: any CaptureConsumer,
    isLast: Bool = false
  ) {
    for index in logs.indices {
      if let news = logs[index].news(isLast: isLast) { consumer.receive(keyLog: news) }
    }
    consumer.recordDropped(source.removeDropped())
    progress.show("recording: \(consumer.progress)")
  }

  private static var unixNanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
