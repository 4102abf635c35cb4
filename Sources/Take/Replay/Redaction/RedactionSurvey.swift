import FoundationEssentials
import ICE
import Peer
import Secure
import Tape
import Wire

/// Facts about a take that must be known before its first row is redacted, such as certificates,
/// keys, passwords, payload types and addresses.
struct RedactionSurvey {
  /// A DTLS association whose keys are known.
  ///
  /// An endpoint's association is described by its `secured` and `keylog` events. For an observed
  /// association (peer 0), the master secret is in a key log.
  struct Association {
    var peer: UInt32
    var secrets: DTLSSecrets
    var cipherSuite: String
    var profile: String
    var role: String
  }

  private(set) var associations: [Association] = []
  private(set) var payloadTypes = PayloadTypeNames()
  let secrets = STUNSecrets()
  /// The actors' seeds by actor number.
  private(set) var seeds: [UInt32: [UInt8]] = [:]
  /// The bytes that actors draw first, in a take that was already redacted.
  private(set) var scripts: [UInt32: [String: String]] = [:]
  /// The actors that only contain the reports of other stacks.
  private var reporters: Set<UInt32> = []
  private var secured: [UInt32: SecuredText] = [:]
  /// Facts about observed calls: the two addresses by path number, the hello messages by these
  /// addresses, and the master secrets by client random.
  private var paths: [Int64: [String]] = [:]
  private var hellos: [[String]: HandshakeText.Hellos] = [:]
  private var seen: [HandshakeText.Hellos] = []
  private var masters: [[UInt8]: [UInt8]] = [:]
  /// The contents of key logs, and the hello messages of observed DTLS 1.3 associations.
  private(set) var keyLogs: [String] = []
  var hellosOfVersion13: [HandshakeText.Hellos] {
    seen.filter { ($0.suite ?? 0) >> 8 == 0x13 }
  }
  /// The SRTP keys as users typed them, and the crypto attributes in descriptions.
  private(set) var srtpKeys: Set<String> = []
  private(set) var cryptoAttributes: Set<String> = []
  /// The maximum number of crypto attributes or SRTP keys, because each is tried on every packet.
  private static let keyMaximum = 256

  init(path: String, _ text: RedactedText) throws(TapeError) {
    let reader = try TapeReader(path: path)
    while let chunk = try reader.chunk() {
      for step in chunk.steps {
        for row in step.rows { learn(chunk.rows, row, step.head.actor, text) }
      }
    }
    for hello in seen {
      guard let client = hello.clientRandom, let server = hello.serverRandom,
        let master = masters[client]
      else { continue }
      associations.append(
        Association(
          peer: 0,
          secrets: DTLSSecrets(
            clientRandom: client, serverRandom: server, masterSecret: master),
          cipherSuite: hello.suiteName, profile: hello.profileName,
          role: DTLSRole.server.rawValue))
    }
  }

