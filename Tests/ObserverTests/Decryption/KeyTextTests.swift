import Foundation
import Observer
import SDP
import Secure
import Testing
import Wire

/// Returns the text of a file in the folder Samples.
func sampleText(_ name: String) throws -> String {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  let file = folder.appending(path: "Samples/\(name)")
  return String(decoding: try Data(contentsOf: file), as: UTF8.self)
}

struct KeyTextTests {
  @Test func aKeyLogIsReadHoweverItArrives() throws {
    let text = try sampleText("firefox-loop.keys")
    var whole = NSSKeyLog()
    #expect(whole.append(text.utf8).count == 1)
    var pieces = NSSKeyLog()
    for byte in text.utf8 { _ = pieces.append([byte]) }
    let random = try #require(
      text.split(separator: "\n").last?.split(separator: " ").dropFirst().first)
    let name = try #require([UInt8](hexadecimal: random))
    let secrets = try #require(whole.secrets(of: name))
    #expect(secrets[.exporter]?.count == 32)
    #expect(secrets[.masterSecret] == nil)
    #expect(pieces.secrets(of: name) == secrets)
    #expect(whole.refusedLines == 0)
  }

  @Test func damagedLinesAreCounted() {
    var log = NSSKeyLog()
    _ = log.append("# comment\nCLIENT_RANDOM 00 11\nnonsense\n\nX Y Z\n".utf8)
    _ = log.append(repeatElement(UInt8(ascii: "a"), count: 100_000))
    _ = log.finish()
    #expect(log.refusedLines == 4)
    #expect(log.count == 0)
  }

  @Test(arguments: [
    ("00112233445566778899aabbccddeeff0102030405060708090a0b0c0d0e", SRTPKey.Scope.any, 30),
    ("ABEiM0RVZneImaq7zN3u/wECAwQFBgcICQoLDA0O", .any, 30),
    ("ssrc:0x10=ABEiM0RVZneImaq7zN3u/wECAwQFBgcICQoLDA==", .ssrc(16), 28),
    ("ssrc:17=AEAD_AES_128_GCM:ABEiM0RVZneImaq7zN3u/wECAwQFBgcICQoLDA==", .ssrc(17), 28),
    (
      "192.0.2.1:5000=ABEiM0RVZneImaq7zN3u/wECAwQFBgcICQoLDA0O",
      .source(IPAddress(ipv4: 0xc000_0201), port: 5000), 30
    ),
    (
      "192.0.2.1=ABEiM0RVZneImaq7zN3u/wECAwQFBgcICQoLDA0O",
      .source(IPAddress(ipv4: 0xc000_0201), port: nil), 30
    ),
  ])
  func keysOfServersAreRead(text: String, scope: SRTPKey.Scope, count: Int) throws {
    let key = try SRTPKey(parsing: text)
    #expect(key.scope == scope)
    #expect(key.bytes.count == count)
    #expect(key.bytes.prefix(4) == [0, 0x11, 0x22, 0x33])
    #expect(key.suites.first == (count == 30 ? .aes128CMSHA1_80 : .aeadAES128GCM))
  }

  @Test(arguments: ["", "abc", "who=00", "ROT13:0011", "ssrc:x=AAAA"])
  func invalidKeysAreRefused(text: String) {
    #expect(throws: SRTPKeyError.self) { try SRTPKey(parsing: text) }
  }

  @Test func aKeyMayHaveAnIdentifier() throws {
    let key = String(repeating: "ab", count: 30)
    #expect(try SRTPKey(parsing: key).identifier.isEmpty)
    #expect(try SRTPKey(parsing: "ssrc:7=\(key)|258:4").identifier == [0, 0, 1, 2])
    #expect(try SRTPKey(parsing: "AES_CM_128_HMAC_SHA1_80:\(key)|1:1").identifier == [1])
    for ending in ["|", "|1", "|x:4", "|1:0", "|1:129"] {
      #expect(throws: SRTPKeyError.self) { try SRTPKey(parsing: key + ending) }
    }
  }

  @Test func cryptoLinesContainKeys() throws {
    let key = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
    let plain = try #require(
      CryptoAttribute("1 AES_CM_128_HMAC_SHA1_80 inline:\(key)|2^20|1:4 FEC_ORDER=FEC_SRTP"))
    #expect(plain.tag == 1)
    #expect(plain.keys.first?.identifier == [0, 0, 0, 1])
    #expect(plain.srtpKeys.isEmpty)
    #expect(plain.unsupportedParameters == ["FEC_ORDER=FEC_SRTP"])
    let usual = try #require(CryptoAttribute("2 AES_CM_128_HMAC_SHA1_32 inline:\(key)|2^31"))
    #expect(usual.srtpKeys.first?.suites == [.aes128CMSHA1_32])
    #expect(usual.srtpKeys.first?.bytes.count == 30)
    #expect(CryptoAttribute("x AES inline:abcd") == nil)
    #expect(CryptoAttribute("1 AES_CM_128_HMAC_SHA1_80 prompt:abcd") == nil)
  }
}
