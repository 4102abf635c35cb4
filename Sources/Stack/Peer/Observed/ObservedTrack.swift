package import Flow
import Media
package import RTP
package import Wire

/// An RTP stream in an observed call, with what is known about its contents.
package struct ObservedTrack: Sendable {
  /// The number that identifies the stream in all rows of the take, unique among all calls.
  package var number: UInt32
  package var ssrc: UInt32
  /// Whether the observed peer receives rather than sends the stream.
  package var isInbound: Bool
  /// The kind; nil while it is unknown.
  package var kind: MediaKind?
  package var mid: String
  /// The codecs of the payload types that descriptions or packets have shown.
  package var codecs: [FlowSection.Codec] = []
  /// The SSRC whose packets this stream retransmits (RFC 4588); nil if it retransmits no other
  /// stream.
  package var repairs: UInt32?
  /// The source whose packets this stream recovers, if it is a FlexFEC stream (RFC 8627).
  package var protects: UInt32?
  /// The FlexFEC source that protects this stream, if a description names one (`FEC-FR`, RFC 5956).
  package var protectedBy: UInt32?
  /// Whether both peers agreed on ULPFEC.
  package var agreesOnCorrection = false
  /// The original payload types, by the payload types of their RTX packets.
  package var repeatedTypes: [UInt8: UInt8] = [:]
  /// The formats' fmtp values in descriptions, by payload type.
  package var parameters: [UInt8: String] = [:]
  /// The transport's number; nil if statistics do not include transports.
  package var transport: Int?
  /// The canonical name that all streams of an endpoint share (CNAME, RFC 3550 section 6.5.1); nil
  /// until it is known.
  package var canonicalName: String?

  package init(
    number: UInt32, ssrc: UInt32, isInbound: Bool, kind: MediaKind?, mid: String
  ) {
    self.number = number
    self.ssrc = ssrc
    self.isInbound = isInbound
    self.kind = kind
    self.mid = mid
  }

  /// Returns a payload type's codec, or nil if it is unknown.
  func codec(of payloadType: UInt8) -> FlowSection.Codec? {
    codecs.first { $0.payloadType == payloadType }
  }

  /// The stream's number as text, which the lower layers use where a live peer has a MID.
  var key: String { String(number) }
}

extension CodecName {
  /// RED, a wrapper for redundant audio and for ULPFEC (RFC 2198).
  static let redundant = CodecName(rawValue: "red")
  /// Forward error correction in the stream itself (RFC 5109).
  static let errorCorrection = CodecName(rawValue: "ulpfec")

  /// The packet format if the codec is FlexFEC, which corrects errors in another source's packets.
  var correctionForm: ErrorCorrection.Form? {
    switch rawValue {
    case "flexfec-03": .flexFEC03
    case "flexfec": .flexFEC
    default: nil
    }
  }
}

/// An RTP packet in a call, decrypted or not.
package struct SeenPacket: Sendable {
  package var header: RTPHeader
  /// The packet's bytes; empty if it could not be decrypted.
  package var bytes: [UInt8]
  package var isClear: Bool
  /// The capture time, if the packet is processed later; nil means the step's instant.
  package var arrival: Instant?
  /// The ECN mark in the IP header; nil if it is unknown.
  package var ecn: ECNMark?

  package init(header: RTPHeader, bytes: [UInt8], isClear: Bool) {
    self.header = header
    self.bytes = bytes
    self.isClear = isClear
  }

  /// Removes all but the header.
  mutating func forgetBytes() {
    (bytes, isClear) = ([], false)
  }

  /// Returns the error correction for another source's packets, or nil if it cannot be read.
  func correction(_ track: ObservedTrack) -> ErrorCorrection? {
    guard isClear, header.payload.upperBound <= bytes.count,
      let form = track.codec(of: header.payloadType)?.name.correctionForm
    else { return nil }
    // Contributors name the protected sources (RFC 8627 section 4.2.1); only packets for a single
    // source are read.
    if form == .flexFEC, header.contributorCount > 1 { return nil }
    return ErrorCorrection(form, bytes.span.bytes.extracting(header.payload))
  }

  /// Returns the packet as a receiver sees it, with RED replaced by the block or the error
  /// correction packet inside.
  ///
  /// Error correction becomes a packet without payload, so that its sequence number does not count
  /// as missing.
  ///
  /// - Parameters:
  ///   - codec: the packet's codec.
  ///   - lead: the number of bytes to keep before the RED payload, where RTX has the original
  ///     sequence number.
  /// - Returns: the packet, or nil if its RED blocks exceed it or have unknown payload types.
  func unwrapped(_ codec: FlowSection.Codec, _ track: ObservedTrack, after lead: Int = 0)
    -> StreamReception.Packet?
  {
    guard codec.name == .redundant else {
      return StreamReception.Packet(wire: header, header: header, bytes: bytes, codec: codec)
    }
    // A packet that contains only padding probes the path or keeps it alive.
    guard header.payload.count > lead else {
      return track.media.map {
        StreamReception.Packet(wire: header, header: header, bytes: bytes, codec: $0)
      }
    }
    let start = header.payload.lowerBound + lead
    guard let inner = RED.primary(bytes.span.bytes, in: start..<header.payload.upperBound),
      let codec = track.codec(of: inner.payloadType), codec.name != .redundant
    else { return nil }
    var opened = header
    opened.payloadType = inner.payloadType
    opened.paddingLength = 0
    var kept = Array(bytes[..<start])
    guard codec.name != .errorCorrection else {
      opened.payload = header.payload.lowerBound..<header.payload.lowerBound
      return track.media.map {
        StreamReception.Packet(
          wire: header, header: opened, bytes: kept, codec: $0, isInRED: true,
          correction: Array(bytes[inner.payload]))
      }
    }
    kept += bytes[inner.payload]
    opened.payload = header.payload.lowerBound..<kept.count
    return StreamReception.Packet(
      wire: header, header: opened, bytes: kept, codec: codec, isInRED: true)
  }
}

