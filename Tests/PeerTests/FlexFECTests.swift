import Flow
import Peer
import RTP
import Stats
import Testing
import Wire

/// Tests how FlexFEC (RFC 8627) recovers packets that an observed receiver lost.
///
/// The formats are the draft that browsers call `flexfec-03`, and the final format.
struct FlexFECTests {
  private static let media: UInt32 = 9
  private static let correction: UInt32 = 11
  private static let extensions: HeaderExtensionMap = {
    var map = HeaderExtensionMap()
    map.add(uri: HeaderExtensionURI.absoluteSendTime.rawValue, id: 2)
    map.add(uri: HeaderExtensionURI.transportSequence.rawValue, id: 3)
    map.add(uri: HeaderExtensionURI.mid.rawValue, id: 4)
    return map
  }()

  /// The FlexFEC formats, by their encoding names.
  enum Form: String, CaseIterable {
    case draft = "flexfec-03"
    case final = "flexfec"
  }

  private struct Receiver {
    var peer: ObservedPeer
    var outbox = Outbox<ObservedPeer.Output>()
    var now = Instant.zero

    init(_ form: Form, isInbound: Bool = true, isAnnounced: Bool = true) {
      peer = ObservedPeer(
        number: 1, wallClock: WallClock(unixNanosecondsAtZero: 0), codecs: nil)
      peer.step(.extensions(FlexFECTests.extensions), at: now, into: &outbox)
      var track = ObservedTrack(
        number: 5, ssrc: media, isInbound: isInbound, kind: .video, mid: "0")
      track.codecs = [codec(96, "vp8")]
      if isAnnounced { track.protectedBy = correction }
      peer.step(.stream(track), at: now, into: &outbox)
      var other = ObservedTrack(
        number: 6, ssrc: correction, isInbound: isInbound, kind: .video, mid: "0")
      other.codecs = [codec(35, form.rawValue)]
      other.protects = media
      peer.step(.stream(other), at: now, into: &outbox)
    }

    private func codec(_ type: UInt8, _ name: String) -> FlowSection.Codec {
      FlowSection.Codec(
        payloadType: type, name: CodecName(rawValue: name), clockRate: 90_000,
        rtxPayloadType: nil, feedback: ["nack"])
    }

    mutating func receive(_ bytes: [UInt8], stream: UInt32 = 5, isInbound: Bool = true) throws {
      let seen = SeenPacket(
        header: try RTPHeader(parsing: bytes.span.bytes), bytes: bytes, isClear: true)
      peer.step(.rtp(seen, stream: stream, isInbound: isInbound), at: now, into: &outbox)
      wait(33)
    }

    mutating func wait(_ milliseconds: Int64) {
      let until = now + .milliseconds(milliseconds)
      while let due = peer.deadline, due <= until {
        now = max(now, due)
        peer.step(.deadline, at: now, into: &outbox)
      }
      now = until
    }

    /// Returns a hash of each assembled frame's payload, keyed by frame number (RTP time / 3000).
    mutating func frames() -> [UInt32: Int] {
      wait(1000)
      var frames: [UInt32: Int] = [:]
      for case .event(.frame(let frame)) in outbox.outputs {
        frames[frame.rtpTime / 3000] = frame.bytes.reduce(0) { $0 &* 31 &+ Int($1) }
      }
      return frames
    }

    func member(_ name: String, of type: String = "inbound-rtp") -> String? {
      let objects = peer.report(at: now).objects.filter { $0.type == type }
      #expect(objects.count <= 1)
      return objects.first?.members.first { $0.name == name }?.value.json
    }
  }

  // MARK: Packets

