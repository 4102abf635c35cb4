import Testing

@testable import Debug

/// Tests Tab completion at different places in a line.
struct CompletionTests {
  @Test func completionsFitThePlace() {
    let rows: [(line: String, some: [String], none: [String])] = [
      ("", ["seek", "frame", "audio", "help"], ["state", "picture"]),
      ("se", ["seek"], ["show"]),
      ("seek ", ["start", "end", "state", "packet", "step:"], ["failed", "seek"]),
      ("next ", ["packet", "state"], ["start", "rtp"]),
      ("seek state ", ["ice-connection", "failed", "to_state="], ["rtp", "sequence=", "packet"]),
      ("seek state ice-connection ", ["checking", "failed"], ["have-local-offer", "gathering"]),
      ("seek state signaling ", ["stable", "have-local-offer"], ["checking"]),
      ("seek state to_state=", ["to_state=failed"], ["failed"]),
      ("next packet ", ["in", "rtp", "sequence=", "ssrc="], ["failed", "sr"]),
      ("next packet in ", ["rtp"], ["in"]),
      ("next packet rtcp ", ["pli", "sr"], ["rtp"]),
      ("break frame ", ["key", "video", "rtp_time="], ["nack"]),
      ("seek stat ", ["freezeCount>", "packetsLost>"], ["state"]),
      ("seek stat freezeCount>0 ", ["kind=video"], []),
      ("stats ", ["inbound-rtp"], ["seek"]),
      ("help ", ["seek"], ["state"]),
      ("frame x.png ", ["peer=", "track="], ["seconds="]),
      ("audio x.wav ", ["seconds="], []),
      ("diff ", ["step:"], ["seek"]),
      ("mark ", [], ["seek", "state"]),
    ]
    for row in rows {
      let offered = DebugCompletion().words(of: row.line)
      #expect(row.some.allSatisfy(offered.contains), "\(row.line): \(offered)")
      #expect(!row.none.contains(where: offered.contains), "\(row.line): \(offered)")
    }
  }

  @Test func breakpointsAndTheStateOfPeersAreOffered() {
    struct Flow {
      var receiving = [1]
      var sending = 2
    }
    struct State {
      var flow = Flow()
      var dtls = "connected"
    }
    var completion = DebugCompletion(breakpoints: [3, 7])
    #expect(completion.words(of: "delete ") == ["3", "7"])
    completion.states = {
      [(1, "caller", SnapshotTree("peer 1", of: State())), (2, "", SnapshotTree("", of: Flow()))]
    }
    let peers = completion.words(of: "show ")
    #expect(["1", "2", "caller", "flow.sending", "dtls"].allSatisfy(peers.contains), "\(peers)")
    #expect(completion.words(of: "show caller flow.r") == ["flow.receiving", "flow.receiving[0]"])
    #expect(completion.words(of: "watch 2 s") == ["sending"])
    #expect(completion.words(of: "watch 2 sending ").isEmpty)
  }

  /// Former names, aliases and unique prefixes of commands are accepted too.
  @Test(arguments: [
    ("picture", "frame"), ("sound", "audio"), ("frame", "frame"), ("audio", "audio"),
    ("fr", "frame"),
    ("previous", "back"),
  ])
  func aliasesStay(word: String, name: String) {
    #expect(DebugCommandName.find(word)?.rawValue == name)
  }
}
