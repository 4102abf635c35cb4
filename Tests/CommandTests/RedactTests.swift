import Foundation
import Tape
import Testing
import Wire

/// Redacted takes contain nothing secret of the original, and replay as promised.
struct RedactTests {
  /// Redacts a take; returns the command's output.
  private func redact(_ take: String, _ out: String, _ options: String...) async throws -> String {
    let outcome = try await Tool.run(["redact", take, "--out", out] + options)
    try #require(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    return outcome.output
  }

  /// A call between two Retake peers still executes completely without its keys, using the take's
  /// DTLS results and frames.
  @Test func aCallWithoutItsKeysIsExecutedStill() async throws {
    let folder = try Folder()
    let call = try await Takes.lossyCall().path
    let public_ = folder.file("public.take")
    let said = try await redact(call, public_)
    #expect(!said.contains("nothing is executed"), "\(said)")
    let replay = try await Tool.run("replay", public_)
    #expect(replay.status == 0, "\(replay.output) \(replay.errors)")
    #expect(replay.output.contains("identical"), "\(replay.output)")
    #expect(replay.output.contains("redacted: media, keys, addresses, names and messages"))
    #expect(try await Tool.run("info", public_).output.contains("replaced by retake redact"))
    #expect(try await Tool.run("verify", public_).status == 0)
    for question in [
      "SELECT count(*) FROM state", "SELECT count(*) FROM packet", "SELECT count(*) FROM frame",
      "SELECT sum(size) FROM packet", "SELECT sum(energy) FROM level",
    ] {
      #expect(try Takes.number(call, question) == Takes.number(public_, question), "\(question)")
    }
    for secret in try secrets(of: call) {
      #expect(try Forms(secret).place(in: public_) == nil, "\(secret)")
    }
  }

  /// Calls between others are executed too: their packets are protected again under other keys,
  /// also those of DTLS 1.3, whose handshake is encrypted.
  @Test(arguments: ["observed-firefox", "observed-aiortc"])
  func aCallBetweenOthersIsExecutedStill(name: String) async throws {
    let folder = try Folder()
    let (call, new) = (Exports.capture(name), folder.file("new.take"))
    let said = try await redact(call, new)
    #expect(!said.contains("nothing is executed"), "\(said)")
    try await Takes.expectIdentical(new)
    for question in [
      "SELECT count(*) FROM frame", "SELECT count(*) FROM message",
      "SELECT count(*) FROM rtcp", "SELECT count(*) FROM packet WHERE protocol = 'dtls'",
    ] {
      #expect(try Takes.number(call, question) == Takes.number(new, question), "\(question)")
    }
  }

