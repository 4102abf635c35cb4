import Crypto
import Tape
import Wire

/// The stand-ins for names, secrets and addresses in a redacted take.
///
/// An original has the same stand-in everywhere. A word's stand-in has the word's length and form,
/// and addresses of one network get stand-ins in one network; a stand-in reveals nothing else about
/// the original.
final class StandIns {
  let parts: Redaction.Parts
  /// Whether addresses are only recorded, because all must be known before the first one gets a
  /// stand-in.
  var isLearning = false
  /// 32 secret bytes that are discarded after the redaction; without them, no one can check a guess
  /// at an original.
  private let secret: [UInt8]
  private var words: [String: String] = [:]
  private var given: Set<String> = []
  /// Phrases of more than one word; `RedactedText.free` searches for each of them.
  private(set) var phrases: [(old: String, new: String)] = []
  /// The ids of stats objects in another stack's reports.
  var objects: Set<String> = []
  private var addresses: [IPAddress: IPAddress] = [:]
  private var networks: [UInt64: UInt64] = [:]
  private var networkCounts: [UInt64: UInt64] = [:]
  private var hostCounts: [UInt64: UInt64] = [:]
  /// The original addresses and networks, which must not be used as stand-ins.
  private var originalAddresses: Set<IPAddress> = []
  private var originalNetworks: Set<UInt64> = []

  init(_ parts: Redaction.Parts, secret: [UInt8]) {
    (self.parts, self.secret) = (parts, secret)
  }

  /// All words replaced so far, with their stand-ins.
  var replaced: [(old: String, new: String)] {
    words.filter { $0.key != $0.value }.map { ($0.key, $0.value) }
  }
  var replacedAddresses: [IPAddress] {
    addresses.filter { $0.key != $0.value }.map(\.key)
  }

