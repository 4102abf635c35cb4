import JSEP
import Media
import RTP
import Wire

/// What this peer sends on one transceiver: a source, an encoder and their clock.
struct SendingTrack {
  let transceiver: UInt32
  let kind: MediaKind
  var source: MediaSource?
  var audio: AudioCapture?
  var video: VideoCapture?
  /// In the place of `video` where pictures come encoded.
  var stream: StreamCapture?
  /// The section that the capture feeds while it runs.
  var mid: String?
  /// What the capture encodes, by the encoding name in lower case.
  var codec = ""
  var ssrc: UInt32 = 0
  /// What the sound encoder that runs may spend, in bits per second.
  var audioBitrate: UInt32 = 0
  /// Where media time is 0: the first capture's start, kept by those that follow on the SSRC.
  var origin: Instant?
  var totals = SendingTotals()
  /// How many sources were replaced: each attachment of a source is a media-source of its own.
  var attachment = 0
  /// What earlier captures of the present source counted.
  var audioCounters = AudioCaptureCounters()
  var videoCounters = VideoCaptureCounters()
  /// What the encoder of pictures may spend, in bits per second.
  var bitrate: UInt64 = 0

  /// The sources of the sound that is fed to the encoder, when it is not an own one.
  var contributors: [Contributor] = []

  var isRunning: Bool { mid != nil }
  /// What the present source of pictures gave.
  var pictureCounters: VideoCaptureCounters {
    video?.counters ?? stream?.counters ?? videoCounters
  }
  var deadline: Instant? { isRunning ? earliest(audio?.deadline, video?.deadline) : nil }

  init(transceiver: UInt32, kind: MediaKind, source: MediaSource?) {
    self.transceiver = transceiver
    self.kind = kind
    self.source = source
  }
}

/// What W3C media-source and outbound-rtp count above the packets.
struct SendingTotals {
  var framesEncoded: UInt64 = 0
  var keyFramesEncoded: UInt64 = 0
  var quantiserSum: UInt64 = 0
  var encodedBytes: UInt64 = 0
  var width = 0
  var height = 0
  /// How many bytes the bit rate allowed for the frames that were encoded.
  var targetBytes = 0.0
  var resolutionChanges: UInt64 = 0
  var rate = FrameRate(ticksPerSecond: 1_000_000_000)
  var limitation = QualityLimitation()
  /// How many pictures the late clock had left out when the last one was encoded.
  var framesLate: UInt64 = 0
  private var lastMediaTime: UInt32?

  /// The time that a first frame is taken to last, in units of 1/90000 s.
  private static let usualTicks: UInt32 = 3000

  /// Counts an encoded frame.
  mutating func add(
    _ frame: EncodedFrame, quantiser: UInt8, bitrate: UInt64, late: UInt64, at now: Instant
  ) {
    framesEncoded += 1
    if frame.isKey { keyFramesEncoded += 1 }
    quantiserSum += UInt64(quantiser)
    encodedBytes += UInt64(frame.bytes.count)
    guard frame.kind == .video else { return }
    if width != 0, width != Int(frame.width) || height != Int(frame.height) {
      resolutionChanges += 1
    }
    width = Int(frame.width)
    height = Int(frame.height)
    let ticks = lastMediaTime.map { frame.mediaTime &- $0 } ?? SendingTotals.usualTicks
    lastMediaTime = frame.mediaTime
    targetBytes += Double(bitrate) / 8 * Double(min(ticks, 90_000)) / 90_000
    rate.note(now.nanoseconds)
    limitation.note(
      quantiser: quantiser, of: frame.codec,
      late: Int(clamping: late >= framesLate ? late - framesLate : late),
      at: now)
    framesLate = late
  }
}

/// What this peer receives on one transceiver: a playout with its decoder.
struct ReceivingTrack {
  let transceiver: UInt32
  let kind: MediaKind
  let mid: String
  var audio: AudioPlayout?
  var video: VideoPlayout?
  /// The RTP time of what was played or shown last, and when.
  var lastPlayed: (rtpTime: UInt32, at: Instant)?
  var sources = SourceHistory()

  var deadline: Instant? { earliest(audio?.deadline, video?.deadline) }

  init(
    transceiver: UInt32, kind: MediaKind, mid: String, codecs: any CodecFactory,
    minimumDelay: Interval
  ) {
    self.transceiver = transceiver
    self.kind = kind
    self.mid = mid
    switch kind {
    case .audio:
      audio = AudioPlayout(
        track: String(transceiver), codecs: codecs, minimumDelay: minimumDelay)
    case .video:
      video = VideoPlayout(
        track: String(transceiver), codecs: codecs, minimumDelay: minimumDelay)
    }
  }
}

/// The tracks of a peer in the order in which they came about.
struct TrackTable {
  var sending: [SendingTrack] = []
  var senders = SenderTable()
  var receiving: [ReceivingTrack] = []
  /// What was told of the negotiated tracks, to tell only changes.
  var announced: [TrackRecord] = []

  var deadline: Instant? {
    var first: Instant?
    for track in sending { first = earliest(first, track.deadline) }
    for track in receiving { first = earliest(first, track.deadline) }
    return first
  }

  func sendingIndex(of transceiver: UInt32) -> Int? {
    sending.firstIndex { $0.transceiver == transceiver }
  }

  func receivingIndex(ofMID mid: String) -> Int? { receiving.firstIndex { $0.mid == mid } }
}
