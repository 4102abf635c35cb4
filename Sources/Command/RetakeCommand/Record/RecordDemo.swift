import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Lab
import Live
import Media
import Peer
import RTP
import SCTP
import SDP
import Tape
import Wire

/// Records a call between two complete stacks into one take.
struct RecordDemo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Let two full stacks call each other, and record both into one take.",
    discussion: """
      Without further options the call runs live over loopback UDP. With --loss, --delay, --jitter \
      or --seed it runs in virtual time over a seeded network: much faster than real time, and the \
      same seed gives the same take.

      Examples:
        retake record demo --seconds 10 --out demo.take
        retake record demo --loss 5 --delay 40 --seed 7 --out lossy.take
        retake record demo --loss 30 --seconds 40 --ring 10s --on finding:high
      """)

  @OptionGroup var options: RecordOptions

  @Option(
    help: "Lose this percentage of the datagrams, each way (virtual network).",
    transform: Taking.number(0...100, unit: "%"))
  var loss: Double?

  @Option(
    help: "Delay every datagram by this many milliseconds (virtual network).",
    transform: Taking.milliseconds(0...10_000))
  var delay: Double?

  @Option(
    help: "Add a random delay of up to this many milliseconds (virtual network).",
    transform: Taking.milliseconds(0...10_000))
  var jitter: Double?

  @Option(
    help: "The seed of the virtual network and its peers. Default on that network: 1.",
    transform: Taking.whole(0...UInt64.max))
  var seed: UInt64?

  @Option(
    help: "The size of the test pattern. Default: \(Self.usualSize).",
    transform: Taking.value(VideoSize.wanted))
  var size = Self.usualSize

  @Option(
    name: [.customLong("frame-rate"), .customLong("rate")],
    help: "The frame rate of the test pattern. Default: \(Self.usualRate).",
    transform: Taking.whole(1...120))
  var rate = Self.usualRate

  private static let usualSize = VideoSize(width: 640, height: 360)
  private static let usualRate = 30

  func validate() throws {
    if isVirtual, let seconds = options.session.seconds, seconds > Self.virtualLimit {
      throw ValidationError(
        "--seconds is from 0.001 to \(Int(Self.virtualLimit)) on the virtual network, which "
          + "--loss, --delay, --jitter and --seed select.")
    }
    if isVirtual, let option = options.session.networkOption {
      throw ValidationError(
        "\(option) has no effect on the virtual network, which --loss, --delay, --jitter and "
          + "--seed select: leave one out.")
    }
    if let codec = options.videoCodec?.name, let reason = LibraryCodecs.missingEncoder(codec) {
      let encoded = Codec.all.map(\.name).filter {
        $0.codec?.kind == .video && LibraryCodecs.missingEncoder($0) == nil
      }
      throw ValidationError(
        "--video-codec can be \(encoded.map(\.rawValue).joined(separator: " or ")) here: "
          + "\(reason).")
    }
  }

  /// The maximum length of a virtual call in seconds, since it cannot be interrupted.
  private static let virtualLimit = 86_400.0

  private static let labels = ["caller", "callee"]
  private var seconds: Double { options.session.seconds ?? 6 }
  private var isVirtual: Bool { loss != nil || delay != nil || jitter != nil || seed != nil }

  private var tracks: [(kind: MediaKind, source: MediaSource)] {
    [
      (.audio, .tone(hertz: 440, pauseSeconds: 0)),
      (.video, .pattern(width: size.width, height: size.height, framesPerSecond: rate)),
    ]
  }

  func run() async throws {
    let path = try options.newTakePath(prefix: "demo")
    if isVirtual {
      try await recordVirtual(path)
    } else {
      try await recordLive(path)
    }
  }

  // MARK: Live

  private func recordLive(_ path: String) async throws {
    var sessionOptions = options.sessionOptions(take: path, ring: options.ringPlan())
    if options.session.bind.isEmpty {
      sessionOptions.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    }
    let stop = StopSignal()
    let session = try openSession(sessionOptions)
    let caller = session.makePeer(
      label: "caller", role: "caller", configuration: options.peerConfiguration)
    let callee = session.makePeer(
      label: "callee", role: "callee", configuration: options.peerConfiguration)
    var failure: CommandFailure?
    do {
      let chat = try await caller.createDataChannel("chat")
      Task { await callee.echoDataChannels() }
      let connected: Void? = try await stop.interrupting { try await connect(caller, callee) }
      if connected != nil {
        let talk = Task { try await DemoTalk.run(on: chat) }
        defer { talk.cancel() }
        let progress = Progress("recording", seconds: seconds)
        await stop.wait(seconds: seconds) {
          await progress.run { "\(caller.counters.videoFramesReceived) frames received" }
        }
        progress.clear()
      }
    } catch let error as PeerError {
      failure = CommandFailure(.inputOutput, "\(path): the call failed: \(error.message)")
    }
    let counters = (caller.counters, callee.counters)
    let summary = try await finish(session, path)
    if let failure { throw failure }
    var report = RecordingReport()
    report.add(
      summary, [caller, callee].map { RecordingReport.Peer($0) },
      media: "caller received \(counters.0.videoFramesReceived) video and "
        + "\(counters.0.audioReceived) audio frames, callee "
        + "\(counters.1.videoFramesReceived) and \(counters.1.audioReceived)")
    try report.show(json: options.json)
  }

  private func connect(_ caller: PeerConnection, _ callee: PeerConnection) async throws {
    for peer in [caller, callee] {
      for track in tracks {
        try await peer.addTrack(track.kind, source: track.source, streamIDs: ["demo"])
      }
      try await peer.prefer(options.videoCodec)
    }
    let offer = try await description(of: caller)
    carry(offer, from: caller, to: callee)
    try await callee.setRemoteDescription(offer)
    let answer = try await description(of: callee)
    carry(answer, from: callee, to: caller)
    try await caller.setRemoteDescription(answer)
    try await caller.waitUntilConnected()
    try await callee.waitUntilConnected()
  }

  private func description(of peer: PeerConnection) async throws -> SessionDescription {
    try await peer.setLocalDescription()
    try await peer.waitForGatheringComplete()
    guard let description = try await peer.localDescription else {
      throw PeerError(name: "OperationError", message: "no description was created")
    }
    return description
  }

  private func carry(
    _ description: SessionDescription, from sender: PeerConnection, to receiver: PeerConnection
  ) {
    for (peer, isInbound) in [(sender, false), (receiver, true)] {
      peer.recordSignaling(
        SignalingMessage(
          isInbound: isInbound, transport: "memory", type: description.type.rawValue,
          message: description.sdp))
    }
  }

  // MARK: Virtual

  private func recordVirtual(_ path: String) async throws {
    if let plan = options.ringPlan(isVirtual: true) {
      let ring = PeerRing(plan.recorder(take: path))
      ring.begin(WallClock(unixNanosecondsAtZero: labEpoch))
      for label in Self.labels { _ = ring.addPeer(label: label, role: label) }
      _ = try hold(recordingInto: path, ring)
      var report = RecordingReport()
      report.add(await ring.finish(path), [], media: "")
      return try report.show(json: options.json)
    }
    var report = try WritingWhole.writeTake(path, options.overwrite.present) {
      try hold(recordingInto: $0)
    }
    report.rename(path)
    try report.show(json: options.json)
  }

  /// Runs the call in virtual time.
  ///
  /// - Parameter ring: receives the steps instead of a take.
  private func hold(recordingInto path: String, _ ring: PeerRing? = nil) throws
    -> RecordingReport
  {
    var link = LinkSettings()
    link.delay = .microseconds(Int64((delay ?? 10) * 1000))
    link.jitter = .microseconds(Int64((jitter ?? 0) * 1000))
    link.lossPerMille = UInt64((loss ?? 0) * 10)
    var configuration = PeerConfiguration()
    if options.videoCodec?.name.isPassedThrough == true {
      configuration.encoders = LibraryCodecs.furtherEncoders
      configuration.decoders = LibraryCodecs.furtherDecoders
    }
    let call = try finished { () throws(TapeError) in
      if let ring {
        return RecordedVirtualCall(
          seed: seed ?? 1, links: [link, link], configurations: [configuration, configuration]
        ) { ring.record($0) }
      }
      return try RecordedVirtualCall(
        path: path, seed: seed ?? 1, links: [link, link], labels: Self.labels,
        label: options.session.label, tags: options.session.tagging.tags,
        keepsMedia: !options.session.omitsMedia,
        configurations: [configuration, configuration])
    }
    // The take or the ring records the steps, so the call need not retain them.
    call.call.keepsHistory = false
    for peer in 0..<2 {
      for track in tracks {
        call.call.call(
          peer, .addTrack(kind: track.kind, streamIDs: ["demo"], source: track.source))
      }
      if let codecs = options.videoCodec?.codecs {
        call.call.call(peer, .setCodecPreferences(transceiver: 2, codecs))
      }
    }
    call.call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    if let error = call.call.negotiate() {
      throw CommandFailure(.inputOutput, "\(path): the call failed: \(error.message)")
    }
    DemoTalk.run(call, for: .milliseconds(Int64(seconds * 1000)))
    let received = call.call.videoFramesReceived
    let summary = try finished { () throws(TapeError) in try call.finish() }
    var report = RecordingReport()
    let peers = zip(Self.labels, received).map {
      RecordingReport.Peer(label: $0, videoReceived: $1)
    }
    report.add(
      RecordingReport.Take(
        path: path, steps: summary.steps, packets: summary.packets, bytes: summary.bytes,
        peers: peers),
      media: "\(call.call.network.lost) datagrams lost; video frames received: caller "
        + "\(received[0]), callee \(received[1])")
    return report
  }
}

