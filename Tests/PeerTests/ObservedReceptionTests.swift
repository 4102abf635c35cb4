import Flow
import Peer
import RTP
import Stats
import Testing
import Wire

/// An observed receiver treats losses as the real receiver did, as far as the packets show.
struct ObservedReceptionTests {
  private static let media: UInt32 = 9
  private static let repair: UInt32 = 10

  /// An end that receives a VP8 stream, in RED or not, with a retransmission source.
  private struct Receiver {
    var peer = ObservedPeer(
      number: 1, wallClock: WallClock(unixNanosecondsAtZero: 0), codecs: nil)
    var outbox = Outbox<ObservedPeer.Output>()
    var now = Instant.zero

    init(isInbound: Bool = true, canonicalName: String? = nil, corrects: Bool = true) {
      var track = ObservedTrack(
        number: 5, ssrc: media, isInbound: isInbound, kind: .video, mid: "0")
      let names: [(UInt8, String)] = [(96, "vp8"), (116, "red"), (117, "ulpfec")]
      for (type, name) in names.prefix(corrects ? 3 : 1) {
        track.codecs.append(
          FlowSection.Codec(
            payloadType: type, name: CodecName(rawValue: name), clockRate: 90_000,
            rtxPayloadType: nil, feedback: ["nack"]))
      }
      var other = ObservedTrack(
        number: 6, ssrc: repair, isInbound: isInbound, kind: .video, mid: "0")
      other.repairs = media
      other.repeatedTypes = [97: 96, 119: 116]
      peer.step(.stream(track), at: now, into: &outbox)
      peer.step(.stream(other), at: now, into: &outbox)
      guard let canonicalName else { return }
      var sent = ObservedTrack(number: 7, ssrc: 70, isInbound: false, kind: .audio, mid: "1")
      sent.canonicalName = canonicalName
      peer.step(.stream(sent), at: now, into: &outbox)
    }

    mutating func receive(
      _ bytes: [UInt8], stream: UInt32 = 5, isInbound: Bool = true
    ) throws {
      let seen = SeenPacket(
        header: try RTPHeader(parsing: bytes.span.bytes), bytes: bytes, isClear: true)
      peer.step(.rtp(seen, stream: stream, isInbound: isInbound), at: now, into: &outbox)
    }

    /// Advances the time, meeting deadlines and recording the frames shown.
    mutating func wait(_ milliseconds: Int64) {
      let until = now + .milliseconds(milliseconds)
      while let due = peer.deadline, due <= until {
        now = max(now, due)
        peer.step(.deadline, at: now, into: &outbox)
        recordShown()
      }
      now = until
    }

    /// When each frame was shown, by media time in units of a frame.
    private(set) var shown: [UInt32: Instant] = [:]
    private var looked = 0

    private mutating func recordShown() {
      for output in outbox.outputs[looked...] {
        if case .event(.frame(let frame)) = output { shown[frame.rtpTime / 3000] = now }
      }
      looked = outbox.outputs.count
    }

    /// Sends reports from which the round trip can be measured.
    mutating func measure(_ roundTrip: Int64) throws {
      peer.step(
        .stream(ObservedTrack(number: 8, ssrc: 80, isInbound: false, kind: .audio, mid: "1")),
        at: now, into: &outbox)
      let header: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 80, 1, 2, 3]
      try receive(header, stream: 8, isInbound: false)
      report([
        .senderReport(
          SenderReport(
            ssrc: 80, ntpTime: 1 << 40, rtpTime: 0, packetCount: 1, octetCount: 3))
      ])
      wait(roundTrip)
      let block = ReportBlock(
        ssrc: 80, fractionLost: 0, cumulativeLost: 0, highestSequence: 1, jitter: 0,
        lastSenderReport: 1 << 24, delaySinceLastSenderReport: 0)
      report([.receiverReport(ReceiverReport(ssrc: 1, blocks: [block]))], isInbound: true)
    }

    mutating func report(_ packets: [RTCPPacket], isInbound: Bool = false) {
      peer.step(.rtcp(packets, isInbound: isInbound), at: now, into: &outbox)
    }

    /// Returns the media times of the frames assembled so far, in units of a frame.
    mutating func frames() -> [UInt32] {
      wait(1000)
      return outbox.outputs.compactMap { output in
        guard case .event(.frame(let frame)) = output else { return nil }
        return frame.rtpTime / 3000
      }
    }

