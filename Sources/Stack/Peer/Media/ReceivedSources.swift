import Media
import RTP
import Wire

/// W3C RTCRtpSynchronizationSource or RTCRtpContributingSource: a source that was played.
public struct ReceivedSource: Hashable, Sendable, Codable {
  /// The SSRC or CSRC.
  public var source: UInt32
  /// When the last of it was played, in milliseconds of Unix time.
  public var timestamp: Double
  /// The RTP timestamp of that.
  public var rtpTimestamp: UInt32
  /// Its level from 0 to 1; nil for video frames, and for contributors of which the mixer told
  /// none.
  public var audioLevel: Double?

  /// Describes a source.
  public init(source: UInt32, timestamp: Double, rtpTimestamp: UInt32, audioLevel: Double?) {
    self.source = source
    self.timestamp = timestamp
    self.rtpTimestamp = rtpTimestamp
    self.audioLevel = audioLevel
  }
}

/// What getSynchronizationSources and getContributingSources give: what was played in the last ten
/// seconds, the newest first (W3C section 5.3).
public struct ReceivedSources: Hashable, Sendable, Codable {
  /// The streams of the track.
  public var synchronization: [ReceivedSource]
  /// What a mixer put into them.
  public var contributing: [ReceivedSource]

  /// Describes sources.
  public init(synchronization: [ReceivedSource] = [], contributing: [ReceivedSource] = []) {
    self.synchronization = synchronization
    self.contributing = contributing
  }
}

/// The sources of one track that were played lately.
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

  /// What was played before that is no longer told.
  private static let memory = Interval.seconds(10)
  /// The sender says who contributes, and may name ever new ones.
  private static let maximum = 64

  /// Records a frame that is played; the level is that of the sender, else what was decoded.
  mutating func play(_ frame: borrowing FrameRecord, level: UInt8?, at now: Instant) {
    for contributor in frame.contributors {
      note(contributor.source, isContributor: true, contributor.level, frame.rtpTime, at: now)
    }
    note(frame.ssrc, isContributor: false, level, frame.rtpTime, at: now)
    if entries.count > SourceHistory.maximum {
      entries.removeLast(entries.count - SourceHistory.maximum)
    }
  }

  private mutating func note(
    _ source: UInt32, isContributor: Bool, _ level: UInt8?, _ rtpTime: UInt32, at now: Instant
  ) {
    let place = entries.firstIndex { $0.source == source && $0.isContributor == isContributor }
    if let place { entries.remove(at: place) }
    entries.insert(
      Entry(source: source, isContributor: isContributor, at: now, rtpTime: rtpTime, level: level),
      at: 0)
  }

  /// What is told at an instant; `wallClock` gives the Unix time of instants.
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
  /// The sources of a received track that were played lately.
  func sources(of transceiver: UInt32) throws(PeerError) -> ReceivedSources {
    _ = try info(transceiver)
    let track = tracks.receiving.first { $0.transceiver == transceiver }
    return track?.sources.sources(at: now, wallClock: genesis.wallClock) ?? ReceivedSources()
  }
}
