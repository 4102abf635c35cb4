import Crypto
import FoundationEssentials
import Tape
import Wire

/// Replaces names, secrets and addresses in text such as descriptions, JSON, URLs and chat
/// messages.
///
/// `value` is for text from outside, and redacts everything that is not known to be harmless.
/// `free` is for Retake's own text, and redacts only addresses and what was replaced elsewhere.
struct RedactedText {
  let standIns: StandIns
  /// The kind of author, which determines what is kept of a text unless the text's JSON key does.
  enum Author {
    case anybody
    /// An application that calls one of Retake's machines; API names are kept.
    case caller
    /// One of Retake's machines, which only repeats names from its inputs.
    case machine
  }
  private var author = Author.anybody

  init(standIns: StandIns) { self.standIns = standIns }

  /// Returns a copy that redacts text by another author.
  func by(_ author: Author) -> RedactedText {
    var copy = self
    copy.author = author
    return copy
  }

  private typealias Parts = Redaction.Parts

  /// JSON keys whose values are secrets, unless the values are common words.
  private static let secretKeys: Set<String> = [
    "credential", "password", "passwd", "pwd", "token", "access_token", "accesstoken", "apikey",
    "api_key", "apisecret", "api_secret", "secret", "pin", "authorization", "mastersecret",
    "clientrandom", "serverrandom", "key", "icepwd", "username", "usernamefragment", "ufrag",
    "icelocalusernamefragment", "fingerprint", "remotefingerprint", "localfingerprint", "cookie",
    "auth", "bearer", "signature", "jwt", "nonce", "admin_key", "adminkey", "_key",
    "fragments", "icetoken", "session_secret",
  ]
  /// Keys from `secretKeys` whose values are secrets even if they are common words.
  private static let surelySecretKeys: Set<String> = [
    "credential", "password", "passwd", "pwd", "token", "access_token", "accesstoken", "apikey",
    "api_key", "apisecret", "api_secret", "secret", "pin", "admin_key", "adminkey", "jwt",
  ]
  /// Keys whose values are certificates or keys in base64.
  private static let certificateKeys: Set<String> = [
    "certificate", "localcertificate", "remotecertificate", "base64certificate", "remoteissuers",
    "privatekey",
  ]
  /// Keys whose values are host names or addresses.
  private static let hostKeys: Set<String> = [
    "ip", "address", "host", "hostname", "server", "relatedaddress", "domain", "fqdn", "addr",
  ]
  /// Keys whose values are messages, such as in a chat.
  private static let messageKeys: Set<String> = [
    "text", "message", "body", "msg", "content", "payload",
  ]
  /// Keys whose values may identify a person even if they are numbers.
  private static let personalKeys: Set<String> = [
    "display", "displayname", "name", "user", "userid", "caller", "callee", "phone", "from", "to",
    "email",
  ]
  /// Keys in the JSON of Retake's machines whose values were chosen by an application or user.
  private static let chosenKeys: Set<String> = [
    "label", "protocol", "trackid", "streamids", "streamid", "id", "name", "displayname",
    "display", "room", "roomid", "extravalue", "participant", "participants", "owner", "clientid",
    "channelid", "connectionid", "uid", "device", "portname", "title", "group", "metadata",
    "remotestreamids", "cname",
  ]
  /// Keys whose values are fixed words of a format, or only distinguish objects within the take.
  private static let structuralKeys: Set<String> = [
    "format", "codec", "mimetype", "sdpfmtpline", "uri", "mid", "sdpmid", "tlsversion",
    "dtlscipher", "srtpcipher", "tlsgroup", "ciphersuite", "profile", "version", "candidatetype",
    "protocolname", "algorithm", "fingerprintalgorithm", "foundation", "relayprotocol",
    "encoderimplementation", "decoderimplementation", "contenttype", "transaction", "payloadtypes",
    "type", "kind", "state", "statstype", "event", "request", "janus", "plugin", "ptype",
    "videoroom", "audiobridge", "textroom", "echotest", "direction", "networktype", "transport",
    "readystate", "scalabilitymode", "qualitylimitationreason", "dtlsstate", "icestate", "codecs",
    "headerextensions", "notices", "decoders", "encoders",
  ]