  /// Records the master secrets in a key log.
  private mutating func learn(keyLog text: String) {
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      guard words.count == 3, words[0] == "CLIENT_RANDOM",
        let random = [UInt8](hexadecimal: words[1].utf8),
        let master = [UInt8](hexadecimal: words[2].utf8)
      else { continue }
      masters[random] = master
    }
  }

  /// Records the hello messages in a packet of an observed call.
  private mutating func learn(seen packet: PacketRow) {
    guard let ends = paths[packet.path.number], DatagramClass(packet.bytes.span.bytes) == .dtls
    else { return }
    if hellos[ends, default: HandshakeText.Hellos()].learn(packet.bytes), let found = hellos[ends],
      !seen.contains(where: { $0.serverRandom == found.serverRandom })
    {
      seen.append(found)
    }
  }

  private mutating func learn(
    _ rows: RowList, _ row: Int, _ actor: UInt32, _ text: RedactedText
  ) {
    switch rows.table(row) {
    case .peer:
      guard let peer = PeerRow(rows, row) else { return }
      if !peer.seed.isEmpty { seeds[actor] = peer.seed }
      let configuration = CanonicalJSON.value(
        PeerConfiguration.self, from: peer.configuration)
      scripts[actor] = configuration?.drawnBytes
      for server in configuration?.iceServers ?? [] {
        guard let name = server.username, let password = server.credential else { continue }
        secrets.add(name: name, password: password)
      }
    case .actor:
      guard let found = ActorRow(rows, row) else { return }
      if !found.seed.isEmpty { seeds[actor] = found.seed }
      if found.kind == MachineKind.reported.rawValue { reporters.insert(actor) }
    case .event:
      if let event = EventRow(rows, row) { learn(event, text) }
    case .stat:
      guard let stat = StatRow(rows, row) else { return }
      if reporters.contains(actor) { text.standIns.objects.insert(stat.id) }
      guard stat.type == "certificate" else { return }
      let member = CanonicalJSON.value(StatCertificate.self, from: stat.members)
      if let certificate = member?.base64Certificate { text.certificate(certificate) }
    case .callRequest:
      guard let call = CallRequestRow(rows, row) else { return }
      if call.name == "keyLog" || call.name == "srtpKey",
        let values = CanonicalJSON.value([String: String].self, from: call.arguments)
      {
        for value in values.values {
          if call.name == "keyLog" {
            learn(keyLog: value)
            keyLogs.append(value)
          } else if srtpKeys.count < Self.keyMaximum {
            srtpKeys.insert(value)
          }
        }
      }
      describe(call.arguments, call.peer.number)
    case .callReply:
      if let reply = CallReplyRow(rows, row)?.reply { describe(reply, 0) }
    case .signaling:
      if let message = SignalingRow(rows, row) {
        describe(message.message, message.peer.number)
      }
    case .track:
      if let track = TrackRow(rows, row), !track.codec.isEmpty {
        payloadTypes.add(track.payloadType, track.codec, peer: track.peer.number)
      }
    case .packet:
      guard let packet = PacketRow(rows, row) else { return }
      learn(packet.bytes, text)
      learn(seen: packet)
    case .path:
      if let path = PathRow(rows, row), path.peer.number == 0 {
        paths[path.number] = [path.local, path.remote].sorted()
      }
    default: break
    }
  }

  private struct StatCertificate: Decodable {
    var base64Certificate: String?
  }

  private mutating func learn(_ event: EventRow, _ text: RedactedText) {
    switch event.type {
    case "certificate":
      if let made = CanonicalJSON.value(CertificateText.self, from: event.detail) {
        text.certificate(Data(made.bytes).base64EncodedString())
      }
    case "secured":
      secured[event.peer.number] = CanonicalJSON.value(SecuredText.self, from: event.detail)
    case "keylog":
      guard let log = CanonicalJSON.value(KeyLogText.self, from: event.detail)?.log else { return }
      for certificate in [log.localCertificate, log.remoteCertificate] + log.remoteIssuers {
        text.certificate(Data(certificate).base64EncodedString())
      }
      guard let secured = secured[event.peer.number] else { return }
      associations.append(
        Association(
          peer: event.peer.number, secrets: log.secrets, cipherSuite: secured.cipherSuite,
          profile: secured.profile, role: secured.role))
    default: describe(event.detail, event.peer.number)
    }
  }

  /// Records passwords, keys and payload types from text that may contain descriptions.
  private mutating func describe(_ text: String, _ peer: UInt32) {
    for word in RedactionSurvey.words(after: "ice-pwd:", in: text) { secrets.add(password: word) }
    guard text.contains("rtpmap:") || text.contains("crypto:") else { return }
    let lines = text.replacing("\\r\\n", with: "\n").replacing("\\n", with: "\n")
      .replacing("\\/", with: "/")
    for line in lines.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("a=crypto:"), cryptoAttributes.count < Self.keyMaximum {
        // In JSON, the attribute may be the last one before the closing quotation mark.
        cryptoAttributes.insert(String(line.dropFirst(9).prefix { $0 != "\"" }))
      }
      let fields = line.split(separator: " ")
      guard fields.count > 1, let colon = fields[0].firstIndex(of: ":"),
        let type = UInt8(fields[0][fields[0].index(after: colon)...])
      else { continue }
      if fields[0].hasPrefix("a=rtpmap:") {
        payloadTypes.add(type, String(fields[1].prefix { $0 != "/" }), peer: peer)
      } else if fields[0].hasPrefix("a=fmtp:"), fields[1].hasPrefix("apt="),
        let apt = UInt8(fields[1].dropFirst(4).prefix { $0.isNumber })
      {
        payloadTypes.add(type, apt: apt, peer: peer)
      }
    }
  }

  /// Returns the words after each occurrence of a name; a word ends before the first character that
  /// is not an ice-char (RFC 8839 section 5.4).
  private static func words(after name: String, in text: String) -> [String] {
    var found: [String] = []
    var rest = text[...]
    while let place = rest.firstRange(of: name) {
      rest = rest[place.upperBound...]
      let word = rest.utf8.prefix {
        StandIns.isWordByte($0) && $0 < 0x80 && $0 != UInt8(ascii: "_") && $0 != UInt8(ascii: "-")
      }
      if !word.isEmpty { found.append(String(decoding: word, as: UTF8.self)) }
    }
    return found
  }

  /// Records the addresses that a STUN or TURN message contains.
  private func learn(_ bytes: [UInt8], _ text: RedactedText) {
    guard let first = bytes.first, first < 4, let message = try? STUNMessage(bytes) else { return }
    for attribute in message.attributes {
      let value = Array(bytes[attribute.range])
      let masked = SocketAddress(stun: value.span.bytes, maskedBy: message.transactionID)
      switch attribute.type {
      case .xorMappedAddress, .xorPeerAddress, .xorRelayedAddress:
        if let masked { text.standIns.learn(masked.ip) }
      case .mappedAddress, .alternateServer:
        if let end = SocketAddress(stun: value.span.bytes, maskedBy: nil) {
          text.standIns.learn(end.ip)
        }
      default: break
      }
    }
  }
}

