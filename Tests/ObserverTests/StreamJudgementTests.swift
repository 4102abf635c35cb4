import RTP
import Testing
import Wire

@testable import Observer

/// Tests what the observer concludes about streams from their packets alone.
struct StreamJudgementTests {
  private func header(_ bytes: [UInt8]) throws -> RTPHeader {
    try RTPHeader(parsing: bytes.span.bytes, isProtected: true)
  }

  // MARK: Encrypted or not

  @Test(arguments: ["opus", "vp8", "vp9", "h264", "h265", "av1"])
  func unencryptedPayloadsAreRecognizedByTheirHeaders(_ codec: String) throws {
    var clear = ClearMedia()
    var stream = SyntheticStream()
    var packets: [[UInt8]] = []
    while packets.count < 64 { packets += codec == "opus" ? [stream.opus()] : stream.frame(codec) }
    let shown = try packets.firstIndex {
      try clear.isShown(by: header($0), $0.span.bytes, from: 0)
    }
    #expect((shown ?? 1000) < 33, "\(codec)")
  }

  /// Encrypted payloads are random, so however many there are, they do not count as unencrypted
  /// media.
  @Test func encryptedPayloadsAreNeverTakenForUnencrypted() throws {
    for seed in 1...400 as ClosedRange<UInt64> {
      var clear = ClearMedia()
      var stream = SyntheticStream(seed: seed, type: UInt8(96 + seed % 32))
      for _ in 0..<64 {
        let packet = stream.sealed(960, 100)
        let isShown = try clear.isShown(by: header(packet), packet.span.bytes, from: 0)
        #expect(!isShown)
      }
    }
  }

  /// A payload's length matches its duration; with an SRTP tag it does not, even if the tag is as
  /// long as a G.729 frame.
  @Test(arguments: [
    (18, 20, 160), (3, 33, 160), (4, 24, 240), (4, 20, 240), (0, 160, 160), (97, 240, 240),
  ])
  func unencryptedAudioIsRecognizedByItsLengths(_ type: Int, _ length: Int, _ ticks: Int) throws {
    for tag in [0, 4, 10, 16] {
      var clear = ClearMedia()
      var stream = SyntheticStream(type: UInt8(type))
      var isShown = false
      for _ in 0..<60 {
        var payload = stream.random(length + tag)
        // Sets the mode bits of G.723.1, which would be random in encrypted packets.
        if type == 4, tag == 0 { payload[0] = payload[0] & 0xfc | (length == 20 ? 1 : 0) }
        defer { stream.timestamp &+= UInt32(ticks) }
        let packet = stream.packet(payload)
        isShown = try clear.isShown(by: header(packet), packet.span.bytes, from: 0) || isShown
      }
      #expect(isShown == (tag == 0), "\(type) \(tag)")
    }
  }

  // MARK: Codec and clock

  private func judged(_ packets: [(bytes: [UInt8], at: Int64)], isClear: Bool) throws
    -> (meanings: [PayloadMeaning], deduction: StreamDeduction)
  {
    var deduction = StreamDeduction()
    var meanings: [PayloadMeaning] = []
    for (bytes, at) in packets {
      let meaning = deduction.examine(
        try header(bytes), bytes.span.bytes, isClear: isClear, at: .zero + .milliseconds(at))
      if let meaning { meanings.append(meaning) }
    }
    return (meanings, deduction)
  }

  /// If the first packets arrive in a burst, Opus packets of 20 ms might be mistaken for video.
  @Test(arguments: [false, true])
  func anInitialBurstIsNotVideo(_ isClear: Bool) throws {
    var stream = SyntheticStream()
    let packets = (0..<500).map { number in
      let at = max(0, Int64(number) - 14) * 20
      return (isClear ? stream.opus() : stream.sealed(960), at)
    }
    let (meanings, deduction) = try judged(packets, isClear: isClear)
    #expect(meanings.last?.codec == "opus" && meanings.last?.clockRate == 48_000)
    #expect(!meanings.contains { $0.kind == .video })
    #expect(deduction.isSure == isClear)
  }

  @Test(arguments: ["vp8", "vp9", "h264", "h265", "av1"])
  func deltaFramesIdentifyTheirCodec(_ codec: String) throws {
    var stream = SyntheticStream()
    let packets = (0..<40).flatMap { number in
      stream.frame(codec).map { ($0, Int64(number) * 33) }
    }
    let (meanings, deduction) = try judged(packets, isClear: true)
    #expect(meanings.last?.codec == codec && meanings.last?.clockRate == 90_000, "\(meanings)")
    #expect(deduction.isSure)
  }

