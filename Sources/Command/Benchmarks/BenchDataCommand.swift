import ArgumentParser
import FoundationEssentials
import Live
import Peer
import Replay
import RetakeCommand
import SDP
import Synchronization
import Tape
import Wire

/// Measures a data channel's throughput.
struct BenchDataCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "data",
    abstract: "Measure how fast messages go over a data channel between two peers.",
    discussion: """
      Two peers send over loopback UDP, each on its own thread as in an application. The \
      sender keeps 1 MiB of messages waiting; with --record both peers are recorded meanwhile.

      Example:
        retake-bench data --message-size 16384 --seconds 5
      """)

  @Option(
    help:
      """
      For how many seconds messages are counted, after one without. Default: \(Self.usualSeconds).
      """,
    transform: Taking.seconds(0.1...600))
  var seconds = Double(Self.usualSeconds)

  @Option(
    help: "The size of each message in bytes. Default: \(Self.usualSize).",
    transform: Taking.whole(1...1 << 20))
  var messageSize = Self.usualSize

  private static let usualSeconds = 5
  private static let usualSize = 16_384

  @Flag(help: "Record both peers, into takes that are removed afterwards.")
  var record = false

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() async throws {
    let folder = record ? try BenchFolder() : nil
    defer { folder?.remove() }
    let result = try await DataThroughput.measure(
      messageSize: messageSize, seconds: seconds, recordingIn: folder?.url)
    try json ? Output.json(result.json, in: .bench) : Output.line(result.text)
  }
}

// MARK: - DataThroughput

/// A data channel's throughput over loopback between two peers on separate threads.
///
/// The sender works like an application: it awaits each `send`, so that no more than 1 MiB is
/// buffered; the receiver reads message by message.
struct DataThroughput: Encodable {
  /// The number of received message bytes.
  var bytes: Int
  /// The duration of the measurement in seconds.
  var seconds: Double
  /// The processor time of both peers together, in seconds.
  var processorSeconds: Double

  /// How long messages are sent before the measurement, while the congestion window grows.
  private static let warmUp = Duration.seconds(1)

  /// Measures how fast messages of one size are transferred during a number of seconds.
  ///
  /// - Parameter folder: where each peer is recorded into its own take; nil records nothing.
  static func measure(
    messageSize: Int, seconds: Double, recordingIn folder: URL? = nil
  ) async throws -> DataThroughput {
    let sender = try End("sender", recordingIn: folder)
    let receiver = try End("receiver", recordingIn: folder)
    let result = try await run(sender.peer, receiver.peer, messageSize, seconds)
    try await sender.session.finish()
    try await receiver.session.finish()
    return result
  }

  private static func run(
    _ sender: PeerConnection, _ receiver: PeerConnection, _ messageSize: Int, _ seconds: Double
  ) async throws -> DataThroughput {
    let received = ReceivedBytes()
    let receiving = Task { await receive(receiver, received) }
    defer { receiving.cancel() }
    let channel = try await sender.createDataChannel("bench")
    try await connect(sender, receiver)
    try await channel.waitUntilOpen()
    let sending = Task { try await send(messageSize, over: channel) }
    defer { sending.cancel() }
    try await Task.sleep(for: warmUp)
    return try await count(received, for: seconds)
  }

  private static func receive(_ peer: PeerConnection, _ received: ReceivedBytes) async {
    await peer.forEachRemoteDataChannel { channel in
      for await message in channel.messages { received.add(message.count) }
    }
  }

  /// Sends until the task is cancelled.
  private static func send(_ size: Int, over channel: DataChannel) async throws {
    let message = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    while !Task.isCancelled { try await channel.send(message) }
  }

  private static func count(
    _ received: ReceivedBytes, for seconds: Double
  ) async throws -> DataThroughput {
    let before = received.value
    let watch = Stopwatch()
    try await Task.sleep(for: .seconds(seconds))
    let elapsed = watch.elapsed
    return DataThroughput(
      bytes: received.value - before, seconds: elapsed.wall, processorSeconds: elapsed.processor)
  }

  private static func connect(_ sender: PeerConnection, _ receiver: PeerConnection) async throws {
    try await receiver.setRemoteDescription(try await description(of: sender))
    try await sender.setRemoteDescription(try await description(of: receiver))
  }

  private static func description(of peer: PeerConnection) async throws -> SessionDescription {
    try await peer.setLocalDescription()
    try await peer.waitForGatheringComplete()
    guard let description = try await peer.localDescription else {
      throw CommandFailure(.difference, "bench data: a peer made no description")
    }
    return description
  }
}

extension DataThroughput {
  private var rate: Double { Double(bytes) / 1e6 / seconds }

  var text: String {
    let perGigabyte = processorSeconds * 1e9 / Double(max(bytes, 1))
    return "\(decimal(rate, 1)) MB/s, \(decimal(perGigabyte, 2)) s of the processors per GB"
  }

  var json: String { CanonicalJSON.text(self) }
}

/// One of the two peers, with its own session.
private final class End: Sendable {
  let session: Session
  let peer: PeerConnection

  init(_ name: String, recordingIn folder: URL?) throws {
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    options.takePath = folder?.appendingPathComponent("\(name).take").path
    session = try Session(options)
    peer = session.makePeer(label: name)
  }
}

/// Counts received bytes across tasks.
private final class ReceivedBytes: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add(_ more: Int) { count.add(more, ordering: .relaxed) }
}