// MARK: - DrawnBytes

/// The bytes that a machine drew from its random streams, which replace the seed in a redacted
/// take.
///
/// Random numbers are kept, because the remote peer's packets contain them too. The random bytes
/// behind names and passwords are replaced with bytes that generate the stand-ins.
struct DrawnBytes {
  /// The drawn bytes in hexadecimal, by the label of their stream.
  private(set) var scripts: [String: String] = [:]

  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// - Parameter drawn: the number of bytes drawn from each stream.
  init(
    seed: [UInt8], after scripts: [String: String], drawn: [(stream: String, bytes: UInt64)],
    _ standIns: StandIns
  ) {
    for (label, count) in drawn where count > 0 && !label.hasPrefix("dtls") {
      guard let stream = DrawnBytes.stream(label, Entropy(seed: seed, scripts: scripts)) else {
        continue
      }
      var bytes = stream.bytes(Int(min(count, 64 << 20)))
      if !label.hasPrefix("rtp"), !label.hasPrefix("sctp") {
        DrawnBytes.rename(&bytes, standIns)
      }
      self.scripts[label] = hexadecimal(bytes)
    }
  }

  /// Returns the random stream with the given label; nil if the label is unknown.
  private static func stream(_ label: String, _ entropy: Entropy) -> EntropyStream? {
    let parts = label.split(separator: " ")
    let number = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    return switch parts.first {
    case "ice": entropy.stream("ice", number: number)
    case "rtp": entropy.stream("rtp", number: number)
    case "jsep": entropy.stream("jsep")
    case "sctp": entropy.stream("sctp")
    case "stats": entropy.stream("stats")
    case "cname": entropy.stream("cname")
    case "parameters": entropy.stream("parameters")
    case "signaling": entropy.stream("signaling")
    default: nil
    }
  }

  /// Finds the random bytes that names were generated from, and replaces them with bytes that
  /// generate the stand-ins.
  private static func rename(_ bytes: inout [UInt8], _ standIns: StandIns) {
    for start in bytes.indices {
      for length in [8, 16, 24] where start + length <= bytes.count {
        let name = bytes[start..<start + length].map { alphabet[Int($0 & 63)] }
        guard let new = standIns.known(String(decoding: name, as: UTF8.self)) else { continue }
        for (index, digit) in zip(start..., new.utf8) {
          let value = alphabet.firstIndex(of: digit) ?? 0
          bytes[index] = bytes[index] & 0xc0 | UInt8(value)
        }
      }
      guard start + 16 <= bytes.count else { continue }
      guard let new = standIns.known(uuid(bytes[start..<start + 16])),
        let made = [UInt8](hexadecimal: new.utf8.filter { $0 != UInt8(ascii: "-") }),
        made.count == 16
      else { continue }
      bytes.replaceSubrange(start..<start + 16, with: made)
    }
  }

  private static func uuid(_ bytes: ArraySlice<UInt8>) -> String {
    var bytes = Array(bytes)
    bytes[6] = bytes[6] & 0x0f | 0x40
    bytes[8] = bytes[8] & 0x3f | 0x80
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { hexadecimal(Array(bytes[$0])) }
      .joined(separator: "-")
  }
}
