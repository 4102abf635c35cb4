import Foundation
import Secure
import Tape
import Testing
import Wire

/// Redacted takes contain nothing secret of the original, and replay as promised.
struct RedactTests {
  /// Redacts a take, requiring success; returns the command's output.
  private func redact(_ take: String, _ out: String, _ options: String...) async throws -> String {
    let outcome = try await Tool.run(["redact", take, "--out", out] + options)
    try #require(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    return outcome.output
  }

  /// A call between two Retake peers still replays completely without its keys, using the take's
  /// DTLS results and frames.
  @Test func aCallWithoutItsKeysIsExecutedStill() async throws {
    let folder = try Folder()
    let call = try await Takes.lossyCall().path
    let public_ = folder.file("public.take")
    let said = try await redact(call, public_)
    #expect(!said.contains("it cannot be replayed"), "\(said)")
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

  /// Observed calls still replay completely, too: their packets are protected again under other
  /// keys, including those of DTLS 1.3, whose handshake is encrypted.
  @Test(arguments: ["observed-firefox", "observed-aiortc"])
  func aCallBetweenOthersIsExecutedStill(name: String) async throws {
    let folder = try Folder()
    let (call, new) = (Exports.capture(name), folder.file("new.take"))
    let said = try await redact(call, new)
    #expect(!said.contains("it cannot be replayed"), "\(said)")
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
    #expect(!said.contains("it cannot be replayed"), "\(said)")
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

  /// Redaction removes every secret that was planted in a browser's report.
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
    // The search is able to find secrets: it finds them in the original.
    #expect(try salt.secrets.filter { try Forms($0).place(in: take) != nil }.count > 100)
  }

  /// A Jitsi client log, whose reports contain only changes, yields the same rows after redaction,
  /// with current browser statistics and with those from before 2022.
  @Test(arguments: [true, false])
  func aSaltedLogOfJitsiFoldsIntoTheSameRows(isLegacy: Bool) async throws {
    let folder = try Folder()
    var salt = Salt()
    let log = folder.file("log.jsonl")
    try salt.log(isLegacy: isLegacy).write(toFile: log, atomically: true, encoding: .utf8)
    #expect(salt.secrets.count >= 70)
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let imported = try await Tool.run("import", log, "--as", "jitsi", "--out", take)
    try #require(imported.status == 0, "\(imported.errors)")
    let said = try await redact(take, new)
    #expect(!said.contains("it cannot be replayed"), "\(said)")
    let replay = try await Tool.run("replay", new)
    #expect(replay.output.contains("the reports give the same rows"), "\(replay.output)")
    for secret in salt.secrets {
      #expect(try Forms(secret).place(in: new) == nil, "\(secret)")
    }
    #expect(try salt.secrets.filter { try Forms($0).place(in: take) != nil }.count > 40)
    for question in [
      "SELECT count(*) FROM stat", "SELECT count(DISTINCT id) FROM stat",
      "SELECT count(*) FROM state", "SELECT count(*) FROM candidate",
      "SELECT count(*) FROM selected_pair",
      "SELECT sum(members ->> '$.packetsReceived') FROM stat WHERE type = 'inbound-rtp'",
      "SELECT count(*) FROM level", "SELECT sum(energy) FROM level",
      "SELECT sum(json_array_length(reply, '$.gone')) FROM call_reply WHERE reply LIKE '{%'",
      "SELECT count(*) FROM stat AS s JOIN stat AS o ON o.id = s.members ->> '$.localCandidateId'",
      "SELECT count(*) FROM stat AS s JOIN stat AS o ON o.id = s.members ->> '$.codecId'",
    ] {
      let before = try Takes.number(take, question)
      #expect(try before > 0 && before == Takes.number(new, question), "\(question)")
    }
    #expect(try await found(in: take) == found(in: new))
    #expect(try await found(in: take).count > 1)
  }

  /// Returns what `findings` says about a take, apart from names.
  private func found(in take: String) async throws -> [String] {
    let said = try await Tool.run("findings", take, "--json")
    let value = try JSONSerialization.jsonObject(with: Data(said.output.utf8)) as? [String: Any]
    return (value?["findings"] as? [[String: Any]] ?? []).map {
      "\($0["id"] ?? "") \($0["severity"] ?? "") \($0["from_ns"] ?? "") \($0["to_ns"] ?? "")"
    }
  }

  // MARK: SRTP keys of descriptions

  /// A call whose description has SRTP keys, in every suite, and with key identifiers (MKI): its
  /// packets are protected again under other keys with the same identifiers.
  @Test(arguments: [
    ("AES_CM_128_HMAC_SHA1_80", 1), ("AES_CM_128_HMAC_SHA1_80", 2), ("AES_CM_128_HMAC_SHA1_32", 0),
    ("AES_256_CM_HMAC_SHA1_80", 1), ("AEAD_AES_256_GCM", 2), ("AES_192_CM_HMAC_SHA1_32", 0),
    ("AES_CM_128_HMAC_SHA1_32", 1), ("AES_256_CM_HMAC_SHA1_32", 2),
  ])
  func aCallWithKeysOfADescriptionIsExecutedStill(suite: String, identified: Int) async throws {
    let folder = try Folder()
    let known = try #require(SRTPSuite(rawValue: suite))
    let keys = [11, 12].map { seed in
      (0..<known.keyLength + known.saltLength).map { UInt8(truncatingIfNeeded: seed * ($0 + 7)) }
    }
    let senders = try keys.enumerated().map { place, key in
      try SRTPReprotection(
        known, old: key, new: key, identifier: identified > 0 ? [0, 0, 0, UInt8(place + 1)] : [])
    }
    let inline = keys.prefix(max(identified, 1)).enumerated().map { place, key in
      "inline:" + Data(key).base64EncodedString() + (identified > 0 ? "|2^20|\(place + 1):4" : "")
    }
    let body =
      "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=-\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\n"
      + "m=audio 1025 RTP/SAVP 0\r\na=crypto:1 \(suite) \(inline.joined(separator: ";"))\r\n"
    var capture = Capture()
    for number in 0..<200 {
      let sender = senders[number < 100 ? 0 : max(identified, 1) - 1]
      var packet = Capture.rtp(number)
      if number % 50 == 49 { packet = [0x80, 201, 0, 1, 0, 0, 0, 7] }
      try sender.protect(&packet, isRTCP: number % 50 == 49)
      capture.add(Capture.udp(packet, from: 1), at: Int64(number + 1) * 20_000_000)
    }
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let made = try await Tool.run(
      "import", try folder.write("call.pcap", capture.pcap), "--out", take, "--sdp",
      try folder.write("offer.sdp", Array(body.utf8)))
    #expect(made.output.contains("(200 in the clear)"), "\(made.output) \(made.errors)")
    let said = try await redact(take, new)
    #expect(!said.contains("it cannot be replayed"), "\(said)")
    try await Takes.expectIdentical(new)
    for question in [
      "SELECT count(*) FROM frame", "SELECT count(*) FROM rtcp", "SELECT sum(size) FROM packet",
      "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND sequence IS NOT NULL",
    ] {
      let before = try Takes.number(take, question)
      #expect(try before > 0 && before == Takes.number(new, question), "\(question)")
    }
    for key in keys {
      #expect(try Forms(Data(key).base64EncodedString()).place(in: new) == nil)
    }
  }

  // MARK: Relays

  /// Removing names keeps the ICE username fragments that a relay's observer is configured with,
  /// because they are not names.
  @Test(arguments: ["Captures/relayed-janus.take", "Captures/formats/format-8.take"])
  func aRelayedCallWithoutItsNamesIsExecutedStill(take: String) async throws {
    let folder = try Folder()
    let (take, new) = (DebugTests.root.appending(path: take).path, folder.file("new.take"))
    let said = try await redact(take, new, "--remove", "names")
    #expect(said.contains("in a replay all of it is executed"), "\(said)")
    let fragments = "SELECT CAST(group_concat(username_fragment) AS BLOB) FROM candidate"
    #expect(try Takes.bytes(take, fragments) == Takes.bytes(new, fragments))
  }

  /// A relay forwards SCTP in the clear; only the parts to be removed are replaced.
  @Test(arguments: ["addresses", "names", "messages", "media,keys,addresses,names,messages"])
  func theDataChannelsOfARelayedCallStay(parts: String) async throws {
    let folder = try Folder()
    let take = DebugTests.root.appending(path: "Captures/relayed-chromium.take").path
    let new = folder.file("new.take")
    let outcome = try await Tool.run("redact", take, "--out", new, "--remove", parts, "--json")
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("\"executed\":true"), "\(outcome.output)")
    let messages = "SELECT count(*) * 100000 + sum(size) FROM message"
    #expect(try Takes.number(take, messages) == Takes.number(new, messages))
    let first = "SELECT digest FROM message ORDER BY row LIMIT 1"
    let isKept = try Takes.bytes(take, first) == Takes.bytes(new, first)
    #expect(isKept == !parts.contains("messages"))
  }

