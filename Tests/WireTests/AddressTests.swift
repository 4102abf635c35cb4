import Testing

@testable import Wire

struct AddressTests {
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::"),
    ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
    ("fe80::1234", "fe80::1234"), ("::ffff:192.0.2.1", "::ffff:c000:201"),
    ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
    ("1::", "1::"),
  ])
  func canonicalText(input: String, printed: String) throws {
    let address = try #require(IPAddress(input))
    #expect(address.description == printed)
    #expect(IPAddress(bytes: address.bytes) == address)
  }

  @Test(arguments: [
    "", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1..2.3", ":", ":::", "1::2::3", "12345::",
    "1:2:3:4:5:6:7:8:9", "1:", "g::",
  ])
  func nonsenseIsRefused(text: String) { #expect(IPAddress(text) == nil) }

  @Test func endPointsRoundTrip() throws {
    for text in ["192.0.2.1:5000", "[2001:db8::1]:65535"] {
      #expect(SocketAddress(text)?.description == text)
    }
    #expect(SocketAddress("192.0.2.1") == nil)
    #expect(SocketAddress("192.0.2.1:70000") == nil)
  }
}
