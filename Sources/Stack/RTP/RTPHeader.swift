package import Wire

/// An RTP packet's header and the ranges of its parts (RFC 3550 section 5.1).
///
/// Nothing is copied: ranges are offsets into the parsed bytes.
package struct RTPHeader: Hashable, Sendable {
  /// Header length without CSRCs and extensions.
  package static let fixedLength = 12

  package var marker: Bool
  package var payloadType: UInt8
  package var sequence: UInt16
  package var timestamp: UInt32
  package var ssrc: UInt32
  package var contributorCount: Int
  /// The "defined by profile" field of the header extension; 0 if there is none.
  package var extensionProfile: UInt16
  package var extensionElements: Range<Int>
  /// The payload's range, without padding.
  package var payload: Range<Int>
  /// The number of padding bytes after the payload.
  package var paddingLength: Int

  package var headerLength: Int { payload.lowerBound }

  /// Parses the header and checks that all parts lie within the packet.
  ///
  /// In a protected packet, padding is encrypted and counts as payload.
  package init(parsing bytes: RawSpan, isProtected: Bool = false) throws(ReadError) {
    var reader = ByteReader(bytes)
    let first = try reader.uint8()
    guard first >> 6 == 2 else { throw .malformed }
    let second = try reader.uint8()
    marker = second & 0x80 != 0
    payloadType = second & 0x7f
    sequence = try reader.uint16()
    timestamp = try reader.uint32()
    ssrc = try reader.uint32()
    contributorCount = Int(first & 0x0f)
    try reader.skip(4 * contributorCount)
    if first & 0x10 != 0 {
      extensionProfile = try reader.uint16()
      let length = 4 * Int(try reader.uint16())
      extensionElements = reader.offset..<reader.offset + length
      try reader.skip(length)
    } else {
      extensionProfile = 0
      extensionElements = reader.offset..<reader.offset
    }
    paddingLength = 0
    if first & 0x20 != 0, !isProtected {
      guard !reader.isAtEnd else { throw .malformed }
      paddingLength = Int(bytes.byte(at: bytes.byteCount - 1))
      guard paddingLength > 0, paddingLength <= reader.remaining else { throw .malformed }
    }
    payload = reader.offset..<bytes.byteCount - paddingLength
  }
}

// MARK: - HeaderExtensionMap