  // MARK: Names and bundles

  /// A name within longer words is replaced there too, and the redacted take still replays.
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

  /// A name that an application uses as a key, and nowhere else, is replaced like a value.
  @Test(arguments: ["Alice Smith", "Zo\u{eb}bella"])
  func namesAsKeysAreReplaced(name: String) async throws {
    let folder = try Folder()
    let dump = folder.file("log.jsonl")
    let lines = [
      #"["create","PC_0",{},1700000000000]"#,
      #"[":log","PC_0",{"\#(name)":1,"otherKey":2},1700000000100]"#,
    ]
    try lines.joined(separator: "\n").write(toFile: dump, atomically: true, encoding: .utf8)
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let imported = try await Tool.run("import", dump, "--out", take)
    try #require(imported.status == 0, "\(imported.errors)")
    _ = try await redact(take, new)
    #expect(try await Tool.run("replay", new).status == 0)
    #expect(try Forms(name).place(in: take) != nil)
    #expect(try Forms(name).place(in: new) == nil)
    #expect(try Forms("otherKey").place(in: new) != nil)
  }

  @Test func onlyHexadecimalDigitsBetweenColonsAreAFingerprint() async throws {
    let folder = try Folder()
    let fingerprint = "0a:2f:54:79:9e:c3:e8:0d:32:57:7c:a1:c6:eb:10:35"
    let words = "xy:zu:ko:xy:zu:ko:xy:zu:ko:xy:zu:ko:xy:zu:ko:mn"
    let dump = folder.file("log.jsonl")
    let lines = [
      #"["create","PC_0",{},1700000000000]"#,
      #"[":log","PC_0","\#(fingerprint)",1700000000100]"#,
      #"[":log","PC_0","\#(words)",1700000000200]"#,
    ]
    try lines.joined(separator: "\n").write(toFile: dump, atomically: true, encoding: .utf8)
    let (take, new) = (folder.file("call.take"), folder.file("new.take"))
    let imported = try await Tool.run("import", dump, "--out", take)
    try #require(imported.status == 0, "\(imported.errors)")
    _ = try await redact(take, new, "--remove", "keys")
    #expect(try Forms(fingerprint).place(in: new) == nil)
    #expect(try Forms(words).place(in: new) != nil)
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
