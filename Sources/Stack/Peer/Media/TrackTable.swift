import JSEP
import Media
import RTP
import Wire

/// The tracks of a peer in order of appearance.
struct TrackTable {
  var sending: [SendingTrack] = []
  var receiving: [ReceivingTrack] = []
  /// The application's settings of senders.
  var senders = SenderTable()
  var receivers = ReceiverTable()
  /// Which simulcast layers are shown.
  var layers = LayerChoice()
  /// Empty between two inputs of a track; kept to reuse the memory.
  var sent = Outbox<SendingTrack.Output>()
  var received = Outbox<ReceivingTrack.Output>()
  private let codecs: any CodecFactory
  private let configuration: PeerConfiguration
  /// The negotiated tracks as last reported, to report only changes.
  private var announced: [TrackRecord] = []

  init(_ configuration: PeerConfiguration, codecs: any CodecFactory) {
    self.configuration = configuration
    self.codecs = codecs
  }

  /// When a track's next deadline is due; in place, because a call would copy the whole table.
  @inline(__always)
  var deadline: Instant? {
    var first: Instant?
    // By index, because taking a track out of the array would copy it.
    for index in sending.indices { first = earliest(first, sending[index].deadline) }
    for index in receiving.indices { first = earliest(first, receiving[index].deadline) }
    return first
  }

  /// The track of a sender; of several layers, the first.
  func sendingIndex(of transceiver: UInt32) -> Int? {
    sending.firstIndex { $0.transceiver == transceiver }
  }

  /// The tracks of a sender: one, or one per simulcast layer.
  func sendingIndices(of transceiver: UInt32) -> [Int] {
    sending.indices.filter { sending[$0].transceiver == transceiver }
  }

  /// The tracks that feed a section, or one layer of it.
  func sendingIndices(ofMID mid: String, _ kind: MediaKind, rid: String? = nil) -> [Int] {
    sending.indices.filter {
      sending[$0].stream.mid == mid && sending[$0].kind == kind
        && (rid == nil || sending[$0].rid == rid)
    }
  }

  /// One track per sender: of several layers, the first that runs.
  var firstOfEachSender: [SendingTrack] {
    sending.indices.filter { index in
      let all = sendingIndices(of: sending[index].transceiver)
      return index == all.first { sending[$0].isRunning } ?? all[0]
    }.map { sending[$0] }
  }

  /// The track that plays what a section receives; created with the first frame.
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

  /// Removes the tracks of a sender.
  mutating func removeSending(of transceiver: UInt32) {
    sending.removeAll { $0.transceiver == transceiver }
  }

  /// Removes the layers of a sender that are no longer sent.
  mutating func restrictLayers(_ rids: [String], of transceiver: UInt32) {
    sending.removeAll { track in
      track.transceiver == transceiver && track.rid.map { !rids.contains($0) } ?? false
    }
  }

  // MARK: What an exchange agreed on

  /// Returns each direction of each track that is new or has changed.
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

  /// Ends the playouts of all sections but these; returns the transceivers of audio among them.
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
  /// Creates the record of one direction of an m-section; nil if nothing is sent in it.
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
