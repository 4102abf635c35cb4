import FoundationEssentials
import Glibc
import Lab
import Media
import Page
import Peer
import Queries
import RTP
import RetakeCommand
import Secure
import Tape
import Wire

/// The time that the C libraries alone need for a take's frames and packets, in seconds.
///
/// Every encoded frame is encoded again from the same input, every decoded frame is decoded, and
/// every SRTP packet is protected or unprotected.
struct LibraryFloor {
  var videoEncoding = 0.0
  var videoDecoding = 0.0
  var audioEncoding = 0.0
  var audioDecoding = 0.0
  var protection = 0.0

  var sum: Double { videoEncoding + videoDecoding + audioEncoding + audioDecoding + protection }

  /// Runs the libraries on all of a take's frames and packets.
  init(path: String) throws {
    let connection = try TakeFile.open(path)
    try runEncoders(connection)
    try runDecoders(connection)
    try runProtection(connection)
  }

  private func measured(_ body: () throws -> Void) rethrows -> Double {
    let begin = ContinuousClock.now
    try body()
    return begin.duration(to: .now).seconds
  }

  // MARK: Encoders

  private mutating func runEncoders(_ connection: borrowing SQLiteConnection) throws {
    let peers = try connection.prepare("SELECT peer FROM peer ORDER BY peer")
    while try peers.step() {
      let peer = peers.values(Int64.self)
      try encodeVideo(connection, peer: peer)
      try encodeAudio(connection, peer: peer)
    }
  }

  /// Encodes the peer's video frames, each second of video at the bit rate of its recorded frames.
  private mutating func encodeVideo(_ connection: borrowing SQLiteConnection, peer: Int64) throws {
    let frames = try connection.prepare(
      """
      SELECT rtp_time, key, 8 * sum(size) OVER (PARTITION BY rtp_time / 90000) FROM frame
      WHERE peer = ? AND kind = 'video' AND direction = 'out' ORDER BY row
      """)
    frames.bind(peer, at: 1)
    let pattern = TestPattern(width: BenchCall.width, height: BenchCall.height)
    var encoder: (any VideoEncoding)?
    while try frames.step() {
      let (time, isKey, bits) = frames.values(Int64.self, Bool.self, Int64.self)
      let bitrate = UInt64(clamping: bits)
      let settings = VideoSettings(
        codec: .vp8, width: BenchCall.width, height: BenchCall.height,
        framesPerSecond: BenchCall.framesPerSecond, bitrate: bitrate)
      let used = try encoder ?? LibraryCodecs().videoEncoder(track: "", settings)
      encoder = used
      let videoFrame = pattern.videoFrame(time * Int64(BenchCall.framesPerSecond) / 90_000)
      videoEncoding += try measured {
        used.setBitrate(bitrate)
        _ = try used.encode(
          videoFrame, mediaTime: UInt32(truncatingIfNeeded: time), forceKey: isKey)
      }
    }
  }

  private mutating func encodeAudio(_ connection: borrowing SQLiteConnection, peer: Int64) throws {
    let frames = try connection.prepare(
      "SELECT rtp_time FROM frame WHERE peer = ? AND kind = 'audio' AND direction = 'out'")
    frames.bind(peer, at: 1)
    let tone = ToneGenerator(hertz: BenchCall.hertz, pauseSeconds: 0)
    let settings = OpusSettings()
    let encoder = try LibraryCodecs().audioEncoder(track: "", settings)
    while try frames.step() {
      let block = tone.block(
        at: frames.values(Int64.self), frameCount: AudioBlock.sampleRate / 50,
        channels: settings.channels)
      audioEncoding += try measured { _ = try encoder.encode(block) }
    }
  }

  // MARK: Decoders

  private mutating func runDecoders(_ connection: borrowing SQLiteConnection) throws {
    let tracks = try connection.prepare(
      """
      SELECT DISTINCT peer, track, kind, coalesce(channels, 1) FROM frame
      WHERE direction = 'in' AND outcome = 'decoded' ORDER BY 1, 2
      """)
    while try tracks.step() {
      let (peer, track, kind, channels) = tracks.values(
        Int64.self, Int64.self, String.self, Int.self)
      let frames = try connection.prepare(
        """
        SELECT bytes FROM frame
        WHERE peer = ? AND track = ? AND direction = 'in' AND outcome = 'decoded' ORDER BY row
        """)
      frames.bind(peer, at: 1)
      frames.bind(track, at: 2)
      let codecs = LibraryCodecs()
      if kind == MediaKind.video.rawValue {
        let decoder = try codecs.videoDecoder(track: "", .vp8)
        while try frames.step() {
          let bytes = frames.values([UInt8].self)
          videoDecoding += try measured { _ = try decoder.decode(bytes) }
        }
      } else {
        let decoder = try codecs.audioDecoder(track: "", channels: channels)
        while try frames.step() {
          let bytes = frames.values([UInt8].self)
          audioDecoding += try measured { _ = try decoder.decode(.payload(bytes)) }
        }
      }
    }
  }

