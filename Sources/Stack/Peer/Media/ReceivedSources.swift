public import Media
import RTP
public import Wire

/// A source that was played (W3C RTCRtpSynchronizationSource or RTCRtpContributingSource).
public struct ReceivedSource: Hashable, Sendable, Codable {
  /// The SSRC or CSRC.
  public var source: UInt32
  /// When it was last played, in milliseconds of Unix time.
  public var timestamp: Double
  /// The RTP timestamp then.
  public var rtpTimestamp: UInt32
  /// The level from 0 to 1; nil for video, and for contributors without a level.
  public var audioLevel: Double?

  /// Creates the description of a source.
  public init(source: UInt32, timestamp: Double, rtpTimestamp: UInt32, audioLevel: Double?) {
    self.source = source
    self.timestamp = timestamp
    self.rtpTimestamp = rtpTimestamp
    self.audioLevel = audioLevel
  }
}

/// The result of getSynchronizationSources and getContributingSources: what was played in the last
/// ten seconds, newest first (W3C section 5.3).
public struct ReceivedSources: Hashable, Sendable, Codable {
  /// The SSRCs of the track.
  public var synchronization: [ReceivedSource]
  /// The sources that a mixer combined into them.
  public var contributing: [ReceivedSource]

  /// Creates the description of a track's sources.
  public init(synchronization: [ReceivedSource] = [], contributing: [ReceivedSource] = []) {
    self.synchronization = synchronization
    self.contributing = contributing
  }
}

/// The recently played sources of one track.
struct SourceHistory {
  private struct Entry {
    var source: UInt32
    var isContributor: Bool
    var at: Instant
    var rtpTime: UInt32
    var level: UInt8?
  }

  /// The newest first.
  private var entries: [Entry] = []

  /// Older entries are not reported.
  private static let memory = Interval.seconds(10)
  /// A limit, because the sender can name ever new contributors.
  private static let maximum = 64

  /// Records a frame that is played; the level is the sender's, or else the decoded one.
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
  /// Returns the recently played sources of a received track.
  func sources(of transceiver: UInt32) throws(PeerError) -> ReceivedSources {
    _ = try info(transceiver)
    let track = tracks.receiving.first { $0.transceiver == transceiver }
    return track?.sources.sources(at: now, wallClock: genesis.wallClock) ?? ReceivedSources()
  }
}

/// A received block of audio or video frame, when it is played.
public struct ReceivedMedia: Sendable {
  /// The transceiver that received it.
  public var transceiver: UInt32
  /// When it is played.
  public var at: Instant
  /// The RTP timestamp of the packet or frame.
  public var rtpTime: UInt32
  /// Whether the audio is concealment, because its packet was lost or late.
  public var isConcealed: Bool
  /// The media.
  public var content: MediaContent
  /// The sender's level in -dBov (RFC 6464), if it states one.
  package var audioLevel: UInt8?

  /// Creates the media of an inbound frame; nil if it was not decoded, or is outbound.
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
