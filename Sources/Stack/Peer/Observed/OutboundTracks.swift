import Flow
import RTP
import Wire

/// The streams that an observed peer sends.
struct OutboundTracks {
  /// The streams in order of discovery.
  private(set) var all: [OutboundTrack] = []
  /// Stream indices by number.
  private var places: [UInt32: Int] = [:]
  /// Packets on RTX SSRCs that were sent before their original streams were seen.
  private var earlyProbes: [(ssrc: UInt32, packet: SeenPacket)] = []
  private static let earlyMaximum = 450
  private let countsEarlyRepeats: Bool
  private let repairsFully: Bool
  /// The header extensions, which determine where packets have their transport-wide sequence
  /// numbers.
  private var extensions = HeaderExtensionMap()
  private var departures = Departures()

  init(countsEarlyRepeats: Bool = false, repairsFully: Bool = false) {
    self.countsEarlyRepeats = countsEarlyRepeats
    self.repairsFully = repairsFully
  }

  mutating func setExtensions(_ map: HeaderExtensionMap) { extensions = map }

  /// Adds a stream, or applies new information about one.
  mutating func learn(_ track: ObservedTrack) {
    if let place = places[track.number] {
      for packet in all[place].learn(track) { send(packet, track.number) }
      return
    }
    places[track.number] = all.count
    var begun = OutboundTrack(
      track, countsEarlyRepeats: countsEarlyRepeats, readsAllSizes: repairsFully)
    for (_, packet) in earlyProbes.filter({ $0.ssrc == track.ssrc }) { begun.repeatPacket(packet) }
    earlyProbes.removeAll { $0.ssrc == track.ssrc }
    all.append(begun)
  }

  /// Handles a stream's packet; a retransmission counts for the original stream.
  mutating func send(_ packet: SeenPacket, _ stream: UInt32) {
    guard let place = places[stream] else { return }
    if let protected = all[place].track.protects {
      // Senders count error correction with the stream that it protects.
      guard let index = all.firstIndex(where: { $0.track.ssrc == protected && $0.track.isMedia })
      else { return }
      return all[index].sendCorrection(packet)
    }
    if all[place].track.repairs == nil, all[place].hold(packet) { return }
    guard let repaired = all[place].track.repairs else {
      record(packet, of: place, isRepeated: false)
      return all[place].send(packet)
    }
    guard let index = all.firstIndex(where: { $0.track.ssrc == repaired }) else {
      if earlyProbes.count < OutboundTracks.earlyMaximum { earlyProbes.append((repaired, packet)) }
      return
    }
    if all[index].repeatPacket(packet) { record(packet, of: index, isRepeated: true) }
  }

  private mutating func record(_ packet: SeenPacket, of place: Int, isRepeated: Bool) {
    guard repairsFully, extensions.transportSequence != 0, packet.isClear,
      let number = HeaderExtensions(
        parsing: packet.bytes.span.bytes, header: packet.header, map: extensions
      ).transportSequence
    else { return }
    departures.record(
      number,
      Departures.Packet(place: place, sequence: packet.header.sequence, isRepeated: isRepeated))
  }

  // MARK: RTCP

  mutating func send(_ report: SenderReport, at now: Instant) {
    if let place = place(of: report.ssrc) { all[place].report(report, at: now) }
  }

  /// Handles the receiver's report blocks; returns the longest round trip that they show, or nil if
  /// they show none.
  @discardableResult
  mutating func receive(_ blocks: [ReportBlock], at now: Instant) -> Interval? {
    var longest: Interval?
    for block in blocks {
      guard let place = place(of: block.ssrc), let length = all[place].receive(block, at: now)
      else { continue }
      longest = max(longest ?? length, length)
    }
    return longest
  }

  /// Expects retransmissions of the latest packets that arrival feedback reports lost.
  ///
  /// libwebrtc immediately retransmits packets that were lost after the last arrival, because the
  /// receiver cannot have noticed their loss yet.
  mutating func receive(_ feedback: TransportFeedback) {
    for lost in departures.lostLast(feedback) { all[lost.place].receive(lost: lost.sequence) }
  }

  mutating func receive(_ nack: GenericNACK) {
    if let place = place(of: nack.mediaSSRC) { all[place].receive(nack) }
  }

  mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool) {
    if let place = place(of: ssrc) { all[place].countKeyframeRequest(isFIR: isFIR) }
  }

  private func place(of ssrc: UInt32) -> Int? { all.lastIndex { $0.track.ssrc == ssrc } }
}

// MARK: - OutboundTrack

/// A stream that an observed peer sends, with everything that its packets reveal.
struct OutboundTrack {
  private(set) var track: ObservedTrack
  /// The maximum number of RTX packets that wait for the stream's first packet.
  private static let earlyMaximum = 450

  private var emission: StreamEmission?
  private var early = EarlyPackets<OutboundStreamCounters>()
  /// The counters while the stream's codec is unknown.
  private var unknown: OutboundStreamCounters?
  private var earlyProbes: [RTPHeader] = []

  private let countsEarlyRepeats: Bool

  /// Whether frame sizes are also read from AV1, and from all spatial layers of VP9.
  private let readsAllSizes: Bool

  init(_ track: ObservedTrack, countsEarlyRepeats: Bool = false, readsAllSizes: Bool = false) {
    self.track = track
    self.readsAllSizes = readsAllSizes
    self.countsEarlyRepeats = countsEarlyRepeats
  }

