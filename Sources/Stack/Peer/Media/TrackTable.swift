import Flow
import JSEP
import Media
import RTP
import Wire

/// A peer's tracks in order of appearance.
struct TrackTable {
  var sending: [SendingTrack] = []
  var receiving: [ReceivingTrack] = []
  var senders = SenderTable()
  var receivers = ReceiverTable()
  var layers = LayerChoice()
  /// The outputs of the sending track being stepped; empty between inputs, and kept to reuse its
  /// memory.
  var sent = Outbox<SendingTrack.Output>()
  var received = Outbox<ReceivingTrack.Output>()
  private let codecs: any CodecFactory
  private let configuration: PeerConfiguration
  /// The negotiated tracks as last reported, so that only changes are reported.
  private var announced: [TrackRecord] = []

  init(_ configuration: PeerConfiguration, codecs: any CodecFactory) {
    self.configuration = configuration
    self.codecs = codecs
  }

  /// The tracks' next deadline; inlined, because a call would copy the complete table.
  @inline(__always)
  var deadline: Instant? {
    var first: Instant?
    // Use indices, because a loop over the tracks themselves would copy each one.
    for index in sending.indices { first = earliest(first, sending[index].deadline) }
    for index in receiving.indices { first = earliest(first, receiving[index].deadline) }
    return first
  }

  /// Returns the index of a sender's track, or of the first of several layers; nil if the sender
  /// has no track.
  func sendingIndex(of transceiver: UInt32) -> Int? {
    sending.firstIndex { $0.transceiver == transceiver }
  }

  /// Returns the indices of a sender's tracks: a single one, or one for each simulcast layer.
  func sendingIndices(of transceiver: UInt32) -> [Int] {
    sending.indices.filter { sending[$0].transceiver == transceiver }
  }

  /// Returns the indices of the tracks that feed a section, or one of its layers.
  func sendingIndices(ofMID mid: String, _ kind: MediaKind, rid: String? = nil) -> [Int] {
    sending.indices.filter {
      sending[$0].stream.mid == mid && sending[$0].kind == kind
        && (rid == nil || sending[$0].rid == rid)
    }
  }

  /// One track for each sender: the first running layer if there are several.
  var firstOfEachSender: [SendingTrack] {
    sending.indices.filter { index in
      let all = sendingIndices(of: sending[index].transceiver)
      return index == all.first { sending[$0].isRunning } ?? all[0]
    }.map { sending[$0] }
  }

  /// Returns the index of the track that plays a section's media, creating the track for the first
  /// frame.
  mutating func receivingIndex(of section: NegotiatedSection) -> Int {
    if let known = receiving.firstIndex(where: { $0.mid == section.mid }) { return known }
    let minimum = configuration.jitterBufferMinimum ?? 0
    receiving.append(
      ReceivingTrack(
        section, codecs: codecs, minimumDelay: .milliseconds(Int64(minimum)),
        furtherDecoders: (configuration.decoders ?? []).map { CodecName(rawValue: $0) },
        rampsVolume: configuration.rampsVolume ?? false))
    applySettings(of: section.transceiverID)
    return receiving.count - 1
  }

  /// Applies a received track's settings to its playout.
  mutating func applySettings(of transceiver: UInt32) {
    let state = receivers.state(of: transceiver)
    for index in receiving.indices where receiving[index].transceiver == transceiver {
      receiving[index].set(state)
    }
  }

  /// Adds a track for the first source of a sender or layer.
  mutating func add(
    _ source: MediaSource, of transceiver: UInt32, _ kind: MediaKind, rid: String?
  ) {
    sending.append(
      SendingTrack(
        transceiver: transceiver, rid: rid, kind: kind, source: source, codecs: codecs,
        audioBitrateMaximum: configuration.audioBitrate,
        limitationFollowsTarget: configuration.limitationFollowsTarget ?? false))
  }

  mutating func removeSending(of transceiver: UInt32) {
    sending.removeAll { $0.transceiver == transceiver }
  }

  /// Removes a sender's layers that are no longer sent.
  mutating func restrictLayers(_ rids: [String], of transceiver: UInt32) {
    sending.removeAll { track in
      track.transceiver == transceiver && track.rid.map { !rids.contains($0) } ?? false
    }
  }

  // MARK: Negotiated tracks

