import Foundation
import Tape
import Wire

/// A secret in the encodings that takes use.
struct Forms {
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
struct Salt {
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

  /// Returns a log of Jitsi's client, whose connection reports once a second for five seconds.
  ///
  /// All packets after the second report are lost, and one candidate disappears.
  mutating func log(isLegacy: Bool) throws -> String {
    var lines: [[Any]] = []
    let room = kept(word(14))
    let (local, remote) = (self.local(), self.ipv4())
    let (track, name, fingerprint) = (self.uuid(), kept("Wilhelmina\(word(4))"), self.fingerprint())
    // Before 2022, all members were strings.
    func counted(_ number: Int) -> Any {
      if isLegacy { return "\(number)" }
      return number
    }
    func add(_ method: String, _ connection: String?, _ value: Any, _ at: Int) {
      lines.append([method, connection ?? NSNull(), value, 1_700_000_000_000 + at])
    }
    add(
      "connectionInfo", nil,
      [
        "path": "/\(room)", "origin": "https://\(kept(word(9))).example",
        "url": "https://\(kept(word(10))).example/\(room)?jwt=\(kept(word(40)))",
        "userAgent": kept("Mozilla/5.0 (X11; \(word(9)))"), "clientProtocol": "3_LEGACY",
      ], 0)
    add(
      "identity", nil,
      [
        "displayName": name, "userName": kept("\(word(10))@\(word(8)).example"), "confName": room,
        "endpointId": kept(word(8, "0123456789abcdef")), "deviceId": kept(word(22)),
        "hosts": ["domain": kept("\(word(9)).example"), "muc": kept("\(word(8)).example")],
        "meetingUniqueId": uuid(), "applicationName": kept(word(12)),
      ] as [String: Any], 1)
    add(
      "getUserMedia", nil,
      ["video": ["deviceId": kept(word(30))], "audio": ["sourceId": kept(word(30))]], 2)
    add(
      "getUserMediaOnSuccess", nil,
      ["id": kept(word(36)), "tracks": [["id": track, "kind": "audio", "label": kept(word(15))]]],
      3)
    add(
      "create", "PC_0",
      [
        "iceServers": [
          [
            "urls": "turns:\(kept(word(9))).example:443", "username": kept(word(16)),
            "credential": kept(word(24)),
          ]
        ], "peerIdentifier": kept("\(word(8))@\(word(9)).example/\(word(8))"),
      ], 4)
    add("addTrack", "PC_0", "audio:\(track) \(uuid())", 5)
    add("createDataChannel", "PC_0", ["0": kept(word(12)), "1": ["protocol": kept(word(9))]], 6)
    for (type, side, state) in [
      ("offer", "Remote", "have-remote-offer"), ("answer", "Local", "stable"),
    ] {
      add("set\(side)Description", "PC_0", ["type": type, "sdp": description()], 10)
      add("onsignalingstatechange", "PC_0", state, 11)
      add("set\(side)DescriptionOnSuccess", "PC_0", NSNull(), 12)
    }
    let candidate = "candidate:1 1 UDP 2122260223 \(local) 51000 typ host ufrag \(kept(word(8)))"
    add("onicecandidate", "PC_0", ["candidate": candidate, "sdpMid": "0"], 13)
    add(
      "oniceconnectionstatechange", "PC_0", isLegacy ? "ICEConnectionStateChecking" : "checking",
      20)
    add(
      "oniceconnectionstatechange", "PC_0", isLegacy ? "ICEConnectionStateConnected" : "connected",
      90)
    for second in 1...5 {
      var report = isLegacy ? legacyReport(second) : report(second, fingerprint)
      let own: [String: Any] =
        isLegacy
        ? [
          "googLocalAddress": "\(local):51000", "googRemoteAddress": "\(remote):52000",
          "localCandidateId": "Cand-removed_0", "googActiveConnection": "true",
          "googReadable": "true", "type": "googCandidatePair",
        ]
        : [
          "type": "local-candidate", "address": local, "port": 51_000, "candidateType": "host",
          "protocol": "udp", "priority": 1,
        ]
      if second == 1 {
        report[isLegacy ? "Conn-audio-1-0" : "I7Mq+HAtt"] = own
        report[isLegacy ? "ssrc_77_recv" : "IT01A77"] = [
          "type": isLegacy ? "ssrc" : "inbound-rtp", "ssrc": counted(77),
          "mediaType": "audio", "googTrackId": track, "trackIdentifier": track,
          "codecId": "COT01_111_minptime=10;useinbandfec=1;level=abcdefgh",
          "packetsReceived": counted(50), "packetsLost": counted(0),
          "totalAudioEnergy": isLegacy ? "1e-05" : "0.00001", "totalSamplesDuration": counted(1),
        ]
        report["Stream_\(name)_1"] = ["type": "stream", "streamIdentifier": kept(word(36))]
      } else {
        let (received, lost) = (50 * min(second, 2), 50 * max(0, second - 2))
        report[isLegacy ? "ssrc_77_recv" : "IT01A77"] = [
          "packetsReceived": counted(received), "packetsLost": counted(lost),
          "totalAudioEnergy": isLegacy ? "\(second)e-05" : "0.0000\(second)",
          "totalSamplesDuration": counted(second),
        ]
        report[isLegacy ? "Conn-audio-1-0" : "I7Mq+HAtt"] = [String: Any]()
      }
      report["timestamp"] = 1_700_000_000_000 + 1000 * second
      add("getstats", "PC_0", report, 1000 * second)
    }
    add(
      "dominantSpeakerChanged", nil,
      [
        "dominantSpeakerEndpoint": kept(word(8, "0123456789abcdef")),
        "previousSpeakers": [kept(word(12))],
      ] as [String: Any], 5001)
    add(
      "logs", nil,
      [["text": "<\(kept(word(12)))>: \(name) joined \(room) from \(remote)", "count": 1]], 5002)
    add("endpointStats", nil, "{\"from\":\"\(kept(word(9)))\",\"e2eRtt\":5}", 5003)
    add("oniceconnectionstatechange", "PC_0", "disconnected", 5100)
    add("oniceconnectionstatechange", "PC_0", "failed", 9100)
    return try lines.map {
      String(
        decoding: try JSONSerialization.data(withJSONObject: $0, options: .sortedKeys),
        as: UTF8.self)
    }.joined(separator: "\n")
  }