  /// The counters; nil before the first packet.
  ///
  /// Ignore their `kind` while the track's kind is unknown.
  var counters: OutboundStreamCounters? { emission?.counters.adding(early.forgotten) ?? unknown }

  /// Applies new information about the stream; returns the packets that waited for it.
  mutating func learn(_ track: ObservedTrack) -> [SeenPacket] {
    if let former = self.track.kind, let kind = track.kind, kind != former {
      // The assumed kind was wrong: start over, but keep the counters.
      early.forget(counters)
      emission = nil
    }
    self.track = track
    return track.kind == nil ? [] : early.removeAll().map(\.packet)
  }

  /// Counts and stores a packet while the stream's kind is unknown; returns false once it is known.
  mutating func hold(_ packet: SeenPacket) -> Bool {
    guard track.kind == nil else { return false }
    var counted =
      unknown
      ?? OutboundStreamCounters(
        mid: track.key, kind: .audio, ssrc: track.ssrc, rtxSSRC: nil,
        codec: CodecName(rawValue: ""), payloadType: packet.header.payloadType)
    counted.count(packet.header)
    unknown = counted
    early.hold(packet, at: .zero, counted: counted)
    return true
  }

  /// Whether any packet was decrypted and has a known codec.
  private(set) var isReadable = false

  /// The frame size stated by a key frame; nil before the first.
  var frameSize: (width: Int, height: Int)? { emission?.size }

  mutating func send(_ packet: SeenPacket) {
    let header = packet.header
    let content = content(of: packet)
    if content != nil { isReadable = true }
    if emission == nil, let kind = track.kind {
      let codec = content?.codec ?? track.codec(of: header.payloadType)
      emission = StreamEmission(
        mid: track.key, kind: kind, ssrc: track.ssrc,
        codec: codec?.name ?? CodecName(rawValue: ""), payloadType: header.payloadType,
        clockRate: codec?.clockRate ?? (kind == .video ? 90_000 : 48_000),
        countsEarlyRepeats: countsEarlyRepeats)
      for probe in earlyProbes { emission?.repeatPacket(probe, of: nil) }
      earlyProbes = []
    }
    emission?.send(header, content)
  }

  /// Handles a packet on the stream's retransmission source; returns whether it is a retransmission
  /// rather than a path probe.
  @discardableResult
  mutating func repeatPacket(_ packet: SeenPacket) -> Bool {
    guard emission != nil else {
      if earlyProbes.count < OutboundTrack.earlyMaximum { earlyProbes.append(packet.header) }
      return false
    }
    let original =
      packet.isClear ? RTX.unwrap(packet.bytes.span.bytes, header: packet.header)?.sequence : nil
    return emission?.repeatPacket(packet.header, of: original) ?? false
  }

  /// Records a packet that arrival feedback reported as lost.
  mutating func receive(lost sequence: UInt16) { emission?.receive(lost: sequence) }

  /// Counts a packet from the FlexFEC source that corrects this stream's errors.
  mutating func sendCorrection(_ packet: SeenPacket) { emission?.sendCorrection(packet.header) }

  private func content(of packet: SeenPacket) -> StreamEmission.Content? {
    guard packet.isClear, let codec = track.codec(of: packet.header.payloadType),
      let opened = packet.unwrapped(codec, track)
    else { return nil }
    var content = StreamEmission.Content(codec: opened.codec, isMedia: opened.correction == nil)
    guard track.kind == .video, content.isMedia,
      opened.header.payload.upperBound <= opened.bytes.count
    else { return content }
    let payload = opened.bytes.span.bytes.extracting(opened.header.payload)
    guard let read = VideoPacket(payload, codec: opened.codec.name), read.isKey else {
      return content
    }
    content.isKey = true
    let begin: [UInt8]
    switch read.content {
    case .slice(let range):
      let start = opened.header.payload.lowerBound
      let slice = opened.bytes[start + range.lowerBound..<start + range.upperBound]
      let join = readsAllSizes ? opened.codec.name.payloadFormat?.join : nil
      begin = join?([slice]) ?? Array(slice)
    case .bytes(let bytes): begin = bytes
    }
    content.size =
      layerSize(payload, opened.codec.name) ?? opened.codec.name.size(ofKeyFrame: begin)
    return content
  }

  /// Returns the size of the highest spatial layer if a VP9 key frame states all sizes; nil
  /// otherwise.
  private func layerSize(_ payload: RawSpan, _ codec: CodecName) -> (width: Int, height: Int)? {
    guard readsAllSizes, codec == .vp9 else { return nil }
    var reader = ByteReader(payload)
    let sizes = (try? VP9Descriptor(parsing: &reader))?.structure?.sizes ?? []
    return sizes.max { $0.width < $1.width }.map { (Int($0.width), Int($0.height)) }
  }

  mutating func report(_ report: SenderReport, at arrival: Instant) {
    emission?.report(report, at: arrival)
  }

  /// Handles the receiver's report block; returns the round trip that it shows, or nil if it shows
  /// none.
  @discardableResult
  mutating func receive(_ block: ReportBlock, at arrival: Instant) -> Interval? {
    emission?.receive(block, at: arrival) ?? nil
  }

  mutating func receive(_ nack: GenericNACK) { emission?.receive(nack) }

  mutating func countKeyframeRequest(isFIR: Bool) {
    emission?.countKeyframeRequest(isFIR: isFIR)
  }
}
