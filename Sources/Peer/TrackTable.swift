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
  /// The section that the capture feeds while it runs.
  var mid: String?
  var ssrc: UInt32 = 0
  /// What the sound encoder that runs may spend, in bits per second.
  var audioBitrate: UInt32 = 0
  /// Where media time is 0: the first capture's start, kept by those that follow on the SSRC.
  var origin: Instant?
  var totals = SendingTotals()

  var isRunning: Bool { mid != nil }
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
}

/// What this peer receives on one transceiver: a playout with its decoder.
struct ReceivingTrack {
  let transceiver: UInt32
  let kind: MediaKind
  let mid: String
  var audio: AudioPlayout?
  var video: VideoPlayout?

  var deadline: Instant? { earliest(audio?.deadline, video?.deadline) }

  init(transceiver: UInt32, kind: MediaKind, mid: String, codecs: any CodecFactory) {
    self.transceiver = transceiver
    self.kind = kind
    self.mid = mid
    switch kind {
    case .audio: audio = AudioPlayout(track: String(transceiver), codecs: codecs)
    case .video: video = VideoPlayout(track: String(transceiver), codecs: codecs)
    }
  }
}

/// The tracks of a peer in the order in which they came about.
struct TrackTable {
  var sending: [SendingTrack] = []
  var senders = SenderTable()
  var receiving: [ReceivingTrack] = []
  /// What all video encoders together may spend, once a layer below said so.
  var videoBitrate: UInt64?
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
