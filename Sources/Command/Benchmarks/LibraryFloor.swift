import Media
import RTP
import RetakeCommand
import Secure
import Tape
import Wire

/// What the C libraries alone need for the frames and packets of a take, in seconds.
///
/// Every frame that the take says was encoded is encoded again from the same video frame or block,
/// every frame that was decoded is decoded, and every SRTP packet is protected or unprotected.
struct LibraryFloor {
  var videoEncoding = 0.0
  var videoDecoding = 0.0
  var audioEncoding = 0.0
  var audioDecoding = 0.0
  var protection = 0.0

  var sum: Double { videoEncoding + videoDecoding + audioEncoding + audioDecoding + protection }

  /// Runs the libraries over the whole take.
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

  /// Encodes the peer's video frames; in each second with the bit rate that the recorded frames
  /// had.
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

  /// Protects what was sent, and unprotects packets as long as those that were received.
  private mutating func runProtection(_ connection: borrowing SQLiteConnection) throws {
    let secured = try connection.prepare(
      "SELECT count(*) FROM event WHERE type = 'secured' AND detail LIKE '%AES128_CM%'")
    let isCounterMode = try secured.step() && secured.values(Int.self) > 0
    let profile: SRTPProfile = isCounterMode ? .aes128CMSHA1_80 : .aeadAES128GCM
    let tagLength = isCounterMode ? 10 : 16
    // A key of 16 bytes and its salt (RFC 3711 section 8.2, RFC 7714 section 12).
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
