import Foundation
import ICE
import Lab
import Media
import Peer
import SCTP
import Secure
import Tape
import Testing
import Wire

@testable import Replay

/// Redacted takes of endpoints, some behind TURN, contain none of the call's secrets.
struct SaltedCallTests {
  @Test(arguments: [false, true], [false, true])
  func nothingOfASaltedCallIsLeft(isRelayed: Bool, isOverIPv6: Bool) throws {
    let folder = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (take, new) = ("\(folder)/call.take", "\(folder)/new.take")
    var call = SaltedCall(isRelayed: isRelayed, isOverIPv6: isOverIPv6)
    try call.record(take)
    #expect(call.texts.count >= 200)
    var search = SecretSearch()
    for text in call.texts { search.add(text) }
    for bytes in call.binaries { search.add(bytes: bytes) }
    try search.addOwnSecrets(of: take)
    for address in call.addresses { search.add(address) }
    // The original contains the secrets, and the search finds them.
    #expect(try search.found(in: take).count > 200)

    let summary = try Redactor.run(
      path: take, output: new, parts: .all, secret: [UInt8](repeating: 7, count: 32))
    #expect(summary.isExecuted, "\(summary.reason ?? "")")
    let left = try search.found(in: new)
    #expect(left.isEmpty, "\(left.sorted().prefix(5))")
    let report = try replay(new, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
  }
}

/// A call with secrets of all kinds that an application hands to the stack.
private struct SaltedCall {
  let isRelayed: Bool
  let isOverIPv6: Bool
  private(set) var texts: [String] = []
  private(set) var binaries: [[UInt8]] = []
  private(set) var addresses: [IPAddress] = []
  private var entropy = Entropy(seed: [7]).stream("salt")

  init(isRelayed: Bool, isOverIPv6: Bool) {
    self.isRelayed = isRelayed
    self.isOverIPv6 = isOverIPv6
  }

  private mutating func word(_ count: Int) -> String {
    let digits = Array("abcdefghijkmnpqrstuvwxyzACDEFHJ2345")
    let text = String(
      entropy.bytes(count).map { digits[Int($0) % digits.count] })
    texts.append(text)
    return text
  }

  private mutating func address() -> IPAddress {
    let bytes = entropy.bytes(8)
    let groups = [bytes[0..<1], bytes[2..<4], bytes[4..<5]].map { hexadecimal(Array($0)) }
    let address =
      isOverIPv6
      ? IPAddress("2a02:11\(groups[0]):\(groups[1])::1\(groups[2])")
      : IPAddress("93.\(100 + bytes[0] % 150).\(100 + bytes[1] % 150).\(100 + bytes[2] % 150)")
    let given = address ?? IPAddress(ipv4: 0x5d01_0203)
    addresses.append(given)
    return given
  }

  mutating func record(_ path: String) throws {
    let (user, password) = (word(11), word(22))
    let server = SocketAddress(address(), port: 3_478)
    let host = isOverIPv6 ? "[\(server.ip)]" : "\(server.ip)"
    var configuration = PeerConfiguration()
    configuration.iceServers = [
      ICEServerConfiguration(
        urls: ["turn:\(host):3478?transport=udp"], username: user, credential: password),
      ICEServerConfiguration(urls: ["stun:\(word(12)).example:3478"]),
    ]
    if isRelayed { configuration.iceTransportPolicy = .relay }
    let recorded = try RecordedVirtualCall(
      path: path, seed: 9, links: [LinkSettings(), LinkSettings()], labels: [word(9), word(9)],
      label: word(14), tags: [word(9): word(9)], configurations: [configuration, configuration])
    let call = recorded.call
    call.network.server = VirtualTURNServer(address: server)
    call.network.server?.username = user
    call.network.server?.password = password
    for peer in 0..<2 {
      call.step(peer, .interfaces([address()]))
      let streams = [word(15), word(15)]
      call.call(
        peer,
        .addTrack(
          kind: .audio, streamIDs: streams, source: .tone(hertz: 440, pauseSeconds: 0),
          trackID: word(16)))
      call.call(
        peer,
        .addTrack(
          kind: .video, streamIDs: streams,
          source: .pattern(width: 96, height: 64, framesPerSecond: 10), trackID: word(16)))
      for _ in 0..<3 {
        call.call(
          peer,
          .createDataChannel(DataChannelInit(label: word(13), protocol: word(10))))
      }
    }
    #expect(call.negotiate(gatheringTime: .milliseconds(300)) == nil)
    recorded.run(for: .seconds(2))
    for index in 0..<90 {
      for peer in 0..<2 {
        if index % 3 == 2 {
          let bytes = entropy.bytes(40)
          binaries.append(bytes)
          call.send(peer, DataMessage(channel: 1, isBinary: true, bytes: bytes))
        } else {
          let text = "Dear \(word(9)), meet me at \(word(10))"
          call.send(peer, DataMessage(channel: 2, isBinary: false, bytes: Array(text.utf8)))
        }
      }
      if index % 10 == 0 { recorded.run(for: .milliseconds(100)) }
    }
    recorded.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > 5)
    }
    _ = try recorded.finish()
  }
}

