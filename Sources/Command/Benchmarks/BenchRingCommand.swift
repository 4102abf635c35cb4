import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Lab
import Media
import Peer
import Queries
import RetakeCommand
import Tape
import Wire

/// Measures a flight recorder's cost while it only retains packets, and when it writes a take.
struct BenchRingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ring",
    abstract: "Measure retaining a call in a ring, and writing takes of it.",
    discussion: """
      A call of 640x360 at 30 frames per second with audio runs in virtual time into a ring of a \
      minute. Only what the ring adds is measured.

      Example:
        retake-bench ring --seconds 120
      """)

  @Option(
    help: "The length of the call in seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(10...3600))
  var seconds = Self.usualSeconds

  @Flag(help: "Print JSON for programs.")
  var json = false

  private static let usualSeconds = 120
  private static let ringSeconds: Int64 = 60
  private static let rounds = 3
  /// The goal in microseconds per packet: a capture must sustain 100,000 packets per second.
  private static let packetGoal = 10.0

  func run() throws {
    let folder = try BenchFolder()
    defer { folder.remove() }
    var table = try BenchTable(seconds: seconds, show: json ? nil : { try Output.line($0) })
    var settings = RingPlan.Settings()
    settings.isSynchronous = true
    settings.length = .seconds(Self.ringSeconds)
    settings.takesMaximum = 1_000
    let plan = RingPlan(settings) { _ in }
    let recorder = plan.recorder(take: folder.url.appendingPathComponent("call.take").path)
    let retained = Retained(PeerRing(recorder))
    run(retained)
    let packets = Double(max(1, retained.packets))
    try table.add(
      "a packet of a call into the ring", retained.seconds * 1e6 / packets, floor: Self.packetGoal,
      "us", .atMost, 1)
    try table.add(
      "retaining a call of two peers, each second", retained.seconds / Double(seconds), floor: 1,
      "s", .atMost, 0.02)
    try table.add(
      "memory of its ring", Double(plan.usedBytes) / 1e6,
      floor: Double(settings.bytesMaximum) / 1e6, "MB", .atMost, 1)
    let watch = Stopwatch()
    for _ in 0..<Self.rounds { plan.writeAll(.signal("bench")) }
    let written = watch.elapsed.processor / Double(Self.rounds)
    guard let take = recorder.takes.last?.capture.take else {
      throw CommandFailure(.difference, "bench: no take was written of the ring")
    }
    try table.add(
      "a take of its last minute, processor time", written, floor: 1, "s", .atMost, 2)
    let second = Stopwatch()
    for _ in 0..<Self.rounds { _ = try TakeFindings(path: take) }
    let searched = written + second.elapsed.processor / Double(Self.rounds)
    let interval = Double(FlightRecorder.searchInterval) / 1e9
    try table.add(
      "looking for findings every 10 s, each second", searched / interval, floor: 1, "s", .atMost,
      0.3)
    try table.end()
  }

  private func run(_ retained: Retained) {
    let call = VirtualCall(seed: 36) { retained.record($0) }
    call.keepsHistory = false
    call.addMedia(
      audio: .tone(hertz: BenchCall.hertz, pauseSeconds: 2),
      videoFrames: .pattern(width: 640, height: 360, framesPerSecond: 30))
    call.negotiate()
    call.run(for: .seconds(Int64(seconds)))
  }

  /// A ring, the time spent on recording steps into it, and the number of packets in these steps.
  private final class Retained {
    private let ring: PeerRing
    private(set) var seconds = 0.0
    private(set) var packets = 0

    init(_ ring: PeerRing) {
      self.ring = ring
      ring.begin(WallClock(unixNanosecondsAtZero: labEpoch))
      for label in ["caller", "callee"] { _ = ring.addPeer(label: label, role: label) }
    }

    func record(_ step: StepRecord) {
      let begin = ContinuousClock.now
      ring.record(step)
      seconds += begin.duration(to: .now).seconds
      if case .datagram = step.peerInput { packets += 1 }
      for case .datagram in step.peerOutputs { packets += 1 }
    }
  }
}