  /// Returns the changes of one second in a report in W3C form.
  private mutating func report(_ second: Int, _ fingerprint: String) -> [String: Any] {
    // Objects that did not change are listed without members.
    guard second == 1 else {
      var report: [String: Any] = [:]
      for id in [
        "CF\(fingerprint)", "CP7Mq+HAtt_9Idz8Xzg", "I9Idz8Xzg", "D1", "T01",
        "COT01_111_minptime=10;useinbandfec=1;level=abcdefgh",
      ] { report[id] = [String: Any]() }
      if second < 4 { report["CPR7D4HGGR_9Idz8Xzg"] = ["requestsSent": second] }
      return report
    }
    return [
      "CF\(fingerprint)": [
        "type": "certificate", "fingerprint": fingerprint, "fingerprintAlgorithm": "sha-256",
        "base64Certificate": kept(Data(word(90).utf8).base64EncodedString()),
      ],
      "CP7Mq+HAtt_9Idz8Xzg": [
        "type": "candidate-pair", "localCandidateId": "I7Mq+HAtt", "nominated": true,
        "remoteCandidateId": "I9Idz8Xzg", "state": "succeeded", "transportId": "T01",
      ],
      "CPR7D4HGGR_9Idz8Xzg": [
        "type": "candidate-pair", "localCandidateId": "I7Mq+HAtt", "nominated": false,
        "remoteCandidateId": "I9Idz8Xzg", "state": "inprogress", "transportId": "T01",
      ],
      "I9Idz8Xzg": [
        "type": "remote-candidate", "address": ipv6(), "port": 5,
        "candidateType": "serverreflexive",
        "usernameFragment": kept(word(8)), "url": "turn:\(kept(word(9))).example:3478",
      ],
      "D1": ["type": "data-channel", "label": kept(word(12)), "state": "open"],
      "T01": [
        "type": "transport", "dtlsState": "connected",
        "selectedCandidatePairId":
          "CP7Mq+HAtt_9Idz8Xzg", "localCertificateId": "CF\(fingerprint)",
        "iceLocalUsernameFragment": kept(word(8)),
      ],
      "COT01_111_minptime=10;useinbandfec=1;level=abcdefgh": [
        "type": "codec", "mimeType": "audio/opus", "payloadType": 111, "clockRate": 48_000,
      ],
    ]
  }

  /// Returns a second's report in the form before 2022, in which all values are strings.
  private mutating func legacyReport(_ second: Int) -> [String: Any] {
    let certificate = "googCertificate_AB:CD"
    let codec = "COT01_111_minptime=10;useinbandfec=1;level=abcdefgh"
    guard second == 1 else {
      var report: [String: Any] = [
        certificate: [String: Any](), codec: [String: Any](),
        "bweforvideo": ["googTransmitBitrate": "\(second)"],
      ]
      if second < 4 { report["Cand-removed_0"] = [String: Any]() }
      return report
    }
    return [
      certificate: [
        "type": "googCertificate", "googFingerprint": fingerprint(),
        "googDerBase64": kept(Data(word(60).utf8).base64EncodedString()),
      ],
      codec: ["type": "codec", "mimeType": "audio/opus"],
      "bweforvideo": ["type": "VideoBwe", "googTransmitBitrate": "0"],
      "Cand-removed_0": [
        "type": "remotecandidate", "ipAddress": ipv4(), "portNumber": "5", "transport": "udp",
        "candidateType": "stun", "priority": "1",
      ],
    ]
  }

  /// Returns a webrtc-internals dump with secrets in every kind of entry.
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