  /// Returns the records of all track directions that are new or have changed.
  mutating func announce(
    _ sections: [NegotiatedSection], of transceivers: [Transceiver]
  ) -> [TrackRecord] {
    let records = sections.flatMap { section in
      let transceiver = transceivers.first { $0.id == section.transceiverID }
      let ssrcs = transceiver?.sources(in: section).map { Optional($0.ssrc) } ?? [nil]
      let sent = ssrcs.compactMap { TrackRecord(section, isInbound: false, sentSSRC: $0) }
      return sent + [TrackRecord(section, isInbound: true, sentSSRC: nil)].compactMap(\.self)
    }
    defer { announced = records }
    return records.filter { !announced.contains($0) }
  }

  /// Ends all playouts except those of the given sections; returns the transceivers whose audio
  /// playout ended.
  mutating func endPlayouts(besides sections: [NegotiatedSection]) -> [UInt32] {
    func isAgreed(_ track: ReceivingTrack) -> Bool {
      sections.contains { $0.mid == track.mid && $0.direction.receives }
    }
    layers.retain(sections.filter(\.direction.receives).map(\.mid))
    defer { receiving.removeAll { !isAgreed($0) } }
    return receiving.filter { $0.kind == .audio && !isAgreed($0) }.map(\.transceiver)
  }
}

extension TrackRecord {
  /// Creates the record of one direction of an m-section; returns nil if nothing is sent in that
  /// direction.
  fileprivate init?(_ section: NegotiatedSection, isInbound: Bool, sentSSRC: UInt32?) {
    let isActive = isInbound ? section.direction.receives : section.direction.sends
    guard isActive, let codec = isInbound ? section.receivedCodec : section.sentCodec
    else { return nil }
    let sequenceID = section.extensions.first {
      $0.uri == HeaderExtensionURI.transportSequence.rawValue
    }
    self.init(
      transceiver: section.transceiverID, mid: section.mid, kind: section.kind,
      isInbound: isInbound, ssrc: isInbound ? section.remoteSSRCs.first : sentSSRC,
      codec: codec.name, payloadType: codec.payloadType, clockRate: codec.clockRate,
      transportSequenceID: sequenceID?.id ?? 0)
  }
}

// MARK: - Alignment

// Synchronises the playout of audio and video that were captured together.
extension TrackTable {
  /// Synchronises the tracks of each remote stream (W3C: the tracks of a MediaStream are
  /// synchronized), using the sender's clock from its reports (RFC 3550 section 6.4.1).
  /// - Parameter streams: returns the identifiers of the streams that a transceiver receives.
  mutating func alignPlayouts(
    _ inbound: [InboundStreamCounters], streams: (_ transceiver: UInt32) -> [String]
  ) {
    receiving.alignPlayouts(inbound, streams: streams)
  }
}

extension [ReceivingTrack] {
  /// The maximum time in nanoseconds that one track waits for another; larger offsets cannot be
  /// right.
  private static var mostAlignment: UInt64 { 1_000_000_000 }

  /// Delays the faster track of each stream's audio and video, so that both play in sync.
  mutating func alignPlayouts(
    _ inbound: [InboundStreamCounters], streams: (_ track: UInt32) -> [String]
  ) {
    for index in indices { self[index].align(by: 0) }
    for video in indices where self[video].kind == .video {
      let names = streams(self[video].transceiver)
      guard
        let audio = firstIndex(where: { track in
          track.kind == .audio && streams(track.transceiver).contains { names.contains($0) }
        }), let videoLag = self[video].lag(inbound), let audioLag = self[audio].lag(inbound)
      else { continue }
      let (distance, overflow) = videoLag.subtractingReportingOverflow(audioLag)
      guard !overflow, distance.magnitude <= Self.mostAlignment else { continue }
      self[distance > 0 ? audio : video].align(by: abs(distance))
    }
  }
}

extension ReceivingTrack {
  /// Returns the time from capture, on the sender's clock, to independent playout, on the local
  /// clock, in nanoseconds; nil before the first sender report.
  ///
  /// The two clocks are unrelated, so only the difference between two tracks' values is meaningful.
  fileprivate func lag(_ inbound: [InboundStreamCounters]) -> Int64? {
    guard let remote = inbound.last(where: { $0.mid == mid && $0.remote != nil })?.remote,
      let playout = independentPlayout(ofRTPTime: remote.remoteRTPTime)
    else { return nil }
    return playout.nanoseconds &- remote.remoteUnixNanoseconds
  }