  /// Removing one category leaves the rest unchanged.
  @Test(arguments: ["media", "keys", "addresses", "names", "messages"])
  func eachPartIsRemovedAlone(part: String) async throws {
    let folder = try Folder()
    let call = try await Takes.lossyCall().path
    let new = folder.file("new.take")
    let said = try await redact(call, new, "--remove", part)
    #expect(!said.contains("nothing is executed"), "\(said)")
    try await Takes.expectIdentical(new)
    #expect(
      try Takes.number(call, "SELECT sum(size) FROM packet")
        == Takes.number(new, "SELECT sum(size) FROM packet"))
  }

  /// Returns a call's own passwords, addresses, certificates and names.
  private func secrets(of take: String) throws -> [String] {
    let connection = try TakeFile.open(take)
    var found: [String] = []
    for query in [
      "SELECT DISTINCT username_fragment FROM candidate WHERE username_fragment IS NOT NULL",
      "SELECT DISTINCT detail ->> '$.certificate' FROM event WHERE type = 'certificate'",
      "SELECT DISTINCT detail ->> '$.masterSecret' FROM event WHERE type = 'keylog'",
      "SELECT DISTINCT detail ->> '$.remoteFingerprint' FROM event WHERE type = 'secured'",
      "SELECT DISTINCT fields ->> '$.chunks[0].cname' FROM rtcp WHERE type = 'sdes'",
      "SELECT DISTINCT address FROM candidate WHERE address NOT LIKE '127.%'",
    ] {
      let rows = try connection.prepare(query)
      while try rows.step() { if let text = rows.text(0) { found.append(text) } }
    }
    return found.filter { $0.utf8.count >= 8 }
  }

  // MARK: Salted reports

  /// A browser's report, salted with secrets of all kinds: none is left.
  @Test func nothingOfASaltedDumpIsLeft() async throws {
    let folder = try Folder()
    var salt = Salt()
    let dump = folder.file("dump.txt")
    try salt.dump().write(toFile: dump, atomically: true, encoding: .utf8)
    #expect(salt.secrets.count >= 200)
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let imported = try await Tool.run("import", dump, "--out", take)
    try #require(imported.status == 0, "\(imported.errors)")
    _ = try await redact(take, new)
    let replay = try await Tool.run("replay", new)
    #expect(replay.status == 0, "\(replay.output) \(replay.errors)")
    for secret in salt.secrets {
      #expect(try Forms(secret).place(in: new) == nil, "\(secret)")
    }
    // The search itself finds something in the original.
    #expect(try salt.secrets.filter { try Forms($0).place(in: take) != nil }.count > 100)
  }

  /// A name that is a part of longer words is replaced there too, and the take is delivered.
  @Test func namesInsideOfLongerWordsAreReplaced() async throws {
    let folder = try Folder()
    let dump = folder.file("log.jsonl")
    let name = "Wilhelmina77"
    let lines = [
      #"["create","PC_0",{},1700000000000]"#,
      #"[":joined\#(name)Now","PC_0",{"displayName":"\#(name)"},1700000000100]"#,
      #"["getstats","PC_0",{"goog_\#(name)_1":{"type":"x","ssrc":9123456780}},1700000000200]"#,
      #"[":log","PC_0","room=\#(name) name: 9123456780 of x",1700000000300]"#,
    ]
    try lines.joined(separator: "\n").write(toFile: dump, atomically: true, encoding: .utf8)
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let imported = try await Tool.run("import", dump, "--out", take)
    try #require(imported.status == 0, "\(imported.errors)")
    _ = try await redact(take, new)
    #expect(try await Tool.run("replay", new).status == 0)
    #expect(try Forms(name).place(in: take) != nil)
    #expect(try Forms(name).place(in: new) == nil)
    #expect(
      try Takes.number(take, "SELECT count(*) FROM event")
        == Takes.number(
          new, "SELECT count(*) FROM event"))
  }

  /// An archive with everything that another person needs to examine the take.
  @Test func aBundleHoldsTheTakeItsFindingsAndItsPage() async throws {
    let folder = try Folder()
    let call = try await Takes.lossyCall().path
    let zip = folder.file("report.zip")
    let outcome = try await Tool.run("bundle", call, "--out", zip)
    try #require(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    let listed = try Run("/usr/bin/python3", ["-m", "zipfile", "-t", zip])
    #expect(try await listed.outcome().status == 0)
    let bytes = try Data(contentsOf: URL(filePath: zip))
    for name in ["call.take", "findings.json", "findings.txt", "call.html", "README.txt"] {
      #expect(bytes.range(of: Data(name.utf8)) != nil, "\(name)")
    }
  }
}

/// A secret in the encodings that takes use.
private struct Forms {
  private let all: [Data]

  init(_ secret: String) {
    let bytes = Array(secret.utf8)
    var forms = [
      Data(bytes), Data(bytes.flatMap { [$0, 0] }), Data(hexadecimal(bytes).utf8),
      Data(hexadecimal(bytes).uppercased().utf8),
    ]
    for skipped in 0..<3 where bytes.count >= skipped + 6 {
      let whole = bytes.dropFirst(skipped)
      forms.append(Data(Data(whole.prefix(whole.count / 3 * 3)).base64EncodedString().utf8))
    }
    all = forms
  }

  /// Returns where a take contains the secret, in its file or in its values; nil if it does not.
  func place(in take: String) throws -> String? {
    let file = try Data(contentsOf: URL(filePath: take))
    if all.contains(where: { file.range(of: $0) != nil }) { return "file" }
    let reader = try TapeReader(path: take)
    while let chunk = try reader.chunk() {
      for row in 0..<chunk.rows.count {
        for value in chunk.rows.row(row) {
          let data: Data
          switch value {
          case .text(let text): data = Data(text.utf8)
          case .blob(let bytes): data = Data(bytes)
          default: continue
          }
          if all.contains(where: { data.range(of: $0) != nil }) {
            return chunk.rows.table(row).name
          }
        }
      }
    }
    return nil
  }
}

/// A made-up browser's secrets, the same in every run.
private struct Salt {
  private(set) var secrets: [String] = []
  private var state: UInt64 = 7