/// The URI of an RTP header extension (RFC 8285).
package struct HeaderExtensionURI: RawRepresentable, Hashable, Sendable {
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// The media section a packet belongs to (RFC 9143 section 15).
  package static let mid = HeaderExtensionURI(rawValue: "urn:ietf:params:rtp-hdrext:sdes:mid")
  /// The encoding a packet belongs to (RFC 8852 section 3.1).
  package static let streamID = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id")
  /// The encoding that a retransmission repairs (RFC 8852 section 3.2).
  package static let repairedStreamID = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id")
  /// A packet's audio level (RFC 6464).
  package static let audioLevel = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:ssrc-audio-level")
  /// The mixed sources' levels, in the order of the CSRC list (RFC 6465).
  package static let mixerLevels = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:csrc-audio-level")
  /// When the packet was sent, in seconds as a 6.18 fixed point number.
  package static let absoluteSendTime = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time")
  /// The transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
  package static let transportSequence = HeaderExtensionURI(
    rawValue: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01")
  /// The second version of the transport-wide sequence number, which can also request feedback.
  package static let laterTransportSequence = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/transport-wide-cc-02")
  /// The delay between sampling and sending (RFC 5450).
  package static let transmissionOffset = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:toffset")
  /// When a frame was encoded, packetized, sent and forwarded.
  package static let videoTiming = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/video-timing")
}

/// The ids of the known header extensions on a transport; 0 if not negotiated.
package struct HeaderExtensionMap: Hashable, Sendable {
  package var mid: UInt8 = 0
  package var streamID: UInt8 = 0
  package var repairedStreamID: UInt8 = 0
  package var audioLevel: UInt8 = 0
  package var mixerLevels: UInt8 = 0
  package var absoluteSendTime: UInt8 = 0
  package var transportSequence: UInt8 = 0
  // Only the positions of these extensions matter, because their values change in transit.
  package var transmissionOffset: UInt8 = 0
  package var laterTransportSequence: UInt8 = 0
  package var videoTiming: UInt8 = 0

  package init() {}

  /// Adds a negotiated extension; if a URI occurs twice, its first id is kept.
  package mutating func add(uri: String, id: UInt8) {
    func set(_ field: inout UInt8) { if field == 0 { field = id } }
    switch HeaderExtensionURI(rawValue: uri) {
    case .mid: set(&mid)
    case .streamID: set(&streamID)
    case .repairedStreamID: set(&repairedStreamID)
    case .audioLevel: set(&audioLevel)
    case .mixerLevels: set(&mixerLevels)
    case .absoluteSendTime: set(&absoluteSendTime)
    case .transportSequence: set(&transportSequence)
    case .transmissionOffset: set(&transmissionOffset)
    case .laterTransportSequence: set(&laterTransportSequence)
    case .videoTiming: set(&videoTiming)
    default: break
    }
  }

  /// Whether none of the extensions whose values are read was negotiated.
  package var isEmpty: Bool {
    var read = self
    (read.transmissionOffset, read.laterTransportSequence, read.videoTiming) = (0, 0, 0)
    return read == HeaderExtensionMap()
  }
}

// MARK: - HeaderExtensions

/// Values of the known header extensions in a received packet (RFC 8285).
///
/// Strings are ranges of the packet, so parsing allocates nothing.
package struct HeaderExtensions: Hashable, Sendable {
  package var mid: Range<Int>?
  package var streamID: Range<Int>?
  package var repairedStreamID: Range<Int>?
  /// The packet's audio level, 0 loudest to 127 silent (RFC 6464).
  package var audioLevel: UInt8?
  package var isVoice = false
  /// The levels of the mixed sources: one byte for each, the level in its low 7 bits (RFC 6465
  /// section 4).
  package var mixerLevels: Range<Int>?
  /// When the packet was sent, in seconds as a 6.18 fixed point number in the low 24 bits.
  package var absoluteSendTime: UInt32?
  package var transportSequence: UInt16?

  /// Parses the extensions in the map; skips elements that are truncated or have the wrong length.
  package init(parsing bytes: RawSpan, header: RTPHeader, map: HeaderExtensionMap) {
    var elements = HeaderExtensionElements(header)
    while let (id, range) = elements.next(in: bytes) { parse(id, range, from: bytes, map) }
  }

  private mutating func parse(
    _ id: UInt8, _ range: Range<Int>, from bytes: RawSpan, _ map: HeaderExtensionMap
  ) {
    func byte(_ index: Int) -> UInt8 { bytes.byte(at: range.lowerBound + index) }
    switch id {
    case map.transportSequence where range.count >= 2:
      transportSequence = UInt16(byte(0)) << 8 | UInt16(byte(1))
    case map.absoluteSendTime where range.count == 3:
      absoluteSendTime = UInt32(byte(0)) << 16 | UInt32(byte(1)) << 8 | UInt32(byte(2))
    case map.audioLevel where range.count >= 1:
      audioLevel = byte(0) & 0x7f
      isVoice = byte(0) & 0x80 != 0
    case map.mixerLevels where !range.isEmpty: mixerLevels = range
    case map.mid where !range.isEmpty: mid = range
    case map.streamID where !range.isEmpty: streamID = range
    case map.repairedStreamID where !range.isEmpty: repairedStreamID = range
    default: break
    }
  }

  /// Returns a packet's contributing sources.
  ///
  /// Levels are used only if there is exactly one per source.
  package func contributors(of header: RTPHeader, in bytes: RawSpan) -> [Contributor] {
    guard header.contributorCount > 0, header.headerLength <= bytes.byteCount else { return [] }
    let levels = mixerLevels.flatMap { $0.count == header.contributorCount ? $0 : nil }
    return (0..<header.contributorCount).map { index in
      let offset = RTPHeader.fixedLength + 4 * index
      let source = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes.byte(at: offset + $1)) }
      return Contributor(
        source: source, level: levels.map { bytes.byte(at: $0.lowerBound + index) & 0x7f })
    }
  }
}

/// Iterates over a header extension's elements in either form (RFC 8285 sections 4.2 and 4.3);
/// stops at a truncated element.
package struct HeaderExtensionElements {
  private var offset: Int
  private let end: Int
  private let profile: UInt16

  package init(_ header: RTPHeader) {
    offset = header.extensionElements.lowerBound
    end = header.extensionElements.upperBound
    profile = header.extensionProfile
  }

  package mutating func next(in bytes: RawSpan) -> (id: UInt8, value: Range<Int>)? {
    guard end <= bytes.byteCount else { return nil }
    if profile == 0xbede { return nextShort(in: bytes) }
    return profile & 0xfff0 == 0x1000 ? nextLong(in: bytes) : nil
  }

  private mutating func nextShort(in bytes: RawSpan) -> (id: UInt8, value: Range<Int>)? {
    while offset < end {
      let head = bytes.byte(at: offset)
      offset += 1
      let id = head >> 4
      if id == 0 { continue }  // padding (section 4.2)
      // 15 is reserved and ends the extension.
      guard id != 15 else { break }
      if let value = value(Int(head & 0x0f) + 1) { return (id, value) }
    }
    offset = end
    return nil
  }

  private mutating func nextLong(in bytes: RawSpan) -> (id: UInt8, value: Range<Int>)? {
    while end - offset >= 2 {
      let id = bytes.byte(at: offset)
      offset += 1
      if id == 0 { continue }
      let length = Int(bytes.byte(at: offset))
      offset += 1
      if let value = value(length) { return (id, value) }
    }
    offset = end
    return nil
  }

  /// Returns the range of the value that begins here; stops the iteration with nil if the value is
  /// truncated.
  private mutating func value(_ length: Int) -> Range<Int>? {
    guard length <= end - offset else {
      offset = end
      return nil
    }
    defer { offset += length }
    return offset..<offset + length
  }
}