  // MARK: SRTP

  /// Protects each sent packet, and unprotects a packet of each received packet's size.
  private mutating func runProtection(_ connection: borrowing SQLiteConnection) throws {
    let secured = try connection.prepare(
      "SELECT count(*) FROM event WHERE type = 'secured' AND detail LIKE '%AES128_CM%'")
    let isCounterMode = try secured.step() && secured.values(Int.self) > 0
    let profile: SRTPProfile = isCounterMode ? .aes128CMSHA1_80 : .aeadAES128GCM
    let tagLength = isCounterMode ? 10 : 16
    // A key of 16 bytes followed by its salt (RFC 3711 section 8.2, RFC 7714 section 12).
    let key = [UInt8](repeating: 7, count: 16 + (isCounterMode ? 14 : 12))
    let peers = try connection.prepare("SELECT peer FROM peer ORDER BY peer")
    while try peers.step() {
      var context = try SRTPContext(profile: profile, sendKey: key, receiveKey: key)
      let packets = try connection.prepare(
        """
        SELECT direction = 'in', protocol = 'rtcp', bytes FROM packet
        WHERE peer = ? AND protocol IN ('rtp', 'rtcp') ORDER BY row
        """)
      packets.bind(peers.values(Int64.self), at: 1)
      var other = try SRTPContext(profile: profile, sendKey: key, receiveKey: key)
      while try packets.step() {
        let (isInbound, isRTCP, bytes) = packets.values(Bool.self, Bool.self, [UInt8].self)
        var packet = bytes
        packet.removeLast(min(packet.count, tagLength + (isRTCP ? 4 : 0)))
        if isInbound {
          try other.protect(&packet, isRTCP: isRTCP)
          let begin = ContinuousClock.now
          try context.unprotect(&packet, isRTCP: isRTCP)
          protection += begin.duration(to: .now).seconds
        } else {
          let begin = ContinuousClock.now
          try context.protect(&packet, isRTCP: isRTCP)
          protection += begin.duration(to: .now).seconds
        }
      }
    }
  }
}

extension SRTPContext {
  fileprivate mutating func protect(_ packet: inout [UInt8], isRTCP: Bool) throws {
    if isRTCP { try protectRTCP(&packet) } else { try protectRTP(&packet) }
  }

  fileprivate mutating func unprotect(_ packet: inout [UInt8], isRTCP: Bool) throws {
    if isRTCP { try unprotectRTCP(&packet) } else { try unprotectRTP(&packet) }
  }
}

// MARK: - FrontDoorBench

/// Measures the sizes of the executable and a page, and the start-up time.
struct FrontDoorBench {
  /// The take whose page is measured.
  let path: String

  private static let starts = 41
  /// Goals in megabytes and seconds.
  private static let executableGoal = 40.0
  private static let startGoal = 0.020
  private static let pageGoal = 1.0

  func measure(_ table: inout BenchTable) throws {
    try table.add(
      "executable as installed", try executableMegabytes(), floor: Self.executableGoal, "MB",
      .atMost, 1)
    try table.add(
      "start, median of retake --help", try startSeconds(), floor: Self.startGoal, "s", .atMost, 1)
    let page = try reading { () throws(TapeError) in try TakePage(path: path) }
    try table.add(
      "page of the call", Double(page.html.utf8.count) / 1e6, floor: Self.pageGoal, "MB", .atMost, 1
    )
  }

  private static let executable = BenchCommand.retake

