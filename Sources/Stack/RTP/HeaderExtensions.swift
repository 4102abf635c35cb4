package import Wire

/// The values of the known header extensions of a received packet (RFC 8285).
///
/// Texts are ranges of the packet, so parsing allocates nothing.
package struct HeaderExtensions: Hashable, Sendable {
  package var mid: Range<Int>?
  package var streamID: Range<Int>?
  package var repairedStreamID: Range<Int>?
  /// 0 loudest to 127 silent (RFC 6464).
  package var audioLevel: UInt8?
  package var isVoice = false
  /// One byte per contributing source, the level in its low 7 bits (RFC 6465 section 4).
  package var mixerLevels: Range<Int>?
  /// The low 24 bits are seconds as a 6.18 fixed point number.
  package var absoluteSendTime: UInt32?
  package var transportSequence: UInt16?

  /// Parses the extensions in the map; skips elements that are truncated or of the wrong length.
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

  /// The contributing sources of a packet.
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

/// Iterates over the elements of a header extension in either form (RFC 8285 sections 4.2 and 4.3)
/// and stops at a truncated one.
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

  /// Returns the value that begins here, or nil and stops if it is truncated.
  private mutating func value(_ length: Int) -> Range<Int>? {
    guard length <= end - offset else {
      offset = end
      return nil
    }
    defer { offset += length }
    return offset..<offset + length
  }
}

/// A header to write: the fields of RFC 3550 section 5.1 and the extensions.
///
/// An extension is written if it has both a value here and an identifier in the map.
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
  /// At most 15; levels are written only if all of them are known.
  package var contributors: [Contributor] = []
  package var absoluteSendTime: UInt32?
  package var transportSequence: UInt16?

  package init(payloadType: UInt8, sequence: UInt16, timestamp: UInt32, ssrc: UInt32) {
    self.payloadType = payloadType
    self.sequence = sequence
    self.timestamp = timestamp
    self.ssrc = ssrc
  }

  /// The length of the header in bytes, with its extensions.
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

  /// The one-byte form has identifiers 1 to 14 and values of 1 to 16 bytes (RFC 8285 section 4.2).
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