/// An RTP header to write: the fields of RFC 3550 section 5.1 and the extensions.
///
/// An extension is written if it has a value here and an id in the map.
package struct OutgoingHeader: Hashable, Sendable {
  package var marker = false
  package var payloadType: UInt8
  package var sequence: UInt16
  package var timestamp: UInt32
  package var ssrc: UInt32
  package var mid: [UInt8]?
  package var streamID: [UInt8]?
  package var repairedStreamID: [UInt8]?
  package var audioLevel: UInt8?
  package var isVoice = false
  /// The contributing sources, at most 15; their levels are written only if all are known.
  package var contributors: [Contributor] = []
  package var absoluteSendTime: UInt32?
  package var transportSequence: UInt16?

  package init(payloadType: UInt8, sequence: UInt16, timestamp: UInt32, ssrc: UInt32) {
    self.payloadType = payloadType
    self.sequence = sequence
    self.timestamp = timestamp
    self.ssrc = ssrc
  }

  /// Returns the header length in bytes, including extensions.
  package func length(map: HeaderExtensionMap) -> Int {
    let perElement = needsTwoByteForm(map) ? 2 : 1
    var length = 0
    func add(_ id: UInt8, _ count: Int?) {
      if id != 0, let count { length += perElement + count }
    }
    add(map.mid, mid?.count)
    add(map.streamID, streamID?.count)
    add(map.repairedStreamID, repairedStreamID?.count)
    add(map.audioLevel, audioLevel == nil ? nil : 1)
    add(map.mixerLevels, mixerLevels?.count)
    add(map.absoluteSendTime, absoluteSendTime == nil ? nil : 3)
    add(map.transportSequence, transportSequence == nil ? nil : 2)
    return fixedLength + (length == 0 ? 0 : 4 + (length + 3) / 4 * 4)
  }

  private var fixedLength: Int { RTPHeader.fixedLength + 4 * contributors.count }

  private var mixerLevels: [UInt8]? {
    let levels = contributors.compactMap(\.level)
    return levels.isEmpty || levels.count < contributors.count ? nil : levels
  }

  /// Writes the header; the payload follows.
  package func write(into writer: inout ByteWriter, map: HeaderExtensionMap) {
    let start = writer.count
    let length = length(map: map)
    let hasExtensions = length > fixedLength
    writer.uint8((hasExtensions ? 0x90 : 0x80) | UInt8(truncatingIfNeeded: contributors.count & 15))
    writer.uint8(payloadType & 0x7f | (marker ? 0x80 : 0))
    writer.uint16(sequence)
    writer.uint32(timestamp)
    writer.uint32(ssrc)
    for contributor in contributors { writer.uint32(contributor.source) }
    guard hasExtensions else { return }
    let twoByte = needsTwoByteForm(map)
    writer.uint16(twoByte ? 0x1000 : 0xbede)
    writer.uint16(UInt16(truncatingIfNeeded: (length - fixedLength - 4) / 4))
    func text(_ id: UInt8, _ value: [UInt8]?) {
      guard id != 0, let value else { return }
      begin(id, value.count, twoByte, &writer)
      writer.append(value)
    }
    text(map.mid, mid)
    text(map.streamID, streamID)
    text(map.repairedStreamID, repairedStreamID)
    if map.audioLevel != 0, let audioLevel {
      begin(map.audioLevel, 1, twoByte, &writer)
      writer.uint8(audioLevel & 0x7f | (isVoice ? 0x80 : 0))
    }
    text(map.mixerLevels, mixerLevels)
    if map.absoluteSendTime != 0, let absoluteSendTime {
      begin(map.absoluteSendTime, 3, twoByte, &writer)
      writer.uint24(absoluteSendTime)
    }
    if map.transportSequence != 0, let transportSequence {
      begin(map.transportSequence, 2, twoByte, &writer)
      writer.uint16(transportSequence)
    }
    writer.zeros(start + length - writer.count)
  }

  private func begin(_ id: UInt8, _ count: Int, _ twoByte: Bool, _ writer: inout ByteWriter) {
    if twoByte {
      writer.uint8(id)
      writer.uint8(UInt8(truncatingIfNeeded: count))
    } else {
      writer.uint8(id << 4 | UInt8(truncatingIfNeeded: count - 1))
    }
  }

  /// Returns whether an extension exceeds the one-byte form, which allows ids from 1 to 14 and
  /// values of 1 to 16 bytes (RFC 8285 section 4.2).
  private func needsTwoByteForm(_ map: HeaderExtensionMap) -> Bool {
    func isTooLarge(_ id: UInt8, _ value: [UInt8]?) -> Bool {
      guard id != 0, let value else { return false }
      return id > 14 || !(1...16).contains(value.count)
    }
    return isTooLarge(map.mid, mid) || isTooLarge(map.streamID, streamID)
      || isTooLarge(map.repairedStreamID, repairedStreamID)
      || map.audioLevel > 14 && audioLevel != nil
      || isTooLarge(map.mixerLevels, mixerLevels)
      || map.absoluteSendTime > 14 && absoluteSendTime != nil
      || map.transportSequence > 14 && transportSequence != nil
  }
}