  @Test(arguments: [(160, 20, 8000), (320, 20, 16_000), (960, 20, 48_000), (2880, 60, 48_000)])
  func clockRatesAreDeduced(_ ticks: Int, _ milliseconds: Int, _ clock: Int) throws {
    var stream = SyntheticStream()
    let packets = (0..<300).map { (stream.sealed(UInt32(ticks)), Int64($0 * milliseconds)) }
    let (meanings, _) = try judged(packets, isClear: false)
    #expect(meanings.map(\.clockRate) == [UInt32(clock)])
  }

  /// Video with one packet per frame has no shared timestamps, so it takes longer to recognize.
  @Test func framesOfOnePacketAreVideo() throws {
    var stream = SyntheticStream()
    let packets = (0..<400).map { (stream.sealed(3000 + UInt32($0 % 7)), Int64($0) * 33) }
    let (meanings, _) = try judged(packets, isClear: false)
    #expect(meanings.map(\.clockRate) == [90_000])
  }

  @Test func redundantAudioIsRecognised() throws {
    var stream = SyntheticStream(type: 63)
    let packets = (0..<60).map { number in
      defer { stream.timestamp &+= 960 }
      let older: [UInt8] = [0x80 | 111, 0x0f, 0x00, 40, 111]
      let payload = [0x78] + stream.random(39) + [0x78] + stream.random(49)
      return (stream.packet(older + payload), Int64(number) * 20)
    }
    let (meanings, _) = try judged(packets, isClear: true)
    #expect(meanings.last?.codec == "red" && meanings.last?.kind == .audio, "\(meanings)")
  }

  /// With ULPFEC, browsers send video inside RED: each payload begins with the inner payload type,
  /// which looks like a NAL unit header.
  @Test(arguments: [true, false])
  func redundantVideoIsRecognised(_ isFromItsBeginning: Bool) throws {
    var stream = SyntheticStream(type: 122)
    let packets = (0..<120).map { number in
      defer { stream.timestamp &+= 3000 }
      let isKey = number == 0 && isFromItsBeginning
      let key: [UInt8] = [0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 64, 0, 48, 0]
      let start = isKey ? key : [0x31, 0x01]
      // Every tenth packet is FEC.
      let content: [UInt8] =
        number % 10 == 9 ? [123] + stream.random(80) : [120, 0x10] + start + stream.random(300)
      return (stream.packet(content), Int64(number) * 33)
    }
    let (meanings, deduction) = try judged(packets, isClear: true)
    #expect(meanings.last?.codec == "red" && meanings.last?.kind == .video, "\(meanings)")
    #expect(meanings.last?.clockRate == 90_000)
    #expect(deduction.inner?.codec == "vp8" && deduction.inner?.payloadType == 120)
  }

  /// An H.264 aggregate is only recognized if the lengths of its units add up to its own length.
  @Test(arguments: [true, false]) func aggregatesAreWhole(_ isWhole: Bool) throws {
    var stream = SyntheticStream(type: 102)
    let packets = (0..<80).map { number in
      defer { stream.timestamp &+= 3000 }
      let units = [stream.random(40), stream.random(50)].flatMap { unit -> [UInt8] in
        let length: [UInt8] = [0, UInt8(unit.count + (isWhole ? 1 : 7)), 0x41]
        return length + unit
      }
      return (stream.packet([0x78] + units), Int64(number) * 33)
    }
    let (meanings, _) = try judged(packets, isClear: true)
    #expect((meanings.last?.codec == "h264") == isWhole, "\(meanings)")
  }

  // MARK: Statistics

  private func statistics(_ packets: [(sequence: Int, time: Int, at: Int)]) -> SourceReception {
    var statistics = SourceReception()
    for packet in packets {
      statistics.add(
        UInt16(truncatingIfNeeded: packet.sequence), UInt32(truncatingIfNeeded: packet.time),
        size: 100, at: .zero + .milliseconds(Int64(packet.at)), clockRate: 8000)
    }
    return statistics
  }

  private func run(_ numbers: Range<Int>, from at: Int, time: Int = 0) -> [(Int, Int, Int)] {
    numbers.enumerated().map { ($1, time + $0 * 160, at + $0 * 20) }
  }