    func member(_ name: String, of type: String = "inbound-rtp") -> String? {
      peer.report(at: now).objects.first { $0.type == type }?.members
        .first { $0.name == name }?.value.json
    }
  }

  // MARK: Packets

  /// Makes a frame in one packet, with the given descriptor fields.
  private func frame(
    _ number: UInt16, sequence: UInt16? = nil, isKey: Bool = false,
    layer: (temporal: UInt8, base: UInt8)? = nil, size: Int = 20
  ) -> [UInt8] {
    packet(
      type: 96, sequence ?? number, time: UInt32(number) * 3000,
      payload: payload(number, isKey: isKey, layer: layer, size: size))
  }

  private func payload(
    _ number: UInt16, isKey: Bool, layer: (temporal: UInt8, base: UInt8)? = nil, size: Int = 20
  ) -> [UInt8] {
    var payload: [UInt8] = [0x90, layer == nil ? 0x80 : 0xe0]
    payload += [0x80 | UInt8(number >> 8), UInt8(number & 255)]
    if let layer { payload += [layer.base, layer.temporal << 6] }
    // The header of a 16x16 key frame (RFC 6386 section 9.1), or of another.
    payload += isKey ? [0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 16, 0, 16, 0] : [0x11, 0x02, 0x00]
    return payload + (0..<UInt8(size)).map { $0 &+ UInt8(number & 255) }
  }

  private func packet(
    type: UInt8, _ sequence: UInt16, time: UInt32, ssrc: UInt32 = media, payload: [UInt8],
    padding: UInt8 = 0
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(padding > 0 ? 0xa0 : 0x80)
    writer.uint8(0x80 | type)
    writer.uint16(sequence)
    writer.uint32(time)
    writer.uint32(ssrc)
    writer.append(payload)
    if padding > 0 { writer.append([UInt8](repeating: 0, count: Int(padding) - 1) + [padding]) }
    return writer.bytes
  }

  private func repeated(_ number: UInt16, sequence: UInt16) -> [UInt8] {
    packet(
      type: 97, sequence, time: UInt32(number) * 3000, ssrc: Self.repair,
      payload: [UInt8(number >> 8), UInt8(number & 255)] + payload(number, isKey: number == 0))
  }

  private func inRED(_ number: UInt16, _ block: UInt8, _ payload: [UInt8]) -> [UInt8] {
    packet(type: 116, number, time: UInt32(number) * 3000, payload: [block] + payload)
  }

  private let loss = RTCPPacket.pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: media))

  // MARK: Frames

  /// A retransmission completes its frame however late it arrives, if no key frame was requested.
  @Test func aFrameThatBecomesCompleteLateIsDecoded() throws {
    var receiver = Receiver()
    for number in 0..<60 as Range<UInt16> where number != 10 {
      try receiver.receive(frame(number, isKey: number == 0))
      receiver.wait(100)
    }
    #expect(receiver.frames() == Array(0..<10))
    try receiver.receive(repeated(10, sequence: 1), stream: 6)
    #expect(receiver.frames() == Array(0..<60))
    #expect(receiver.member("framesDropped") == "0")
  }

  @Test func aFrameIsAwaitedUntilTheSenderContinuesWithAKeyFrame() throws {
    var receiver = Receiver()
    for number in 0..<30 as Range<UInt16> where number != 10 {
      try receiver.receive(frame(number, isKey: number == 0 || number == 20))
      receiver.wait(33)
    }
    try receiver.receive(repeated(10, sequence: 1), stream: 6)
    #expect(receiver.frames() == Array(0..<10) + Array(20..<30))
    #expect(receiver.member("framesDropped") == "9")
  }

  @Test func aRequestForAKeyFrameEndsTheWaiting() throws {
    var receiver = Receiver()
    for number in 0..<20 as Range<UInt16> where number != 10 {
      try receiver.receive(frame(number, isKey: number == 0))
      receiver.wait(33)
    }
    receiver.report([loss])
    try receiver.receive(repeated(10, sequence: 1), stream: 6)
    for number in 20..<30 as Range<UInt16> {
      try receiver.receive(frame(number, isKey: number == 25))
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<10) + Array(25..<30))
    #expect(receiver.member("pliCount") == "1")
  }

  /// Without a gap, as at a forwarding server, a keyframe request changes nothing.
  @Test func aRequestForAKeyFrameWithoutAGapDropsNothing() throws {
    var receiver = Receiver()
    for number in 0..<20 as Range<UInt16> {
      try receiver.receive(frame(number, isKey: number == 0))
      if number == 10 { receiver.report([loss]) }
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<20))
  }

  /// If the receiver does not request a missing packet, it received the packet, and only the
  /// capture lacks it.
  @Test func aGapThatIsNeverNACKedIsSkipped() throws {
    var receiver = Receiver()
    for number in 0..<300 as Range<UInt16> where number != 10 {
      try receiver.receive(frame(number, isKey: number == 0))
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<10) + Array(11..<300))
  }

  /// The lowest temporal layer depends on no upper layer (RFC 7741 section 4.2).
  @Test func aMissingUpperLayerFrameDoesNotDelayTheLowestLayer() throws {
    var receiver = Receiver()
    for number in 0..<20 as Range<UInt16> where number != 9 {
      try receiver.receive(
        frame(
          number, isKey: number == 0,
          layer: (temporal: UInt8(number & 1), base: UInt8(number / 2))))
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<9) + Array(10..<20))
  }

  /// The first key frame may be lost, and cannot be requested; probes of the path may repeat it,
  /// before or after later frames.
  @Test(arguments: [1, 4])
  func aLostInitialKeyFrameIsRepaired(before number: UInt16) throws {
    var receiver = Receiver()
    for sent in 1..<12 as Range<UInt16> {
      if sent == number {
        try receiver.receive(repeated(0, sequence: 1), stream: 6)
        try receiver.receive(
          packet(type: 97, 2, time: 0, ssrc: Self.repair, payload: [], padding: 200), stream: 6)
      }
      try receiver.receive(frame(sent))
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<12))
    #expect(receiver.member("framesDropped") == "0")
    #expect(receiver.member("packetsLost") == "0")
    #expect(receiver.member("packetsReceived") == "13")
    #expect(receiver.member("retransmittedPacketsReceived") == "2")
  }

  /// If a capture started too late for a key frame, undecodable frames are not kept forever.
  @Test func framesBeforeTheFirstKeyFrameAreDropped() throws {
    var receiver = Receiver()
    for number in 1..<80 as Range<UInt16> {
      try receiver.receive(frame(number, isKey: number == 70))
    }
    #expect(receiver.frames() == Array(70..<80))
    #expect(receiver.member("framesDropped") == "69")
  }

  /// Once three frames have needed a retransmission, libwebrtc delays all frames by a
  /// retransmission's duration, so that repairs interrupt the picture less.
  ///
  /// If forward error correction was negotiated, frames are not delayed.
  @Test(arguments: [true, false])
  func framesWaitForRepairsOnceSomeWereNeeded(corrects: Bool) throws {
    var receiver = Receiver(corrects: corrects)
    try receiver.measure(80)
    let began = receiver.now
    for number in 0..<120 as Range<UInt16> {
      if ![20, 30, 40].contains(number) {
        try receiver.receive(frame(number, isKey: number == 0))
      }
      receiver.wait(33)
      if [22, 32, 42].contains(number) {
        try receiver.receive(repeated(number - 2, sequence: number), stream: 6)
      }
    }
    #expect(receiver.frames() == Array(0..<120))
    // Frames are 33.3 ms apart in their stream, and arrived 33 ms apart.
    let delays = [15, 110].map { number in
      receiver.shown[number].map { $0 - began - .milliseconds(33 * Int64(number)) }
    }
    let (early, late) = (try #require(delays[0]), try #require(delays[1]))
    #expect(early < .milliseconds(50))
    if corrects {
      #expect(late < .milliseconds(90))
    } else {
      #expect(late > .milliseconds(80) && late < .milliseconds(180))
    }
  }

  // MARK: Error correction

  /// Error correction restores a lost packet (RFC 5109), which still counts as lost.
  ///
  /// The bytes of error correction and RED count as the stream's bytes.
  @Test func aLostPacketIsRecoveredFromOthers() throws {
    var receiver = Receiver()
    var bytes = 0
    for number in 0..<12 as Range<UInt16> {
      let isCorrection = number == 8
      let payload = isCorrection ? correction(of: 4..<8) : payload(number, isKey: number == 0)
      let packet = inRED(number, isCorrection ? 117 : 96, payload)
      guard number != 6 else { continue }
      bytes += packet.count - 12
      try receiver.receive(packet)
      receiver.wait(33)
    }
    #expect(receiver.frames() == Array(0..<8) + Array(9..<12))
    #expect(receiver.member("packetsLost") == "1")
    #expect(receiver.member("packetsReceived") == "11")
    #expect(receiver.member("bytesReceived") == "\(bytes)")
    #expect(receiver.member("fecPacketsReceived") == "1")
    #expect(receiver.member("fecBytesReceived") == "\(correction(of: 4..<8).count)")
  }

  /// Returns the exclusive or of the packets without RED (RFC 5109 sections 7.3 and 7.4).
  private func correction(of numbers: Range<UInt16>) -> [UInt8] {
    let packets = numbers.map { frame($0, isKey: $0 == 0) }
    let longest = packets.map(\.count).max() ?? 12
    var header = [UInt8](repeating: 0, count: 10)
    var data = [UInt8](repeating: 0, count: longest - 12)
    for packet in packets {
      header[0] ^= packet[0] & 0x3f
      header[1] ^= packet[1]
      for index in 4..<8 { header[index] ^= packet[index] }
      header[8] ^= UInt8((packet.count - 12) >> 8)
      header[9] ^= UInt8((packet.count - 12) & 255)
      for index in 12..<packet.count { data[index - 12] ^= packet[index] }
    }
    header[2] = UInt8(numbers.lowerBound >> 8)
    header[3] = UInt8(numbers.lowerBound & 255)
    let mask = numbers.reduce(UInt16(0)) { $0 | 0x8000 >> ($1 - numbers.lowerBound) }
    return header + [UInt8(data.count >> 8), UInt8(data.count & 255)]
      + [UInt8(mask >> 8), UInt8(mask & 255)] + data
  }

  // MARK: Counting

  /// Senders fill the path over the retransmission source; only a requested packet is a
  /// retransmission.
  @Test func aProbeIsNotARetransmission() throws {
    var sender = Receiver(isInbound: false)
    // The sender probes the path before the stream starts.
    try sender.receive(
      packet(type: 97, 1, time: 0, ssrc: Self.repair, payload: [], padding: 200), stream: 6,
      isInbound: false)
    for number in 0..<10 as Range<UInt16> {
      try sender.receive(frame(number, isKey: number == 0), isInbound: false)
    }
    sender.report(
      [
        .receiverReport(
          ReceiverReport(
            ssrc: 1,
            blocks: [
              ReportBlock(
                ssrc: Self.media, fractionLost: 0, cumulativeLost: 0, highestSequence: 9,
                jitter: 0, lastSenderReport: 0, delaySinceLastSenderReport: 0)
            ])),
        .genericNACK(GenericNACK(senderSSRC: 1, mediaSSRC: Self.media, sequences: [4])),
      ], isInbound: true)
    for number in [3, 4] as [UInt16] {
      try sender.receive(
        repeated(number, sequence: number), stream: 6, isInbound: false)
    }
    #expect(sender.member("retransmittedPacketsSent", of: "outbound-rtp") == "1")
    #expect(sender.member("packetsSent", of: "outbound-rtp") == "13")
    #expect(sender.member("framesEncoded", of: "outbound-rtp") == "10")
    #expect(sender.member("keyFramesEncoded", of: "outbound-rtp") == "1")
    #expect(sender.member("frameWidth", of: "outbound-rtp") == "16")
  }

  /// Padding counts as header bytes, as in browsers; Firefox and aiortc, whose streams are named by
  /// UUIDs, count their retransmissions separately.
  @Test(arguments: [
    (nil, "12", "2"), ("{01234567-89ab-cdef-0123-456789abcdef}", "10", "2"),
    ("01234567-89ab-cdef-0123-456789abcdef", "10", "2"), ("L3Wno4onaciADVQs", "12", "2"),
  ])
  func retransmissionCountsMatchTheReceivers(
    name: String?, packets: String, repeats: String
  ) throws {
    var receiver = Receiver(canonicalName: name)
    for number in 0..<10 as Range<UInt16> {
      try receiver.receive(frame(number, isKey: number == 0))
    }
    let before = Int(receiver.member("headerBytesReceived") ?? "")
    try receiver.receive(repeated(4, sequence: 1), stream: 6)
    try receiver.receive(
      packet(type: 97, 2, time: 0, ssrc: Self.repair, payload: [], padding: 200), stream: 6)
    #expect(receiver.member("packetsReceived") == packets)
    #expect(receiver.member("retransmittedPacketsReceived") == repeats)
    let after = Int(receiver.member("headerBytesReceived") ?? "")
    #expect(before == 120 && after == (packets == "12" ? 120 + 24 + 200 : 120))
  }

  /// A frame's packets are sent together, so receivers measure jitter once per frame.
  @Test func jitterMatchesTheReceiverReports() throws {
    var receiver = Receiver()
    for number in 0..<40 as Range<UInt16> {
      // Sends three packets of a frame, which arrives 10 ms early or late.
      for part in 0..<3 as Range<UInt16> {
        try receiver.receive(
          packet(
            type: 96, number * 3 + part, time: UInt32(number) * 3000,
            payload: payload(number, isKey: number == 0)))
      }
      receiver.wait(number % 2 == 0 ? 23 : 43)
    }
    let measured = Double(receiver.member("jitter") ?? "") ?? 0
    #expect((0.008...0.0102).contains(measured), "\(measured)")
    receiver.report([
      .receiverReport(
        ReceiverReport(
          ssrc: 1,
          blocks: [
            ReportBlock(
              ssrc: Self.media, fractionLost: 0, cumulativeLost: 0, highestSequence: 9,
              jitter: 684, lastSenderReport: 0, delaySinceLastSenderReport: 0)
          ]))
    ])
    #expect(receiver.member("jitter") == "0.0076")
  }
}
