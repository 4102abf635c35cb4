public import Media
import RTP
public import Wire

/// A source that was played (W3C RTCRtpSynchronizationSource or RTCRtpContributingSource).
public struct ReceivedSource: Hashable, Sendable, Codable {
  /// The source's SSRC or CSRC.
  public var source: UInt32
  /// The instant at which the source was last played, in milliseconds of Unix time.
  public var timestamp: Double
  /// The RTP timestamp of the media that was played at that instant.
  public var rtpTimestamp: UInt32
  /// The audio level from 0 to 1; nil for video and for contributors without a level.
  public var audioLevel: Double?

  /// Creates an entry; `timestamp` is in milliseconds of Unix time.
  public init(source: UInt32, timestamp: Double, rtpTimestamp: UInt32, audioLevel: Double?) {
    self.source = source
    self.timestamp = timestamp
    self.rtpTimestamp = rtpTimestamp
    self.audioLevel = audioLevel
  }
}

/// The result of getSynchronizationSources and getContributingSources: the sources played in the
/// last ten seconds, newest first (W3C section 5.3).
public struct ReceivedSources: Hashable, Sendable, Codable {
  /// The sources that sent the track's packets, by SSRC.
  public var synchronization: [ReceivedSource]
  /// The sources that a mixer combined into the track, by CSRC.
  public var contributing: [ReceivedSource]

  /// Creates a result; by default, no source was played.
  public init(synchronization: [ReceivedSource] = [], contributing: [ReceivedSource] = []) {
    self.synchronization = synchronization
    self.contributing = contributing
  }
}

/// A track's recently played sources.
struct SourceHistory {
  private struct Entry {
    var source: UInt32
    var isContributor: Bool
    var at: Instant
    var rtpTime: UInt32
    var level: UInt8?
  }

  /// The entries, newest first.
  private var entries: [Entry] = []

  /// The age beyond which entries are not reported.
  private static let memory = Interval.seconds(10)
  /// The maximum number of entries, because a sender can name new contributors endlessly.
  private static let maximum = 64

  /// Records a frame when it is played; `level` is the level that the sender stated, or else the
  /// decoded audio's level.
  mutating func play(_ frame: borrowing FrameRecord, level: UInt8?, at now: Instant) {
    for contributor in frame.contributors {
      record(contributor.source, isContributor: true, contributor.level, frame.rtpTime, at: now)
    }
    record(frame.ssrc, isContributor: false, level, frame.rtpTime, at: now)
    if entries.count > SourceHistory.maximum {
      entries.removeLast(entries.count - SourceHistory.maximum)
    }
  }

  private mutating func record(
    _ source: UInt32, isContributor: Bool, _ level: UInt8?, _ rtpTime: UInt32, at now: Instant
  ) {
    let place = entries.firstIndex { $0.source == source && $0.isContributor == isContributor }
    if let place { entries.remove(at: place) }
    entries.insert(
      Entry(source: source, isContributor: isContributor, at: now, rtpTime: rtpTime, level: level),
      at: 0)
  }

  /// Returns the sources at an instant; `wallClock` converts instants to Unix time.
  func sources(at now: Instant, wallClock: WallClock) -> ReceivedSources {
    var sources = ReceivedSources()
    for entry in entries where now - entry.at <= SourceHistory.memory {
      let source = ReceivedSource(
        source: entry.source, timestamp: wallClock.milliseconds(at: entry.at),
        rtpTimestamp: entry.rtpTime,
        audioLevel: entry.level.map { AudioLevel(headerExtension: $0).linear })
      if entry.isContributor {
        sources.contributing.append(source)
      } else {
        sources.synchronization.append(source)
      }
    }
    return sources
  }
}

extension PeerStack {
  /// Returns the sources that a received track played in the last ten seconds.
  func sources(of transceiver: UInt32) throws(PeerError) -> ReceivedSources {
    _ = try info(transceiver)
    let track = tracks.receiving.first { $0.transceiver == transceiver }
    return track?.sources.sources(at: now, wallClock: genesis.wallClock) ?? ReceivedSources()
  }
}

/// A received audio block or video frame at the time it is played.
public struct ReceivedMedia: Sendable {
  /// The number of the transceiver that received the media.
  public var transceiver: UInt32
  /// The instant on the take's clock at which the media is played.
  public var at: Instant
  /// The packet's or frame's RTP timestamp.
  public var rtpTime: UInt32
  /// Whether the audio was synthesized to conceal a lost or late packet, or to lengthen the delay.
  public var isConcealed: Bool
  /// The audio block or the video frame; undecoded if no decoder handles its codec.
  public var content: MediaContent
  /// The sender's audio level in -dBov (RFC 6464), if it stated one.
  package var audioLevel: UInt8?

  /// Creates the media for an inbound frame; returns nil for a frame that is outbound or withheld,
  /// or has neither decoded media nor a pass-through codec.
  package init?(_ frame: FrameRecord, at: Instant) {
    guard frame.isInbound, !frame.isWithheld else { return nil }
    switch frame.decoded {
    case .none where frame.codec.isPassedThrough:
      content = .encodedVideo(
        EncodedVideoChunk(codec: frame.codec.rawValue, isKey: frame.isKey, bytes: frame.bytes))
    case .none, .digest: return nil
    case .audio(let block): content = .audio(block)
    case .videoFrame(let videoFrame): content = .videoFrame(videoFrame)
    }
    transceiver = frame.transceiver
    self.at = at
    rtpTime = frame.rtpTime
    isConcealed = frame.outcome == "concealed"
    audioLevel = frame.audioLevel
  }
}