/// Looks for secrets in every value of a take and in its file, in the forms that they can have.
private struct SecretSearch {
  /// Forms of secrets of eight bytes or more, by their first eight.
  private var forms: [UInt64: [(form: [UInt8], name: String)]] = [:]
  private var addresses: Set<IPAddress> = []

  mutating func add(_ text: String) {
    let bytes = Array(text.utf8)
    add(bytes: bytes, name: text)
    insert(bytes.flatMap { [$0, 0] }, text)
  }

  mutating func add(bytes: [UInt8], name: String? = nil) {
    let name = name ?? hexadecimal(bytes)
    insert(bytes, name)
    insert(Array(hexadecimal(bytes).utf8), name)
    insert(Array(hexadecimal(bytes).uppercased().utf8), name)
    let pairs = bytes.map { hexadecimal([$0]).uppercased() }.joined(separator: ":")
    insert(Array(pairs.utf8), name)
    for skipped in 0..<3 where bytes.count >= skipped + 6 {
      let rest = bytes.dropFirst(skipped)
      let text = Data(rest.prefix(rest.count / 3 * 3)).base64EncodedString()
      insert(Array(text.utf8), name)
    }
  }

  mutating func add(_ address: IPAddress) {
    addresses.insert(address)
    if address.description.utf8.count >= 8 { insert(Array(address.description.utf8), "\(address)") }
    if !address.isIPv4 { add(bytes: address.bytes, name: "\(address)") }
  }

  private mutating func insert(_ form: [UInt8], _ name: String) {
    guard form.count >= 8 else { return }
    forms[Self.head(form[0..<8]), default: []].append((form, name))
  }

  private static func head(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Adds the secrets that a call generates (passwords, names, keys, certificates, seeds), and the
  /// call's media.
  mutating func addOwnSecrets(of take: String) throws {
    let connection = try TakeFile.open(take)
    for query in [
      "SELECT DISTINCT username_fragment FROM candidate WHERE username_fragment IS NOT NULL",
      "SELECT DISTINCT detail ->> '$.remoteFingerprint' FROM event WHERE type = 'secured'",
      "SELECT DISTINCT detail ->> '$.masterSecret' FROM event WHERE type = 'keylog'",
      "SELECT DISTINCT fields ->> '$.chunks[0].cname' FROM rtcp WHERE type = 'sdes'",
    ] {
      let rows = try connection.prepare(query)
      while try rows.step() { if let text = rows.text(0) { add(text) } }
    }
    let reader = try TapeReader(path: take)
    while let chunk = try reader.chunk() {
      for row in 0..<chunk.rows.count {
        switch chunk.rows.table(row) {
        case .peer: if let peer = PeerRow(chunk.rows, row) { add(bytes: peer.seed) }
        case .signaling:
          guard let message = SignalingRow(chunk.rows, row)?.message else { continue }
          for line in message.replacing("\\r\\n", with: "\n").split(whereSeparator: \.isNewline)
          where line.hasPrefix("a=ice-pwd:") {
            add(String(line.dropFirst(10)))
          }
        case .frame:
          for case .blob(let bytes) in chunk.rows.row(row) where bytes.count >= 40 {
            insert(Array(bytes[20..<36]), "a frame")
          }
        default: break
        }
      }
    }
  }

  /// Returns the secrets that a take contains, each with the table that it was found in.
  func found(in take: String) throws -> Set<String> {
    var names: Set<String> = []
    func look(_ bytes: [UInt8], _ place: String) {
      guard bytes.count >= 8 else { return }
      var window = Self.head(bytes[0..<8])
      var end = 8
      while true {
        for (form, name) in forms[window] ?? []
        where bytes[(end - 8)...].starts(with: form) {
          names.insert("\(name) in \(place)")
        }
        guard end < bytes.count else { return }
        window = window << 8 | UInt64(bytes[end])
        end += 1
      }
    }
    look(Array(try Data(contentsOf: URL(filePath: take))), "the file")
    let reader = try TapeReader(path: take)
    look(Array(reader.header.label.utf8), "the label")
    while let chunk = try reader.chunk() {
      for row in 0..<chunk.rows.count {
        let table = chunk.rows.table(row)
        for value in chunk.rows.row(row) {
          switch value {
          case .text(let text): look(Array(text.utf8), table.name)
          case .blob(let bytes): look(bytes, table.name)
          default: break
          }
        }
        if let packet = PacketRow(chunk.rows, row), table == .packet {
          names.formUnion(masked(in: packet.bytes))
        }
      }
    }
    return names
  }

  /// Returns the addresses in a STUN message, masked or not, including those in data that TURN
  /// carries.
  private func masked(in bytes: [UInt8]) -> [String] {
    guard let message = try? STUNMessage(bytes) else { return [] }
    return message.attributes.flatMap { attribute -> [String] in
      let value = Array(bytes[attribute.range])
      switch attribute.type {
      case .xorMappedAddress, .xorPeerAddress, .xorRelayedAddress:
        let address = SocketAddress(stun: value.span.bytes, maskedBy: message.transactionID)
        return address.map { addresses.contains($0.ip) ? ["\($0.ip) masked"] : [] } ?? []
      case .data: return masked(in: value)
      default: return []
      }
    }
  }
}