extension ObservedTrack {
  /// Whether the CNAME is a UUID, as with Firefox and aiortc, which both count a stream without its
  /// retransmissions.
  var isNamedByUUID: Bool {
    guard var name = canonicalName.map({ $0[...] }) else { return false }
    if name.hasPrefix("{"), name.hasSuffix("}") { name = name.dropFirst().dropLast() }
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    return parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
      && parts.allSatisfy { $0.allSatisfy(\.isHexDigit) }
  }

  /// Whether the stream may contain FEC packets.
  var hasCorrection: Bool { codecs.contains { $0.name == .errorCorrection } }

  /// Whether the receiver may recover packets by error correction.
  var mayBeCorrected: Bool {
    agreesOnCorrection || protectedBy != nil
      || codecs.contains { $0.name == .errorCorrection || $0.name == .redundant }
  }

  /// The codecs that recovered packets may use.
  var mediaCodecs: [FlowSection.Codec] {
    codecs.filter { $0.name != .redundant && $0.name != .errorCorrection }
  }

  /// Whether the stream carries media, in which case statistics have an object for it.
  var isMedia: Bool { repairs == nil && protects == nil }

  /// The codec of the media packets, not RED or ULPFEC; nil if it is unknown.
  fileprivate var media: FlowSection.Codec? {
    codecs.first { $0.name != .redundant && $0.name != .errorCorrection }
  }
}

// MARK: - EarlyPackets

/// Packets of an observed stream whose contents are not known yet.
///
/// All are counted, which requires no clock rate. They are parsed once the codec is known; if too
/// many wait for it, all are dropped.
struct EarlyPackets<Counters: Sendable>: Sendable {
  struct Packet {
    var packet: SeenPacket
    var arrival: Instant
  }

  /// The maximum number of waiting packets and bytes.
  private static var countMaximum: Int { 450 }
  private static var bytesMaximum: Int { 1 << 20 }

  private var packets: [Packet] = []
  private(set) var bytes = 0
  /// The counters at the time when packets were last dropped; nil if none have been dropped.
  private(set) var forgotten: Counters?

  /// Stores a packet after counting it.
  /// - Parameter counted: the counters including this packet.
  mutating func hold(_ packet: SeenPacket, at arrival: Instant, counted: Counters?) {
    packets.append(Packet(packet: packet, arrival: arrival))
    bytes += packet.bytes.count
    if packets.count > Self.countMaximum || bytes > Self.bytesMaximum { forget(counted) }
  }

  /// Drops the waiting packets but keeps their counters.
  mutating func forget(_ counted: Counters?) {
    (packets, bytes) = ([], 0)
    forgotten = counted ?? forgotten
  }

  /// Returns and removes the waiting packets in order of arrival.
  mutating func removeAll() -> [Packet] {
    defer { (packets, bytes) = ([], 0) }
    return packets
  }
}

extension InboundStreamCounters {
  /// Returns these counters plus those of the stream's earlier packets, if there are any.
  func adding(_ earlier: InboundStreamCounters?) -> InboundStreamCounters {
    guard let earlier else { return self }
    var sum = self
    sum.packetsReceived += earlier.packetsReceived
    sum.bytesReceived += earlier.bytesReceived
    sum.headerBytesReceived += earlier.headerBytesReceived
    sum.packetsLost += earlier.packetsLost
    sum.packetsDuplicated += earlier.packetsDuplicated
    sum.packetsDiscarded += earlier.packetsDiscarded
    sum.lastPacketReceived = lastPacketReceived ?? earlier.lastPacketReceived
    return sum
  }
}