  @Test(arguments: [2000, 23_000, 40_000, 32_300])
  func restartedSequenceNumbersAreNotLosses(_ next: Int) {
    let seen = statistics(
      run(32_000..<32_500, from: 0) + run(next..<next + 500, from: 10_000, time: 80_000))
    #expect(seen.restarts == 1 && seen.expected == 1000 && seen.lost == 0)
    // Timestamps that continue cause no jitter.
    #expect(seen.maximumJitter < 1)
  }

  /// After a jump back by a few numbers, the packets look late, but each number is a different
  /// packet.
  @Test(arguments: [1, 2, 5, 50, 99, 100], [0, 7_000_000])
  func slightlyRestartedSequenceNumbersAreNotLosses(_ back: Int, _ time: Int) {
    let next = 32_500 - back
    let packets =
      run(32_000..<32_500, from: 0) + run(next..<next + 500, from: 10_000, time: 80_000 + time)
    let seen = statistics(packets)
    #expect(seen.restarts == 1 && seen.expected == 1000 && seen.lost == 0)
    #expect(seen.maximumJitter < (time == 0 ? 1 : 40_000))
    // Later losses are counted, and earlier ones are not cancelled.
    var thinned = packets
    thinned.removeSubrange(700..<710)
    thinned.removeSubrange(200..<204)
    let thin = statistics(thinned)
    #expect(thin.restarts == 1 && thin.expected == 1000 && thin.lost == 14)
  }

  /// Late, duplicated, replayed and retransmitted packets do not count as a restart, because their
  /// timestamps match their numbers.
  @Test(arguments: ["late", "twice", "replayed", "again", "swapped"])
  func repeatedPacketsAreNotARestart(_ kind: String) {
    var packets = run(0..<1000, from: 0)
    switch kind {
    case "late":
      let late = packets.remove(at: 300)
      packets.insert((late.0, late.1, packets[380].2), at: 380)
    case "twice":
      packets.insert((300, 300 * 160, packets[340].2), at: 340)
    case "replayed":
      packets.insert(contentsOf: packets[300..<380].map { ($0.0, $0.1, 8000) }, at: 400)
    case "again":
      // RFC 4588 retransmissions have older timestamps, in a stream of their own.
      packets = run(0..<1000, from: 0).map { ($0.0, $0.0 % 7 * 90_000, $0.2) }
      packets.swapAt(300, 302)
    default:
      for place in stride(from: 10, to: 990, by: 10) { packets.swapAt(place, place + 3) }
    }
    let seen = statistics(packets)
    #expect(seen.restarts == 0 && seen.expected == 1000)
    // Repeated packets count as received (RFC 3550 appendix A.3).
    #expect(seen.lost == (kind == "twice" ? -1 : kind == "replayed" ? -80 : 0))
  }

  /// A single packet with an older number does not count as a restart, and packets out of order do
  /// not hide one.
  @Test func aSinglePacketIsNotARestart() {
    var alone = run(0..<500, from: 0)
    alone.insert((280, 48_100, 6000), at: 300)
    #expect(statistics(alone).restarts == 0)
    var mixed = run(0..<500, from: 0) + run(450..<900, from: 10_000, time: 80_000)
    mixed.swapAt(510, 512)
    mixed.swapAt(530, 531)
    let seen = statistics(mixed)
    #expect(seen.restarts == 1 && seen.lost == 0)
  }

  @Test func lateAndLostPacketsAreNotARestart() {
    var packets = run(0..<1000, from: 0)
    let late = packets.remove(at: 300)
    packets.insert((late.0, late.1, packets[500].2), at: 501)
    packets.removeSubrange(700..<710)
    let seen = statistics(packets)
    #expect(seen.restarts == 0 && seen.expected == 1000 && seen.lost == 10)
  }

  /// A minute and a half without the network is 4,500 lost packets.
  @Test func anOutageIsLoss() {
    let packets = run(0..<10_000, from: 0)
    let seen = statistics(Array(packets[..<4000] + packets[8500...]))
    #expect(seen.restarts == 0 && seen.lost == 4500)
  }

  @Test func anUnrelatedPacketIsNotARestart() {
    var packets = run(0..<100, from: 0)
    packets.insert((30_000, 7, 1000), at: 50)
    packets.remove(at: 52)
    let seen = statistics(packets)
    #expect(seen.restarts == 0 && seen.lost == 1)
  }
}