  private mutating func number(_ bound: UInt64) -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 33) % bound
  }

  private mutating func word(_ count: Int, _ digits: String = "abcdefghijkmnpqrstuvwxyzACDEFHJ2345")
    -> String
  {
    let digits = Array(digits)
    return String((0..<count).map { _ in digits[Int(number(UInt64(digits.count)))] })
  }

  private mutating func kept(_ secret: String) -> String {
    secrets.append(secret)
    return secret
  }

  private mutating func ipv4() -> String {
    kept("93.\(number(150) + 100).\(number(150) + 100).\(number(150) + 100)")
  }
  private mutating func local() -> String {
    kept("192.168.\(number(150) + 100).\(number(99) + 100)")
  }
  private mutating func ipv6() -> String {
    let groups = (0..<3).map { _ in word(4, "123456789abcdef") }
    return kept("2a02:\(groups[0]):\(groups[1])::\(groups[2])")
  }
  private mutating func uuid() -> String {
    let digits = "0123456789abcdef"
    let groups = [8, 4, 3, 3, 12].map { word($0, digits) }
    return kept("\(groups[0])-\(groups[1])-4\(groups[2])-8\(groups[3])-\(groups[4])")
  }
  private mutating func fingerprint() -> String {
    kept((0..<32).map { _ in word(2, "0123456789ABCDEF") }.joined(separator: ":"))
  }

  private mutating func description() -> String {
    let (fragment, stream, track) = (kept(word(8)), uuid(), uuid())
    return [
      "v=0", "o=\(kept(word(9))) 4611731400430051336 2 IN IP4 \(ipv4())", "s=\(kept(word(12)))",
      "t=0 0", "a=group:BUNDLE 0", "a=msid-semantic: WMS \(stream)",
      "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 \(ipv4())", "a=rtcp:9 IN IP4 \(ipv4())",
      "a=candidate:1 1 udp 2122260223 \(local()) 51000 typ host generation 0 ufrag \(fragment)",
      "a=candidate:2 1 udp 2122260222 \(uuid()).local 51001 typ host",
      "a=candidate:3 1 udp 1686052607 \(ipv4()) 51002 typ srflx raddr \(local()) rport 51000",
      "a=candidate:4 1 udp 41885439 \(ipv6()) 51003 typ relay raddr \(ipv6()) rport 1",
      "a=ice-ufrag:\(fragment)", "a=ice-pwd:\(kept(word(24)))",
      "a=fingerprint:sha-256 \(fingerprint())", "a=setup:actpass", "a=mid:0", "a=sendrecv",
      "a=msid:\(stream) \(track)", "a=rtcp-mux", "a=rtpmap:111 opus/48000/2",
      "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\(kept(word(40)))",
      "a=ssrc:1234567 cname:\(kept(word(16)))", "",
    ].joined(separator: "\r\n")
  }

  /// Returns a webrtc-internals dump.
  mutating func dump() throws -> String {
    var log: [[String: String]] = []
    for time in 0..<6 {
      let offer = description()
      let candidate =
        "candidate:9 1 udp 1 \(local()) 5 typ host generation 0 ufrag \(kept(word(8)))"
      for (type, value) in [
        ("createOfferOnSuccess", "type: offer, sdp: \(offer)"),
        ("setLocalDescription", "type: offer, sdp: \(offer)"),
        ("icecandidate", "sdpMid: 0, sdpMLineIndex: 0, candidate: \(candidate)"),
        ("icecandidateerror", "url: turn:\(kept(word(14))).example:3478\naddress: \(local())"),
        ("createDataChannel", "label: \(kept(word(11))), ordered: true"),
        ("send", "Dear \(kept(word(9))), meet me at \(kept(word(10)))"),
      ] {
        log.append(["time": "\(1_700_000_000_000 + time)", "type": type, "value": value])
      }
    }
    var stats: [String: [String: String]] = [:]
    for index in 0..<10 {
      for (name, type, value) in [
        ("address", "local-candidate", local()), ("relatedAddress", "remote-candidate", ipv6()),
        ("usernameFragment", "local-candidate", kept(word(8))),
        ("fingerprint", "certificate", fingerprint()), ("trackIdentifier", "inbound-rtp", uuid()),
        ("base64Certificate", "certificate", kept(Data(word(90).utf8).base64EncodedString())),
        ("label", "data-channel", kept(word(13))),
      ] {
        stats["\(type.prefix(2))\(index)-\(name)"] = [
          "startTime": "2023-11-14T22:13:20.000Z", "endTime": "2023-11-14T22:13:21.000Z",
          "statsType": type, "values": "[\"\(value)\"]",
        ]
      }
    }
    let page = "https://\(kept(word(9))).example/\(kept(word(12)))?token=\(kept(word(32)))"
    let configuration =
      "{ iceServers: [turn:\(kept(word(12))).example:3478, username: \(kept(word(14))), "
      + "credential: \(kept(word(22)))], iceTransportPolicy: all }"
    let value: [String: Any] = [
      "PeerConnections": [
        "17-1": [
          "pid": 17, "rid": 1, "url": page, "rtcConfiguration": configuration, "constraints": "",
          "updateLog": log, "stats": stats,
        ] as [String: Any]
      ],
      "UserAgent": kept("Mozilla/5.0 (X11; \(word(9))) Browser/\(word(8))"),
    ]
    let data = try JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
    return String(decoding: data, as: UTF8.self)
  }
}
