import ArgumentParser
import FoundationEssentials
import Observer
import Tape

/// Calls between others, as a network interface shows them.
struct RecordPcap: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pcap",
    abstract: "Record the calls between others that a network interface shows.",
    discussion: """
      Captures with libpcap, which needs the capability CAP_NET_RAW, or reads what tcpdump writes \
      into a pipe, and makes a take of the calls in it as retake import does. What is of no call \
      is counted and not kept. A key log is read as it grows, and once more at the end.

      Examples:
        retake record pcap -i any --keys keys.log --out call.take
        retake record pcap -i eth0 --filter 'udp portrange 10000-20000' --seconds 60 --out sfu.take
        retake record pcap -i eth0 --filter 'udp portrange 10000-20000' --out calls/
        ssh server tcpdump -i any -s 0 -U -w - udp | retake record pcap -r - --out call.take
      """)

  @Option(
    name: .shortAndLong, help: "The network interface; any stands for all of them.",
    transform: Taking.text(1...255))
  var interface: String?

  @Option(
    name: [.customShort("r"), .customLong("read")],
    help: "A capture to read in place of an interface; - is standard input.",
    completion: .file(extensions: ["pcap", "pcapng"]), transform: Taking.path)
  var capture: String?

  @Option(
    help: "Which packets to capture, in the words of libpcap, as in 'udp port 5000'.",
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
    help: "End the recording after so many seconds; without it, Ctrl-C ends it.",
    transform: Taking.seconds(0.001...1_000_000))
  var seconds: Double?

  @OptionGroup var observing: ObservingOptions
  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  func validate() throws {
    guard (interface == nil) != (capture == nil) else {
      throw ValidationError("give either an interface with -i, or a capture to read with -r.")
    }
    guard capture == nil || filter == nil else {
      throw ValidationError("--filter is for -i: give it to what writes the capture.")
    }
  }

  private var origin: CaptureRecording.Origin {
    guard let interface else { return .stream(capture ?? "-") }
    return .interface(interface, filter: filter, snapLength: snapLength)
  }

  func run() async throws {
    let path = try RecordOptions.takePath(out, prefix: "pcap", overwrite)
    var settings = try observing.settings()
    // What waits for keys that nobody announced would wait in vain.
    settings.awaitsKeys = interface == nil || !keys.isEmpty
    settings.followsKeyLogs = !keys.isEmpty
    let stop = StopSignal()
    let recording = CaptureRecording(
      origin, settings, keys: keys, path: path,
      progress: Progress("recording", seconds: seconds))
    let (end, continuation) = AsyncStream<Never>.makeStream()
    let work = Task {
      defer { continuation.finish() }
      return try await recording.run()
    }
    // Not the task itself: who waits for that cannot be called off.
    await stop.wait(seconds: seconds) { for await _ in end {} }
    recording.stop()
    let summary = try await work.value
    guard RecordOptions.isFolder(out), summary.calls > 1 else {
      return try json
        ? Output.json(CanonicalJSON.text(summary), in: JSONForm()) : Output.line(summary.words)
    }
    var report = try Self.split(path, settings)
    report.ofNoCall = summary.ofNoCall
    try json
      ? Output.json(CanonicalJSON.text(report), in: JSONForm()) : Output.line(report.words)
  }

  /// Creates a take of each call out of the one that was recorded, which goes then.
  private static func split(_ path: String, _ settings: CaptureTaking.Settings) throws
    -> CallFolder.Report
  {
    let folder = FileBytes.folder(of: path)
    let capture = "\(folder)\(folder.isEmpty ? "" : "/")\(FileBytes.stem(of: path)).pcapng"
    defer { FileBytes.remove(capture) }
    _ = try PcapngExport(take: path, only: nil, to: capture, .kept).run()
    let report = try CallFolder(
      capture: capture, folder: folder.isEmpty ? "." : folder, settings: settings
    ).write()
    FileBytes.remove(path)
    return report
  }
}
