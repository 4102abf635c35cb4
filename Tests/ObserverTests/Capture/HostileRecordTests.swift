import Glibc
import Testing
import Wire

@testable import Observer

/// Tests absurd values that a file or a packet may state.
struct HostileRecordTests {
  private let frame = Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(1))))

  private func capture(
    offset: Int64, ticks: [UInt64], resolution: UInt8 = 9
  ) -> CaptureBuilder {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1) {
      $0.option(9, [resolution])
      $0.option(14, (0..<8).map { UInt8(truncatingIfNeeded: offset >> Int64(8 * $0)) })
    }
    for (number, tick) in ticks.enumerated() {
      let packet = Packets.ipv4(Packets.udp(Packets.rtp(number)), identification: number + 1)
      capture.enhancedPacket(Packets.ethernet(packet), ticks: tick)
    }
    return capture
  }

  @Test func anyTwoTimesCanBeSubtracted() throws {
    let ends: [UInt64] = [0, 1, 1 << 62, 1 << 63, .max - 1, .max]
    for resolution in [0, 6, 9, 19, 0x80, 0xbf, 0xff] as [UInt8] {
      for offset in [.min, -1, 0, 9_300_000_000, .max] as [Int64] {
        let read = try readAll(capture(offset: offset, ticks: ends, resolution: resolution).bytes)
        #expect(read.datagrams.count == ends.count)
        let times = read.datagrams.map(\.at)
        for time in times {
          #expect(times.allSatisfy { !time.subtractingReportingOverflow($0).overflow })
        }
      }
    }
  }

  @Test func intervalsAreKeptInACaptureOfAnotherMillennium() throws {
    let read = try readAll(
      capture(offset: 60_000_000_000, ticks: [0, 20_000_000, 50_000_000]).bytes)
    #expect(read.datagrams.map(\.at) == [0, 20_000_000, 50_000_000])
    #expect(read.counters.framesOutsideOfTime == 3)
  }

  @Test func oneWrongTimestampMovesNoOther() throws {
    let date: UInt64 = 1_700_000_000_000_000_000
    let read = try readAll(capture(offset: 0, ticks: [date, .max, date + 5]).bytes)
    let first = Int64(date)
    #expect(read.datagrams.map(\.at) == [first, first, first + 5])
    #expect(read.counters.framesOutsideOfTime == 1)
  }

  @Test func reportsOfLostFramesAddUpWithoutOverflow() throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1)
    for _ in 0..<3 {
      capture.enhancedPacket(frame) { $0.option(4, [UInt8](repeating: 0xff, count: 8)) }
      capture.block(5) {
        $0.uint32(0)
        $0.uint32(0)
        $0.uint32(0)
        $0.option(5, [UInt8](repeating: 0xff, count: 8))
        $0.option(7, [UInt8](repeating: 0xff, count: 8))
      }
    }
    #expect(try readAll(capture.bytes).dropped == UInt64(Int64.max))
  }

  /// If 8,190 fragments of eight bytes arrive in either order, each one is placed without searching
  /// all others.
  @Test(arguments: [false, true])
  func theCostOfAFragmentIsConstant(_ isReversed: Bool) throws {
    var capture = CaptureBuilder.pcap()
    let count = 8190
    for number in 0..<count {
      let place = isReversed ? count - 1 - number : number
      let more = place < count - 1 ? 0x2000 : 0
      capture.record(
        Packets.ethernet(
          Packets.ipv4(
            place == 0 ? Packets.udp([], length: 8 * count) : [UInt8](repeating: 7, count: 8),
            identification: 9, fragment: more | place)))
    }
    let began = computedSeconds()
    let read = try readAll(capture.bytes)
    #expect(computedSeconds() - began < 4)
    #expect(read.datagrams.map(\.bytes.count) == [8 * count - 8])
    #expect(read.counters.reassembled == 1 && read.counters.fragmentsDropped == 0)
  }

  /// When addresses are reused, ended streams do not cause newer ones to be evicted.
  @Test func endedStreamsDoNotEvictNewerOnes() {
    var streams = TCPStreams()
    var counters = CaptureCounters()
    func tuple(_ number: Int) -> FiveTuple {
      FiveTuple(
        .tcp,
        from: SocketAddress(IPAddress(ipv4: UInt32(number)), port: 1),
        to: SocketAddress(IPAddress(ipv4: 1), port: 2))
    }
    func send(_ number: Int, isStart: Bool = false, isEnd: Bool = false) -> Int {
      let segment = TCPStreams.Segment(
        tuple: tuple(number), sequence: isStart ? 0 : 1, isStart: isStart, isEnd: isEnd,
        isReset: false, missing: 0)
      return streams.add(segment, [UInt8]().span.bytes, at: 0, &counters).count
    }
    // The first connection ends at once and starts again after others.
    _ = send(0, isStart: true)
    _ = send(0, isEnd: true)
    for number in 1..<TCPStreams.streamsMaximum { _ = send(number, isStart: true) }
    _ = send(0, isStart: true)
    #expect(streams.streamCount == TCPStreams.streamsMaximum && counters.streamsDropped == 0)
    _ = send(100_000, isStart: true)
    #expect(counters.streamsDropped == 1)
    // The oldest stream was evicted, not the one with the reused addresses.
    #expect(streams.contains(tuple(0)) && !streams.contains(tuple(1)))
  }
}

/// Returns the thread's processor time in seconds, which does not depend on the machine's load.
private func computedSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