  private func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    audio?.independentPlayout(ofRTPTime: time) ?? video?.independentPlayout(ofRTPTime: time)
  }
}

// MARK: - TrackChange

/// An application's settings for a track, and whether the track currently carries media.
public struct TrackState: Hashable, Sendable, Codable {
  /// Whether the track is enabled; a disabled track is silent or black (W3C enabled).
  public var isEnabled: Bool
  /// The volume of received audio, from 0 to 10; 1 leaves it unchanged.
  public var volume: Double
  /// Whether no media currently arrives from the remote peer (W3C muted); false for local tracks.
  public var isMuted: Bool

  /// Creates a track's state; by default it is enabled, not muted, and at unchanged volume.
  public init(isEnabled: Bool = true, volume: Double = 1, isMuted: Bool = false) {
    self.isEnabled = isEnabled
    self.volume = volume
    self.isMuted = isMuted
  }
}

/// A change of a track's state, with the reason if there is one.
public struct TrackChange: Hashable, Sendable {
  /// The kind of change; the last three are events of W3C's MediaStreamTrack.
  public enum Kind: String, Hashable, Sendable {
    /// The application enabled the track.
    case enabled
    /// The application disabled the track, which is now silent or black.
    case disabled
    /// Media stopped arriving.
    case mute
    /// Media arrives again.
    case unmute
    /// The track has ended and cannot resume.
    case ended
  }

  /// Why a track was muted, unmuted or ended.
  public enum Reason: String, Hashable, Sendable {
    /// The first frame arrived, or the first frame after a pause.
    case media
    /// The remote peer's description says that the track is no longer sent.
    case removed
    /// The remote peer sent BYE for the track's stream.
    case goodbye
    /// The transceiver was stopped, or the application stopped the track.
    case stopped
    /// The application closed the connection.
    case closed
  }

  /// The transceiver that sends or receives the track.
  public var transceiver: UInt32
  /// Whether the track is received rather than sent.
  public var isInbound: Bool
  /// What happened to the track.
  public var kind: Kind
  /// The reason; nil if the application enabled or disabled the track.
  public var reason: Reason?

  /// Creates a change; omit the reason if the application enabled or disabled the track.
  public init(transceiver: UInt32, isInbound: Bool, kind: Kind, reason: Reason? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.kind = kind
    self.reason = reason
  }
}

// MARK: - LayerChoice

/// Decides which layer of received simulcast is shown: the largest one that arrives.
struct LayerChoice {
  /// What happens to a received frame.
  enum Fate {
    case shown
    case passedOver
    /// No layer is shown, or the shown layer is silent, so a key frame must be requested.
    case needsKey
  }

  private struct Shown {
    var mid: String
    var ssrc: UInt32
    var pixels: Int
    var lastArrival: Instant
  }

  /// The time without frames after which even a smaller layer replaces the shown layer.
  private static let patience = Interval.seconds(1)

  private var shown: [Shown] = []

  func shows(_ ssrc: UInt32, of mid: String) -> Bool {
    shown.first { $0.mid == mid }.map { $0.ssrc == ssrc } ?? true
  }

  /// Decides whether to show a frame; a frame that is not part of simulcast is always shown.
  mutating func decide(_ frame: ReceivedFrame) -> Fate {
    guard frame.rid != nil else { return .shown }
    let place = shown.firstIndex { $0.mid == frame.mid }
    if let place, shown[place].ssrc == frame.ssrc {
      shown[place].lastArrival = frame.lastArrival
      if frame.isKey { shown[place].pixels = frame.pixels }
      return .shown
    }
    let isSilent =
      place.map { frame.lastArrival - shown[$0].lastArrival > LayerChoice.patience } ?? true
    guard frame.isKey else { return isSilent ? .needsKey : .passedOver }
    guard isSilent || place.map({ frame.pixels > shown[$0].pixels }) ?? true else {
      return .passedOver
    }
    let next = Shown(
      mid: frame.mid, ssrc: frame.ssrc, pixels: frame.pixels, lastArrival: frame.lastArrival)
    if let place { shown[place] = next } else { shown.append(next) }
    return .shown
  }

  /// Forgets sections that are no longer received.
  mutating func retain(_ mids: [String]) { shown.removeAll { !mids.contains($0.mid) } }
}

extension ReceivedFrame {
  /// The number of pixels, or 0 if the key frame does not state its size.
  fileprivate var pixels: Int { codedSize.map { $0.width * $0.height } ?? 0 }
}
