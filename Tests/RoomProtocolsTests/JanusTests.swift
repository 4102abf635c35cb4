import Peer
import RoomSignaling
import SDP
import Testing
import Wire

@testable import RoomProtocols

/// The Janus machine against what the server's documentation says, and against what it does wrong.
@Suite struct JanusTests {
  static func bench(_ options: [String: String] = [:], urls: [String] = ["ws://janus.example"])
    -> SignalingBench<JanusMachine>
  {
    SignalingBench(
      SignalingConfiguration(protocolName: "janus", urls: urls, options: options))
  }

  @Test func theMachineIsKnownByItsName() {
    let configuration = SignalingConfiguration(protocolName: "janus", urls: [])
    #expect(SignalingProtocols.all.machine(configuration, entropy: Entropy(seed: [])) != nil)
  }

  @Test func aJoinOpensAWebSocketOfTheSubprotocol() {
    var bench = Self.bench()
    bench.want(.join(RoomJoin(room: "1234")))
    #expect(
      bench.take() == [
        .transport(
          TransportID(1),
          .open(url: "ws://janus.example", subprotocols: ["janus-protocol"], headers: []))
      ])
  }
}
