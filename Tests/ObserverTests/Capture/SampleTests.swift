import Observer
import Testing
import Wire

/// Tests captures of real calls.
struct SampleTests {
  /// The numbers are from tshark's tables of the same files.
  @Test(arguments: [
    ("aiortc-offers-chromium.pcap", 916), ("chromium-aiortc.pcap", 926),
    ("chromium-firefox-cr-offers.pcap", 1471), ("chromium-noenc-H264.pcap", 454),
    ("chromium-noenc-VP8.pcap", 472), ("chromium-rtpdump.pcapng", 336),
    ("firefox-loop.pcap", 415),
  ])
  func everySampleFrameIsADatagram(name: String, frames: Int) throws {
    let read = try readAll(try sample(name))
    #expect(read.counters.frames == UInt64(frames))
    #expect(read.counters.datagrams + read.counters.duplicates == UInt64(frames))
    #expect(read.waiting == 0)
    #expect(read.counters.malformed == 0)
    #expect(read.counters.joinedDatagrams == 0)
  }

  @Test func aTruncatedFileIsReadUpToItsEnd() throws {
    let bytes = try sample("firefox-loop.pcap")
    let read = try readAll(Array(bytes.dropLast(7)))
    #expect(read.counters.frames == 414)
    #expect(read.waiting > 0)
  }
}