extension OutboundStreamCounters {
  /// Returns these counters plus those of the stream's earlier packets, if there are any.
  func adding(_ earlier: OutboundStreamCounters?) -> OutboundStreamCounters {
    guard let earlier else { return self }
    var sum = self
    sum.packetsSent += earlier.packetsSent
    sum.bytesSent += earlier.bytesSent
    sum.headerBytesSent += earlier.headerBytesSent
    sum.retransmittedPacketsSent += earlier.retransmittedPacketsSent
    sum.retransmittedBytesSent += earlier.retransmittedBytesSent
    return sum
  }

  /// Counts a packet by its header alone.
  mutating func count(_ header: RTPHeader) {
    packetsSent += 1
    bytesSent += UInt64(header.payload.count)
    headerBytesSent += UInt64(header.headerLength + header.paddingLength)
    payloadType = header.payloadType
  }
}

// MARK: - UndecodedCodecs

/// Codecs for streams that are not decoded: audio becomes silence of the right length, so that
/// playouts wait and conceal as usual; video is never decoded.
///
/// G.711 is decoded nevertheless, because that needs no library and almost no time.
final class UndecodedCodecs: CodecFactory {
  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    if let law = G711Law(codec) { return G711Decoder(law, channels: channels) }
    return SilentDecoder(channels: channels)
  }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    throw CodecError(reason: "nothing is encoded")
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    throw CodecError(reason: "nothing is encoded")
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError) -> any VideoDecoding {
    throw CodecError(reason: "nothing is decoded")
  }
}

private final class SilentDecoder: AudioDecoding {
  private let channels: Int

  init(channels: Int) { self.channels = channels }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    let frameCount =
      switch request {
      case .payload(let bytes): OpusPacket(bytes)?.duration ?? 960
      case .recoverPrevious(_, let count), .conceal(let count): count
      }
    return DecodedAudio(
      block: AudioBlock(blank: frameCount, channels: channels), peak: 0, energy: 0)
  }
}

extension ReceivedFrame {
  /// A key frame's pixel size, if its bytes contain it.
  var codedSize: (width: Int, height: Int)? { codec.size(ofKeyFrame: bytes) }
}

extension CodecName {
  /// Returns a key frame's pixel size, given its first bytes; nil if they do not state it.
  func size(ofKeyFrame bytes: [UInt8]) -> (width: Int, height: Int)? {
    switch self {
    case .vp8: return VP8BitstreamHeader(bytes.span.bytes).map { ($0.width, $0.height) }
    case .vp9:
      guard let header = try? VP9FrameHeader(parsing: bytes.span.bytes) else { return nil }
      return (header.width, header.height)
    default: return codec?.look?(bytes.span.bytes).size
    }
  }
}

// MARK: - Departures

/// The last packets that an observed peer sent, by transport-wide sequence number, to match arrival
/// feedback with them.
struct Departures {
  struct Packet {
    /// The index of the packet's stream, or of the stream that it retransmits.
    var place: Int
    var sequence: UInt16
    var isRepeated: Bool
  }

  /// The number of stored packets; feedback arrives within a second.
  private static let capacity = 2048

  /// Packets by their number modulo the capacity; empty until a packet has a number.
  private var packets: [(number: UInt16, packet: Packet)?] = []

  mutating func record(_ number: UInt16, _ packet: Packet) {
    if packets.isEmpty { packets = Array(repeating: nil, count: Departures.capacity) }
    packets[Int(number) % Departures.capacity] = (number, packet)
  }

  /// Returns packets that feedback reports as lost: in each stream, only the packets after the last
  /// packet that arrived or was a retransmission.
  func lostLast(_ feedback: TransportFeedback) -> [Packet] {
    guard !packets.isEmpty else { return [] }
    var lost: [Packet] = []
    var arrivals = feedback.arrivals[...]
    for offset in 0..<min(feedback.count, UInt16(Departures.capacity)) {
      let hasArrived = arrivals.first?.offset == offset
      if hasArrived { arrivals.removeFirst() }
      let number = feedback.base &+ offset
      guard let known = packets[Int(number) % Departures.capacity], known.number == number else {
        continue
      }
      if hasArrived || known.packet.isRepeated {
        lost.removeAll { $0.place == known.packet.place }
      } else {
        lost.append(known.packet)
      }
    }
    return lost
  }
}