/// A frame size, such as `640x360`.
struct VideoSize: ExpressibleByArgument, CustomStringConvertible {
  var width: Int
  var height: Int

  init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// The expected form, for error messages.
  static let wanted = "a size is WIDTHxHEIGHT with both from 16 to 4096, as in 640x360"

  init?(argument: String) {
    let parts = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    let sides = parts.compactMap { $0 }
    guard parts.count == 2, sides.count == 2, sides.allSatisfy({ (16...4096).contains($0) }) else {
      return nil
    }
    self.init(width: sides[0], height: sides[1])
  }

  var description: String { "\(width)x\(height)" }
}

/// The demonstration's data channel traffic: a line every second, and a block of bytes every other
/// second.
enum DemoTalk {
  private static let block = [UInt8](0..<250) + [UInt8](repeating: 0xaa, count: 19_750)

  private static func line(_ number: Int) -> String { "message \(number)" }

  /// Sends until the channel is closed or the task is cancelled; the remote peer echoes.
  static func run(on channel: DataChannel) async throws {
    try await channel.waitUntilOpen()
    for number in 1... {
      try await channel.send(line(number))
      if number % 2 == 0 { try await channel.send(block) }
      try await Task.sleep(for: .seconds(1))
    }
  }

  /// Advances virtual time while both peers send.
  static func run(_ recording: RecordedVirtualCall, for interval: Interval) {
    let call = recording.call
    let end = call.now + interval
    var number = 0
    while call.now < end {
      recording.run(for: min(.seconds(1), end - call.now))
      number += 1
      for peer in 0..<2 where call.state("sctp", of: peer) == "connected" {
        let text = Array(line(number).utf8)
        call.send(peer, DataMessage(channel: 0, isBinary: false, bytes: text))
        if number % 2 == 0 {
          call.send(peer, DataMessage(channel: 0, isBinary: true, bytes: block))
        }
      }
    }
  }
}