  /// Returns bytes that depend on `bytes` but cannot be computed without the secret.
  func noise(_ label: String, _ bytes: [UInt8], count: Int) -> [UInt8] {
    let key = HashFunction.sha256.hmac(key: secret, Array(label.utf8) + [0] + bytes)
    var made: [UInt8] = []
    var counter: UInt64 = 0
    while made.count < count {
      made += HashFunction.sha256.hmac(
        key: key, (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(8 * $0)) })
      counter += 1
    }
    return Array(made.prefix(count))
  }

  /// The maximum number of phrases to search for in each string; the final search finds any others.
  private static let phrasesMaximum = 1_000

  // MARK: Words

  /// Registers a word's stand-in.
  func register(_ old: String, as new: String) {
    guard old != new, !old.isEmpty else { return }
    words[old] = new
    given.insert(new)
    guard phrases.count < StandIns.phrasesMaximum else { return }
    if !old.utf8.allSatisfy(StandIns.isWordByte) { phrases.append((old, new)) }
  }

  /// Returns a word's stand-in, or the word itself if it is common or `part` is not redacted.
  ///
  /// A word that already has a stand-in is always replaced, so that it is the same everywhere.
  ///
  /// - Parameter isSecret: whether to replace even a common word.
  func word(_ old: String, _ part: Redaction.Parts, isSecret: Bool = false) -> String {
    if let known = words[old] { return known }
    guard parts.contains(part), !old.isEmpty else { return old }
    guard isSecret || !Vocabulary.isCommon(old) else { return old }
    // Numbers only distinguish objects, and in JSON they may also occur without quotation marks.
    if part == .names, !isSecret, StandIns.isNumber(old) { return old }
    // A word this short is not registered, because it would be replaced in unrelated text.
    if isSecret, old.utf8.count < 4 {
      return StandIns.shape(old, noise("word", Array(old.utf8), count: old.utf8.count))
    }
    if given.contains(old) { return old }
    var attempt: UInt8 = 0
    var new = old
    while attempt < 32 {
      new = StandIns.shape(old, noise("word", [attempt] + Array(old.utf8), count: old.utf8.count))
      if new != old, !given.contains(new), words[new] == nil { break }
      attempt += 1
    }
    register(old, as: new)
    return new
  }

  /// Returns whether a string has only digits and separators, or is a number with an exponent such
  /// as `2.1e-05`.
  static func isNumber(_ text: String) -> Bool {
    // Without a sign after the `e`, the string may be a hexadecimal name.
    if text.contains("e-") || text.contains("e+"), text.utf8.first.map({ $0 < 58 }) == true,
      Double(text) != nil
    {
      return true
    }
    return text.utf8.allSatisfy {
      (48...57).contains($0) || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ".")
        || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ":")
    }
  }

  /// Returns a word's stand-in; nil if the word was not replaced.
  func known(_ old: String) -> String? { words[old] }

  /// Returns the stand-in for a string inside a longer word.
  ///
  /// A number's stand-in does not begin with zero, which JSON does not allow.
  func within(_ old: String) -> String {
    let new =
      words[old] ?? StandIns.shape(old, noise("word", Array(old.utf8), count: old.utf8.count))
    let isNumber = old.utf8.allSatisfy { (48...57).contains($0) }
    return isNumber && new.hasPrefix("0") ? "1" + new.dropFirst() : new
  }

  /// Replaces letters with letters and digits with digits; hexadecimal digits stay hexadecimal.
  ///
  /// Other ASCII characters are kept, so that mail addresses and file names keep their form.
  private static func shape(_ old: String, _ noise: [UInt8]) -> String {
    let isHexadecimal =
      old.utf8.count >= 8
      && old.utf8.allSatisfy {
        hexadecimalRange.contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ":")
      }
    // The version and variant in a UUID are kept (RFC 9562 section 4).
    let isUUID = isHexadecimal && old.utf8.count == 36
    var made: [UInt8] = []
    for (index, (byte, random)) in zip(old.utf8, noise).enumerated() {
      let wide = UInt16(random)
      switch byte {
      case _ where isUUID && (index == 14 || index == 19): made.append(byte)
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        made.append(UInt8(ascii: "0") + UInt8((wide * 10) >> 8))
      case UInt8(ascii: "a")...UInt8(ascii: "z"):
        made.append(UInt8(ascii: "a") + UInt8((wide * (isHexadecimal ? 6 : 26)) >> 8))
      case UInt8(ascii: "A")...UInt8(ascii: "Z"):
        made.append(UInt8(ascii: "A") + UInt8((wide * (isHexadecimal ? 6 : 26)) >> 8))
      case 0x80...: made.append(UInt8(ascii: "x"))
      default: made.append(byte)
      }
    }
    return String(decoding: made, as: UTF8.self)
  }

  private static let hexadecimalRange = Set("0123456789abcdefABCDEF".utf8)

  /// Returns whether a byte may be part of a word in text.
  static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "+"), UInt8(ascii: "/"),
      UInt8(ascii: "_"), UInt8(ascii: "-"), 0x80...:
      true
    default: false
    }
  }

  // MARK: Addresses

  /// Records an original address; it must be called before the first stand-in is made.
  func learn(_ ip: IPAddress) {
    originalAddresses.insert(ip)
    originalNetworks.insert(StandIns.network(ip))
  }

  /// Returns an address's stand-in, which is of the same kind, such as private or link-local.
  ///
  /// Two addresses of the same network have stand-ins in the same network.
  func address(_ ip: IPAddress) -> IPAddress {
    guard parts.contains(.addresses), !StandIns.isUniversal(ip) else { return ip }
    if isLearning {
      learn(ip)
      return ip
    }
    if let known = addresses[ip] { return known }
    let new = ip.isIPv4 ? mappedIPv4(ip) : mappedIPv6(ip)
    addresses[ip] = new
    return new
  }

  func address(_ end: SocketAddress) -> SocketAddress {
    SocketAddress(address(end.ip), port: end.port)
  }

  /// Returns whether an address identifies no host (loopback, unspecified, multicast or reserved).
  static func isUniversal(_ ip: IPAddress) -> Bool {
    if ip.isLoopback || ip.isUnspecified { return true }
    let bytes = ip.bytes
    return ip.isIPv4 ? bytes[0] >= 224 || bytes[0] == 0 : bytes[0] == 0xff
  }

  private static func network(_ ip: IPAddress) -> UInt64 {
    ip.isIPv4 ? ip.words.low >> 8 : ip.words.high
  }

  private func mappedIPv4(_ ip: IPAddress) -> IPAddress {
    let network = StandIns.network(ip)
    let new = self.network(network, base: StandIns.bases(network))
    for _ in 0..<254 {
      let host = (hostCounts[new] ?? 0) % 254 + 1
      hostCounts[new] = host
      let made = IPAddress(ipv4: UInt32(truncatingIfNeeded: new << 8 | host))
      if !originalAddresses.contains(made) { return made }
    }
    return IPAddress(ipv4: UInt32(truncatingIfNeeded: new << 8))
  }

  /// Returns the ranges of /24 networks that may stand in for a network, in order of preference.
  private static func bases(_ network: UInt64) -> [Range<UInt64>] {
    switch network {
    case 0x0a_0000..<0x0b_0000: [0x0a_8000..<0x0b_0000]
    case 0xac_1000..<0xac_2000: [0xac_1f00..<0xac_2000, 0xac_1000..<0xac_1f00]
    case 0xc0_a800..<0xc0_a900: [0xc0_a864..<0xc0_a900, 0xc0_a800..<0xc0_a864]
    case 0x64_4000..<0x64_8000: [0x64_6400..<0x64_8000]
    case 0xa9_fe00..<0xa9_ff00: [0xa9_fe64..<0xa9_ff00, 0xa9_fe01..<0xa9_fe64]
    // Networks for documentation (RFC 5737), then for benchmarks (RFC 2544), then reserved
    // networks.
    default:
      [
        0xc0_0002..<0xc0_0003, 0xc6_3364..<0xc6_3365, 0xcb_0071..<0xcb_0072, 0xc6_1200..<0xc6_1400,
        0xf0_0000..<0xff_0000,
      ]
    }
  }

  private func network(_ old: UInt64, base ranges: [Range<UInt64>]) -> UInt64 {
    if let known = networks[old] { return known }
    let kind = ranges.first?.lowerBound ?? 0
    let all = ranges.reduce(0) { $0 + UInt64($1.count) }
    var number = networkCounts[kind] ?? 0
    while number < all {
      var rest = number
      number += 1
      for range in ranges {
        guard rest >= UInt64(range.count) else {
          let made = range.lowerBound + rest
          guard !originalNetworks.contains(made) else { break }
          networkCounts[kind] = number
          networks[old] = made
          return made
        }
        rest -= UInt64(range.count)
      }
    }
    // All networks of this kind are in use, so the last one is shared.
    return (ranges.last?.upperBound ?? 1) - 1
  }

  private func mappedIPv6(_ ip: IPAddress) -> IPAddress {
    let (high, low) = ip.words
    // With these prefixes, the address contains an IPv4 address (RFC 4291 section 2.5.5.2, RFC 6052
    // section 2.1).
    if high == 0 && low >> 32 == 0xffff || high == 0x0064_ff9b_0000_0000 {
      let inner = address(IPAddress(ipv4: UInt32(truncatingIfNeeded: low)))
      return IPAddress(ipv6High: high, low: (low >> 32) << 32 | inner.words.low)
    }
    let prefix: UInt64
    switch high >> 56 {
    case 0xfc, 0xfd: prefix = 0xfd00_0000_0000_0000
    case 0xfe: prefix = high >> 54 == 0x3fa ? 0xfe80_0000_0000_0000 : 0x2001_0db8_0000_0000
    default: prefix = 0x2001_0db8_0000_0000
    }
    let isLinkLocal = prefix == 0xfe80_0000_0000_0000
    let network =
      isLinkLocal ? prefix : self.network(high, base: [prefix + 1..<prefix + 65_536])
    while true {
      let host = (hostCounts[network] ?? 0) + 1
      hostCounts[network] = host
      let made = IPAddress(ipv6High: network, low: host)
      if !originalAddresses.contains(made) { return made }
    }
  }
}