  /// Makes a packet that contains a whole frame.
  ///
  /// The lengths of packets differ, and every other packet lacks two of the three header
  /// extensions.
  ///
  /// - Parameter isSent: whether the send time and the transport sequence number are filled in, as
  ///   when packets are sent.
  private func packet(_ number: UInt16, isSent: Bool = true) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(0x90)
    writer.uint8(0x80 | 96)
    writer.uint16(number)
    writer.uint32(UInt32(number) * 3000)
    writer.uint32(Self.media)
    let isLong = number % 2 == 0
    writer.uint16(0xbede)
    writer.uint16(isLong ? 3 : 1)
    let low = UInt8(truncatingIfNeeded: number)
    if isLong {
      writer.append([0x22] + (isSent ? [1, 2, 0x80 ^ low] : [0, 0, 0]))
      writer.append([0x31] + (isSent ? [7, low] : [0, 0]) + [0x40, UInt8(ascii: "0"), 0, 0, 0])
    } else {
      writer.append([0x31] + (isSent ? [7, low] : [0, 0]) + [0])
    }
    writer.append([0x90, 0x80, 0x80 | UInt8(number >> 8), low])
    writer.append(number == 0 ? [0x10, 2, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0] : [0x11, 2, 0])
    writer.append((0..<20 + low).map { $0 &* 7 &+ low })
    return writer.bytes
  }

  /// Makes a packet that protects other packets as they were before sending.
  private func correction(
    _ form: Form, of numbers: [UInt16], sequence: UInt16 = 1, columns: Int? = nil
  ) -> [UInt8] {
    let packets = numbers.map { packet($0, isSent: false) }
    let longest = packets.map(\.count).max() ?? 12
    var head = [UInt8](repeating: 0, count: 8)
    var data = [UInt8](repeating: 0, count: longest - 12)
    for packet in packets {
      head[0] ^= packet[0] & 0x3f
      head[1] ^= packet[1]
      head[2] ^= UInt8((packet.count - 12) >> 8)
      head[3] ^= UInt8((packet.count - 12) & 255)
      for index in 4..<8 { head[index] ^= packet[index] }
      for index in 12..<packet.count { data[index - 12] ^= packet[index] }
    }
    var writer = ByteWriter()
    writer.uint8(form == .final ? 0x81 : 0x80)
    writer.uint8(35)
    writer.uint16(sequence)
    writer.uint32(0)
    writer.uint32(Self.correction)
    if form == .final { writer.uint32(Self.media) }
    if columns != nil { head[0] |= 0x40 }
    writer.append(head)
    if form == .draft {
      writer.append([1, 0, 0, 0])
      writer.uint32(Self.media)
    }
    writer.uint16(numbers[0])
    if let columns {
      writer.append([UInt8(columns), columns == numbers.count ? 0 : UInt8(numbers.count)])
    } else {
      writer.append(mask(form, numbers.map { Int($0 - numbers[0]) }))
    }
    writer.append(data)
    return writer.bytes
  }

  /// Returns the mask in as few parts as needed, which have 15, 31, and 63 or 64 bits.
  ///
  /// A bit before each part says whether it is the last part. In the final format, the third part
  /// has no such bit.
  private func mask(_ form: Form, _ offsets: [Int]) -> [UInt8] {
    let last = offsets.max() ?? 0
    let parts = last < 15 ? [15] : last < 46 ? [15, 31] : [15, 31, form == .draft ? 63 : 64]
    var bits: [Bool] = []
    var begin = 0
    for (index, width) in parts.enumerated() {
      let isLast = index == parts.count - 1
      if width < 64 { bits.append(isLast == (form == .draft)) }
      bits += (begin..<begin + width).map { offsets.contains($0) }
      begin += width
    }
    return stride(from: 0, to: bits.count, by: 8).map { place in
      (0..<8).reduce(UInt8(0)) { $0 << 1 | (bits[place + $1] ? 1 : 0) }
    }
  }

  // MARK: Recovery

  /// A lost packet is recovered, whichever of the protected packets it is and however long the
  /// mask; it still counts as lost.
  @Test(
    arguments: Form.allCases, [[2, 3, 4], [1, 9, 14], [3, 16, 30], [2, 20, 60], [1, 46, 47]])
  func aLostPacketIsRecovered(form: Form, protected: [UInt16]) throws {
    for lost in protected {
      var receiver = Receiver(form)
      for number in 0..<64 as Range<UInt16> where number != lost {
        try receiver.receive(packet(number))
      }
      let correction = correction(form, of: protected)
      try receiver.receive(correction, stream: 6)
      var whole = Receiver(form)
      for number in 0..<64 as Range<UInt16> { try whole.receive(packet(number)) }
      let frames = receiver.frames()
      #expect(frames[UInt32(lost)] != nil)
      #expect(frames == whole.frames())
      #expect(receiver.member("packetsLost") == "1")
      #expect(receiver.member("framesDropped") == "0")
    }
  }

  /// In the final format, FEC packets may also protect rows and columns of packets, or repeat a
  /// packet unchanged.
  @Test func rowsAndColumnsAndRepeatedPackets() throws {
    for (numbers, columns) in [([4, 5, 6, 7], 4), ([4, 9, 14], 5)] as [([UInt16], Int)] {
      var receiver = Receiver(.final)
      for number in 0..<16 as Range<UInt16> where number != numbers[1] {
        try receiver.receive(packet(number))
      }
      try receiver.receive(correction(.final, of: numbers, columns: columns), stream: 6)
      #expect(receiver.frames().count == 16)
    }
    var receiver = Receiver(.final)
    for number in 0..<8 as Range<UInt16> where number != 5 { try receiver.receive(packet(number)) }
    var repeated = packet(5, isSent: false)
    repeated[0] = 0x80 | repeated[0] & 0x3f
    var header = Array(correction(.final, of: [5]).prefix(16))
    header[1] = 35
    try receiver.receive(header + repeated, stream: 6)
    #expect(receiver.frames().count == 8)
  }

  /// An FEC packet waits for the packets that it protects if it arrives before them, and a
  /// recovered packet may make it possible to recover another packet.
  @Test func recoveredPacketsAllowFurtherRecovery() throws {
    var receiver = Receiver(.draft)
    for number in 0..<4 as Range<UInt16> { try receiver.receive(packet(number)) }
    try receiver.receive(correction(.draft, of: [4, 5, 6], sequence: 1), stream: 6)
    try receiver.receive(correction(.draft, of: [4, 7, 8], sequence: 2), stream: 6)
    for number in [6, 7, 8, 9] as [UInt16] { try receiver.receive(packet(number)) }
    #expect(receiver.frames().count == 10)
    #expect(receiver.member("packetsLost") == "2")
  }

  /// If the FEC stream is not announced, recovery starts with its first packet.
  @Test func unannouncedFECIsUsedFromItsFirstPacket() throws {
    var receiver = Receiver(.draft, isAnnounced: false)
    for number in 0..<8 as Range<UInt16> { try receiver.receive(packet(number)) }
    try receiver.receive(correction(.draft, of: [6, 7]), stream: 6)
    for number in [8, 10, 11] as [UInt16] { try receiver.receive(packet(number)) }
    try receiver.receive(correction(.draft, of: [8, 9, 10], sequence: 2), stream: 6)
    #expect(receiver.frames().count == 12)
  }

  // MARK: Counting

  /// libwebrtc counts packets of the FEC source both in the stream's totals and separately.
  @Test func fecPacketsAreCountedInTheStreamAndSeparately() throws {
    var receiver = Receiver(.draft)
    var bytes = 0
    for number in 0..<10 as Range<UInt16> where number != 4 {
      let header = try RTPHeader(parsing: packet(number).span.bytes)
      bytes += header.payload.count
      try receiver.receive(packet(number))
    }
    for sequence in 1...3 as ClosedRange<UInt16> {
      let packet = correction(.draft, of: [3, 4, 5], sequence: sequence)
      bytes += packet.count - 12
      try receiver.receive(packet, stream: 6)
    }
    #expect(receiver.member("packetsReceived") == "12")
    #expect(receiver.member("bytesReceived") == "\(bytes)")
    #expect(receiver.member("packetsLost") == "1")
    #expect(receiver.member("fecPacketsReceived") == "3")
    #expect(
      receiver.member("fecBytesReceived") == "\(3 * (correction(.draft, of: [3, 4, 5]).count - 12))"
    )
    #expect(receiver.member("fecSsrc") == "\(Self.correction)")
    var sender = Receiver(.draft, isInbound: false)
    for number in 0..<10 as Range<UInt16> { try sender.receive(packet(number), isInbound: false) }
    try sender.receive(correction(.draft, of: [3, 4, 5]), stream: 6, isInbound: false)
    #expect(sender.member("packetsSent", of: "outbound-rtp") == "11")
    #expect(sender.member("framesSent", of: "outbound-rtp") == "10")
  }

  /// FEC packets that protect nothing, protect several sources, or are cut off are counted and
  /// recover nothing.
  @Test func unusableFECPacketsAreOnlyCounted() throws {
    var receiver = Receiver(.draft)
    for number in 0..<8 as Range<UInt16> where number != 4 { try receiver.receive(packet(number)) }
    let whole = correction(.draft, of: [3, 4, 5])
    var two = whole
    two[12 + 8] = 2
    var unrelated = whole
    unrelated[12 + 15] = 77
    var empty = whole
    (empty[12 + 18], empty[12 + 19]) = (0x80, 0)
    var endless = whole
    endless[12 + 18] &= 0x7f
    endless[12 + 20] &= 0x7f
    endless[12 + 24] &= 0x7f
    let wrong = [two, unrelated, empty, endless, Array(whole.prefix(31)), Array(whole.prefix(12))]
    for packet in wrong { try receiver.receive(packet, stream: 6) }
    #expect(receiver.frames().keys.max() == 3)
    #expect(receiver.member("fecPacketsReceived") == "\(wrong.count)")
    for length in 0...whole.count {
      try receiver.receive(Array(whole.prefix(max(12, length))), stream: 6)
    }
    #expect(receiver.frames().count == 8)
  }
}