  // MARK: Values

  /// Redacts text from outside; its JSON key, if any, shows what the text may contain.
  func value(_ text: String, key: String = "", depth: Int = 0) -> String {
    guard !text.isEmpty else { return text }
    guard depth < 8 else { return standIns.word(text, .names) }
    let name = key.lowercased()
    if name == "keylog" || text.hasPrefix("CLIENT_RANDOM ") { return keyLog(text) }
    if name == "srtpkey" { return srtpKey(text) }
    if namesObject(name), let object = object(text) { return object }
    if let shaped = shaped(text, name, depth) { return shaped }
    if RedactedText.certificateKeys.contains(name) { return certificate(text) }
    if name == "bytes", let data = Data(base64Encoded: text) { return bytes(data, depth) }
    if RedactedText.secretKeys.contains(name) || RedactedText.isFingerprint(text) {
      return standIns.word(
        text, .keys,
        isSecret: RedactedText.surelySecretKeys.contains(name) || RedactedText.isFingerprint(text))
    }
    if RedactedText.hostKeys.contains(name) || text.hasSuffix(".local") { return host(text) }
    if let known = standIns.known(text) { return known }
    if RedactedText.structuralKeys.contains(name) { return free(text) }
    // A stack generated this id, so it does not name a person.
    if isIdentifier(text, name), depth < 2 { return free(text) }
    if RedactedText.messageKeys.contains(name), !Vocabulary.isCommon(text) {
      return standIns.word(text, standIns.parts.contains(.names) ? .names : .messages)
    }
    if StandIns.isNumber(text), RedactedText.personalKeys.contains(name) {
      return standIns.word(text, .names, isSecret: true)
    }
    if Vocabulary.isCommon(text) || isWordOfAuthor(text, name) { return free(text) }
    return standIns.word(text, .names)
  }