  /// Returns the size of the executable's loadable parts.
  ///
  /// `make install` and `make deb` strip the rest: symbols and debug information.
  private func executableMegabytes() throws -> Double {
    guard case .success(let descriptor) = FileBytes.open(Self.executable) else {
      throw CommandFailure(.noSuchFile, "\(Self.executable): it cannot be read")
    }
    let file = FileDescriptor(descriptor)
    let header = file.read(atMost: 64, from: 0)
    guard header.count == 64, header.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2, 1]) else {
      throw CommandFailure(.inputOutput, "\(Self.executable): it is not a 64-bit ELF file")
    }
    func number(in data: [UInt8], at offset: Int, bytes: Int) -> UInt64 {
      data.dropFirst(offset).prefix(bytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    // The program headers' offset, size and number; within each, the type (1 is loadable), offset
    // and size.
    let (first, size) = (number(in: header, at: 32, bytes: 8), number(in: header, at: 54, bytes: 2))
    var end: UInt64 = 0
    for place in 0..<number(in: header, at: 56, bytes: 2) {
      let entry = file.read(atMost: Int(size), from: first + place * size)
      guard entry.count >= 56, number(in: entry, at: 0, bytes: 4) == 1 else { continue }
      end = max(end, number(in: entry, at: 8, bytes: 8) + number(in: entry, at: 32, bytes: 8))
    }
    return Double(end) / 1e6
  }

  /// Returns the median start-up time, because a start is sometimes slow for unrelated reasons.
  private func startSeconds() throws -> Double {
    var seconds: [Double] = []
    for _ in 0..<Self.starts {
      let watch = Stopwatch()
      try start()
      seconds.append(watch.elapsed.wall)
    }
    return seconds.sorted()[Self.starts / 2]
  }

  /// Runs `retake --help`, discarding its output.
  private func start() throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    let words = ["retake", "--help"].map { (word: String) in strdup(word) }
    defer { for word in words { free(word) } }
    let path = Self.executable
    var child: pid_t = 0
    var status: Int32 = 0
    guard posix_spawn(&child, path, &actions, nil, words + [nil], nil) == 0,
      waitpid(child, &status, 0) == child, status == 0
    else { throw CommandFailure(.inputOutput, "\(path): it does not start") }
  }
}

// MARK: - StatsBench

/// Measures the cost of stats: sampling them, and querying them in a ten-minute take.
struct StatsBench {
  /// The take's path, which must not exist yet.
  let path: String

  /// The queried call's length in virtual seconds.
  static let seconds: Int64 = 600
  /// The number of rounds (the fastest one is reported), and the number of samples in each round.
  private static let rounds = 5
  private static let samples = 200

  /// Records the call and adds the rows; the video is small, since no query reads it.
  func measure(_ table: inout BenchTable) throws {
    let recorded = try RecordedVirtualCall(
      path: path, seed: 2, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"])
    let call = recorded.call
    call.addMedia(
      audio: .tone(hertz: BenchCall.hertz, pauseSeconds: 2),
      videoFrames: .pattern(width: 64, height: 36, framesPerSecond: 5))
    call.negotiate()
    recorded.run(for: .seconds(StatsBench.seconds))
    let sample = sampleSeconds(call)
    _ = try recorded.finish()
    // With one sample per second, a sample's duration in seconds is the share of a processor that
    // sampling uses.
    try table.add(
      "a sample of the stats each second", sample, floor: 1, "s", .atMost, 0.001)
    let series = try fastest { () throws(TapeError) in
      var bytes = 0
      try StatSeries.write(path: path, types: [], format: .lines) { bytes += $0.utf8.count }
    }
    try table.add("all stats of ten minutes, of 200 ms", series, floor: 0.2, "s", .atMost, 1)
    for (what, sql) in [
      ("levels of ten minutes, of 50 ms", StatsBench.levels),
      ("speakers of ten minutes, of 50 ms", StatsBench.speakers),
    ] {
      let length = try fastest { () throws(TapeError) in
        try SQLConsole.run(path: path, sql: sql, format: .csv) { _ in }
      }
      try table.add(what, length, floor: 0.05, "s", .atMost, 1)
    }
  }

  private static let levels =
    "SELECT track, direction, at_ns / 60000000000 AS minute, avg(dbov), max(percent) "
    + "FROM audio_level WHERE peer = 1 GROUP BY 1, 2, 3"
  private static let speakers = "SELECT participant, from_ns, seconds FROM speaker WHERE peer = 1"

  /// Returns the duration of one getStats with audio and video in both directions.
  private func sampleSeconds(_ call: VirtualCall) -> Double {
    var best = Double.infinity
    for _ in 0..<StatsBench.rounds {
      let watch = Stopwatch()
      for _ in 0..<StatsBench.samples { call.call(0, .getStats()) }
      best = min(best, watch.elapsed.wall / Double(StatsBench.samples))
    }
    return best
  }

  private func fastest(_ body: () throws(TapeError) -> Void) throws(TapeError) -> Double {
    var best = Double.infinity
    for _ in 0..<StatsBench.rounds {
      let watch = Stopwatch()
      try body()
      best = min(best, watch.elapsed.wall)
    }
    return best
  }
}
