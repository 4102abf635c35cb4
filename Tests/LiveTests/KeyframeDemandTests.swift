import Flow
import Peer
import RTP
import Testing
import Wire

@testable import Live

struct KeyframeDemandTests {
  @Test func keyFrameRequestsAreCountedForSentVideo() {
    var demand = KeyframeDemand()
    func note(_ type: String, _ ssrc: UInt32, isInbound: Bool = true) {
      demand.observe(RTCPRecord(isInbound: isInbound, type: type, ssrc: ssrc, fields: "{}"))
    }
    note("pli", 7)
    #expect(demand.count(on: 1) == nil)
    demand.observe(
      FrameRecord(
        transceiver: 1, kind: .video, isInbound: false, codec: .h264, ssrc: 7, rtpTime: 0,
        isKey: true, width: 0, height: 0, bytes: [], outcome: "passed on", decoded: .none,
        quantiser: 0))
    #expect(demand.count(on: 1) == 0)
    note("pli", 7)
    note("fir", 7)
    note("nack", 7)
    note("pli", 8)
    note("pli", 7, isInbound: false)
    #expect(demand.count(on: 1) == 2)
  }
}