  /// Returns whether the text is a fixed word of Retake or of the calling application, such as an
  /// enum case.
  private func isWordOfAuthor(_ text: String, _ key: String) -> Bool {
    guard author != .anybody, !RedactedText.chosenKeys.contains(key) else { return false }
    if author == .machine { return true }
    guard text.utf8.count <= 40 else { return false }
    var digits = 0
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "-"), UInt8(ascii: "_"):
        return true
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        digits += 1
        return digits < 4
      default: return false
      }
    }
  }

  /// Redacts text whose form shows what it is, such as a description or URL; nil for other text.
  private func shaped(_ text: String, _ name: String, _ depth: Int) -> String? {
    if text.hasPrefix("v=0") || text.hasPrefix("a=") || text.contains("\na=")
      || text.contains("\r\na=")
    {
      return sdp(text)
    }
    if text.hasPrefix("candidate:") { return candidate(text) }
    if let first = text.utf8.first(where: { $0 > 32 }),
      first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    {
      // Browsers print dictionaries without quotation marks.
      return text.contains("\"") ? json(text, depth: depth + 1) : loose(text, depth)
    }
    if text.hasPrefix("HTTP/") || text.contains(" HTTP/1.") { return http(text, depth) }
    if let list = addressList(text) { return list }
    if text.contains("://") || Self.schemes.contains(where: text.hasPrefix) {
      return url(text)
    }
    return text.contains(": ") || text.contains("\n") ? loose(text, depth) : nil
  }

  /// Redacts text such as `label: chat, ordered: true` word by word.
  ///
  /// A word that ends with a colon is the key of the words after it.
  private func loose(_ text: String, _ depth: Int) -> String {
    var made = ""
    var word = ""
    var key = ""
    func end() {
      if word.hasSuffix(":") {
        key = String(word.dropLast())
        // In a chat or a log, the word before the colon may be a person's name.
        made += standIns.word(key, .names) + ":"
      } else {
        made += value(word, key: key, depth: max(6, depth + 1))
      }
      word = ""
    }
    for character in text {
      if character.isWhitespace || ",{}[]()'\"".contains(character) {
        end()
        made.append(character)
      } else {
        word.append(character)
      }
    }
    end()
    return made
  }

  static let schemes = ["stun:", "stuns:", "turn:", "turns:"]

  /// Returns whether the text is an id that a program generated, for a stats object or in
  /// signaling.
  private func isIdentifier(_ text: String, _ key: String) -> Bool {
    guard key == "id" || key.hasSuffix("id"), author == .anybody,
      !RedactedText.namingIdentifiers.contains(where: key.hasPrefix)
    else { return false }
    return text.utf8.count < 32 && text.utf8.allSatisfy { $0 > 32 && $0 < 0x80 && $0 != 0x40 }
  }

  /// Returns whether the value of a key may be the id of a stats object.
  private func namesObject(_ key: String) -> Bool {
    guard author == .anybody, key == "gone" || key.hasSuffix("id") || key.hasSuffix("ids") else {
      return false
    }
    // Statistics had objects for tracks and streams before 2022.
    return key.hasPrefix("track") || key.hasPrefix("stream")
      || !RedactedText.namingIdentifiers.contains(where: key.hasPrefix)
  }

  /// Redacts the id of a stats object in another stack's report; nil for anything else.
  ///
  /// Ids connect objects, so an id has one replacement wherever it occurs: as a key, in a
  /// reference, among the removed objects or in a row. Programs generate ids, but some contain
  /// addresses, fingerprints or names.
  func object(_ id: String) -> String? {
    guard author == .anybody, standIns.objects.contains(id) else { return nil }
    if let known = standIns.known(id), !Vocabulary.isCommon(id) { return known }
    if let list = addressList(id) { return list }
    var made = ""
    var part = ""
    for character in id {
      if "_;=/ ".contains(character) {
        made += object(part: part) + String(character)
        part = ""
      } else {
        part.append(character)
      }
    }
    return made + object(part: part)
  }

  private func object(part: String) -> String {
    if Vocabulary.isCommon(part) { return part }
    if let known = standIns.known(part) { return known }
    for length in RedactedText.fingerprintLengths where part.utf8.count >= length {
      let fingerprint = String(part.suffix(length))
      guard RedactedText.isFingerprint(fingerprint) else { continue }
      return free(String(part.dropLast(length)))
        + standIns.word(fingerprint, .keys, isSecret: true)
    }
    if part.utf8.count >= 32 || part.contains("@") { return standIns.word(part, .names) }
    return free(part)
  }

  /// The lengths of certificate fingerprints as text, from SHA-1 to SHA-512.
  private static let fingerprintLengths = [59, 95, 143, 191]

  /// Prefixes of keys for ids that name people or their devices.
  private static let namingIdentifiers = [
    "stream", "track", "user", "channel", "room", "client", "display", "participant", "person",
    "device", "group", "tenant", "org", "endpoint", "source",
  ]

  /// Returns whether a string has the form of 16 or more bytes in hexadecimal, separated by colons.
  static func isFingerprint(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count >= 47, bytes.count % 3 == 2 else { return false }
    return bytes.indices.allSatisfy { index in
      index % 3 == 2
        ? bytes[index] == UInt8(ascii: ":")
        : Character(UnicodeScalar(bytes[index])).isHexDigit
    }
  }

  /// Redacts a certificate in base64, and registers its fingerprints' replacements.
  @discardableResult
  func certificate(_ text: String) -> String {
    guard standIns.parts.contains(.keys) else { return text }
    if let known = standIns.known(text) { return known }
    guard let data = Data(base64Encoded: text) else { return standIns.word(text, .keys) }
    let made = standIns.noise("certificate", [UInt8](data), count: data.count)
    let new = Data(made).base64EncodedString()
    standIns.register(text, as: new)
    // Descriptions contain the certificate's hash, which changes with it (RFC 8122 section 5).
    for algorithm in ["sha-1", "sha-224", "sha-256", "sha-384", "sha-512"] {
      guard let before = certificateHash(algorithm, [UInt8](data)),
        let after = certificateHash(algorithm, made)
      else { continue }
      func text(_ hash: [UInt8]) -> String {
        hash.map { hexadecimal([$0]).uppercased() }.joined(separator: ":")
      }
      standIns.register(text(before), as: text(after))
      standIns.register(text(before).lowercased(), as: text(after).lowercased())
    }
    return new
  }

  /// Redacts bytes of a connection: UTF-8 is redacted as text, anything else is overwritten.
  private func bytes(_ data: Data, _ depth: Int) -> String {
    guard let text = String(validating: [UInt8](data), as: UTF8.self) else {
      let hides = !standIns.parts.isDisjoint(with: [.keys, .addresses, .names])
      return hides
        ? Data(repeating: 0xaa, count: data.count).base64EncodedString()
        : data.base64EncodedString()
    }
    return Data(value(text, depth: depth + 1).utf8).base64EncodedString()
  }

  /// Redacts a key log, whose lines have a label, a client random and a secret.
  private func keyLog(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      guard words.count > 1 else { return String(line) }
      return ([String(words[0])] + words.dropFirst().map { standIns.word(String($0), .keys) })
        .joined(separator: " ")
    }.joined(separator: "\n")
  }

  // MARK: Free text

  /// Redacts Retake's own text: addresses, and words that were replaced elsewhere.
  func free(_ text: String) -> String {
    var text = text
    for (old, new) in standIns.phrases where text.contains(old) {
      text = text.replacing(old, with: new)
    }
    var made: [UInt8] = []
    var run: [UInt8] = []
    for byte in text.utf8 {
      if StandIns.isWordByte(byte) || Self.joining.contains(byte) {
        run.append(byte)
      } else {
        made += token(run)
        run = []
        made.append(byte)
      }
    }
    made += token(run)
    return String(decoding: made, as: UTF8.self)
  }

  private static let joining = Set(".:%@=[]".utf8)

  private func token(_ run: [UInt8]) -> [UInt8] {
    guard run.count > 1 else { return run }
    let text = String(decoding: run, as: UTF8.self)
    if let known = standIns.known(text) { return Array(known.utf8) }
    if let list = addressList(text) { return Array(list.utf8) }
    // The run is split at its first joining character, and both parts are redacted.
    if let sign = run.firstIndex(where: { Self.joining.contains($0) && $0 != UInt8(ascii: ".") }) {
      let isOpen = run[sign] == UInt8(ascii: "[")
      if isOpen, let close = run.lastIndex(of: UInt8(ascii: "]")), close > sign {
        let inner = String(decoding: run[sign + 1..<close], as: UTF8.self)
        if let ip = IPAddress(inner) {
          return Array(run[...sign]) + Array(standIns.address(ip).description.utf8)
            + token(Array(run[close...]))
        }
      }
      return token(Array(run[..<sign])) + [run[sign]] + token(Array(run[(sign + 1)...]))
    }
    if run.last == UInt8(ascii: ".") { return token(Array(run.dropLast())) + [UInt8(ascii: ".")] }
    guard run.contains(UInt8(ascii: ".")) else {
      return run.contains(UInt8(ascii: "/")) ? slashed(text) : run
    }
    // In statistics, the names of candidates end with an address.
    if let hyphen = run.lastIndex(of: UInt8(ascii: "-")) {
      return Array(run[...hyphen]) + token(Array(run[(hyphen + 1)...]))
    }
    return Array(
      text.split(separator: ".", omittingEmptySubsequences: false)
        .map { standIns.known(String($0)) ?? String($0) }.joined(separator: ".").utf8)
  }

  private func slashed(_ text: String) -> [UInt8] {
    Array(
      text.split(separator: "/", omittingEmptySubsequences: false)
        .map { standIns.known(String($0)) ?? String($0) }.joined(separator: "/").utf8)
  }
}
