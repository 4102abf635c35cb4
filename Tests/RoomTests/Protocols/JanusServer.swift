import SDP
import Testing
import Wire

@testable import Room

typealias JanusBench = SignalingBench<JanusMachine>

/// A Janus server's messages, and clients in different stages of a session.
enum JanusServer {
  static func bench(
    _ options: [String: String] = [:], urls: [String] = ["ws://one.example"]
  ) -> JanusBench {
    JanusBench(SignalingConfiguration(protocolName: "janus", urls: urls, options: options))
  }

  /// Returns a client in a videoroom with one remote participant, who publishes audio and a video
  /// with three layers.
  static func joined(_ options: [String: String] = [:]) throws -> JanusBench {
    var bench = bench(options)
    bench.want(.join(RoomJoin(room: "1234", displayName: "Ann")))
    try enter(&bench)
    return bench
  }

  static let publishers = """
    [{"id":7,"display":"Ben","streams":[{"type":"audio","mid":"0","codec":"opus"},\
    {"type":"video","mid":"1","codec":"vp8","simulcast":true,"description":"cat"}]}]
    """

  static func enter(_ bench: inout JanusBench, publishers: String = publishers) throws {
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":11}}"#, to: "create")
    try bench.answer(#"{"janus":"success","session_id":11,"data":{"id":21}}"#, to: "attach")
    try bench.answer(
      event(
        #"{"videoroom":"joined","room":1234,"id":5,"private_id":9,"publishers":\#(publishers)}"#),
      to: "join")
  }

  static func event(_ data: String, sender: Int = 21, jsep: String? = nil) -> String {
    let description = jsep.map { #","jsep":\#($0)"# } ?? ""
    return #"{"janus":"event","session_id":11,"sender":\#(sender),"plugindata":{"plugin":"p","#
      + #""data":\#(data)}\#(description)}"#
  }

  static let offer = SessionDescription(type: .offer, sdp: "v=0 offer")
  static let answer = SessionDescription(type: .answer, sdp: "v=0 answer")
  static let jsepOffer = #"{"type":"offer","sdp":"v=0 offer"}"#
  static let jsepAnswer = #"{"type":"answer","sdp":"v=0 answer"}"#
  static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio, extraValue: "mic")

  /// Returns the same client after it subscribed to everything and got the offer.
  static func subscribed() throws -> JanusBench {
    var bench = try joined()
    _ = bench.drain()
    bench.want(.subscribe(ActionID(1), [MediaID(1), MediaID(2)]))
    try bench.answer(#"{"janus":"success","session_id":11,"data":{"id":22}}"#, to: "attach")
    try bench.answer(event(attached("attached"), sender: 22, jsep: jsepOffer), to: "join")
    return bench
  }

  static func attached(_ word: String, isVideoActive: Bool = true) -> String {
    #"{"videoroom":"\#(word)","streams":[{"mid":"0","active":true,"feed_id":7,"feed_mid":"0"},"#
      + #"{"mid":"1","active":\#(isVideoActive),"feed_id":7,"feed_mid":"1"}]}"#
  }
}
