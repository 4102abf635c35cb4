import ICE
import Observer
import Testing
import Wire

struct ConnectionTests {
  private let tuple = FiveTuple(.tcp, from: Messages.a, to: Messages.b)

  private func feed(
    _ observer: inout Observer, _ call: inout SyntheticCall, _ bytes: [UInt8], _ tuple: FiveTuple,
    by step: Int
  ) {
    for start in stride(from: 0, to: bytes.count, by: step) {
      call.now += .milliseconds(1)
      call.watch.step(
        &observer, .stream(tuple, Array(bytes[start..<min(start + step, bytes.count)])),
        at: call.now)
    }
  }

  private func framed(_ message: [UInt8]) -> [UInt8] {
    [UInt8(message.count >> 8), UInt8(truncatingIfNeeded: message.count)] + message
  }

  @Test(arguments: [1, 7, 100, 10_000])
  func iceMessagesOverTCPAreSplit(step: Int) throws {
    var observer = Observer()
    var call = SyntheticCall()
    var bytes = framed(Messages.check(1, from: "aaaa", to: "bbbb", nominates: true))
    for number in 0..<5 { bytes += framed(Messages.rtp(number)) }
    feed(&observer, &call, bytes, tuple, by: step)
    let answer = framed(Messages.success(1, mapped: Messages.a))
    feed(&observer, &call, answer, tuple.reversed, by: step)
    #expect(observer.pairs.map(\.transportProtocol) == [.tcp])
    #expect(observer.pairs.first?.isSelected == true)
    #expect(call.seen.packets.count == 5)
  }

  @Test func turnMessagesOverTCPAreSplit() {
    var observer = Observer()
    var call = SyntheticCall()
    var messages = RelayMessages.allocation
    let toServer = FiveTuple(.tcp, from: Messages.a, to: Messages.server)
    feed(&observer, &call, messages.removeFirst(), toServer, by: 5)
    feed(&observer, &call, messages.removeFirst(), toServer.reversed, by: 5)
    feed(&observer, &call, messages.removeFirst(), toServer, by: 5)
    feed(&observer, &call, messages.removeFirst(), toServer.reversed, by: 5)
    var bytes: [UInt8] = []
    for number in 0..<6 {
      bytes += TURNFraming.framed(ChannelData.frame(Messages.rtp(number), channel: 0x4001))
    }
    feed(&observer, &call, bytes, toServer, by: 11)
    #expect(call.seen.packets.count == 6)
    #expect(observer.pairs.first?.isRelayed == true)
    #expect(call.seen.carried.count == 6)
  }

  /// A connection that started before the capture, or lacks bytes, continues at the next
  /// consecutive frames.
  @Test(arguments: [true, false], [33, 2000])
  func aConnectionIsJoinedInTheMiddle(_ isRelay: Bool, step: Int) throws {
    var observer = Observer()
    var call = SyntheticCall()
    var path = tuple
    if isRelay { path.destination.port = 55_000 }
    func frames(_ numbers: Range<Int>) -> [UInt8] {
      numbers.flatMap { number in
        isRelay
          ? TURNFraming.framed(ChannelData.frame(Messages.rtp(number), channel: 0x4001))
          : framed(Messages.rtp(number))
      }
    }
    feed(&observer, &call, Array(frames(0..<20).dropFirst(100)), path, by: step)
    #expect(call.seen.packets.count == 19)
    call.watch.step(
      &observer, .stream(path, Array(frames(21..<30).dropFirst(50)), lost: 300), at: call.now)
    #expect(call.seen.packets.count == 27)
    #expect(call.seen.carried.count == 27)
    #expect(call.seen.coverage.contains { $0.kind == .streamGap })
    #expect(observer.streams.count == 1 && observer.pairs.first?.isRelayed == isRelay)
  }

  /// The end to which several clients connect is the server, whatever its port.
  @Test func theEndWithSeveralClientsIsTheServer() throws {
    var observer = Observer()
    var call = SyntheticCall()
    let server = SocketAddress(Messages.server.ip, port: 60_000)
    let clients = [Messages.a, Messages.b]
    for numbers in [0..<10, 10..<20] {
      for (place, client) in clients.enumerated() {
        let frames = numbers.flatMap { number in
          TURNFraming.framed(
            ChannelData.frame(Messages.rtp(number, ssrc: UInt32(place + 5)), channel: 0x4001))
        }
        feed(&observer, &call, frames, FiveTuple(.tcp, from: client, to: server), by: 2000)
      }
    }
    #expect(call.seen.packets.count >= 36 && observer.streams.count == 2)
    #expect(observer.pairs.map(\.bases[0]) == clients, "\(observer.pairs)")
    #expect(observer.pairs.allSatisfy { $0.addresses[0] == $0.bases[0] })
  }

  @Test func unrelatedConnectionsAreIgnored() {
    var observer = Observer()
    var call = SyntheticCall()
    let noise = (0..<40_000).map { UInt8(truncatingIfNeeded: ($0 &* 7919) >> 5 ^ $0) }
    feed(&observer, &call, noise, tuple, by: 1400)
    #expect(call.seen.calls.isEmpty && call.seen.coverage.isEmpty)
  }

  private static let description = """
    v=0\r
    o=- 1 1 IN IP4 192.0.2.1\r
    s=-\r
    t=0 0\r
    m=audio 9 UDP/TLS/RTP/SAVPF 111\r
    a=mid:0\r
    a=ice-ufrag:aaaa\r
    a=ice-pwd:0123456789abcdefghijkl\r
    a=rtpmap:111 opus/48000/2\r

    """

  private var json: [UInt8] {
    let escaped = Self.description.split(separator: "\r\n").joined(separator: #"\r\n"#)
    return Array(#"{"type":"offer","sdp":"\#(escaped)\r\n"}"#.utf8)
  }

  private func expectDescription(_ call: inout SyntheticCall, _ observer: inout Observer) {
    call.connect(&observer, FiveTuple(from: Messages.a, to: Messages.b))
    #expect(call.seen.descriptions.map(\.end) == [0])
    #expect(call.seen.descriptions.map(\.how) == [.wire])
    #expect(call.seen.descriptions.map(\.text) == [Self.description])
  }

  @Test(arguments: [1, 50, 5000])
  func descriptionsInHTTPAreFound(step: Int) {
    var observer = Observer()
    var call = SyntheticCall()
    let head = "POST /offer HTTP/1.1\r\nHost: a\r\nContent-Length: \(json.count)\r\n\r\n"
    feed(&observer, &call, Array("GET / HTTP/1.1\r\n\r\n\(head)".utf8) + json, tuple, by: step)
    expectDescription(&call, &observer)
  }

  @Test func descriptionsInChunksAreFound() {
    var observer = Observer()
    var call = SyntheticCall()
    let bytes = Array(Self.description.utf8)
    var response = Array("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
    for start in stride(from: 0, to: bytes.count, by: 60) {
      let part = bytes[start..<min(start + 60, bytes.count)]
      response += Array("\(String(part.count, radix: 16))\r\n".utf8) + part + [13, 10]
    }
    feed(&observer, &call, response + Array("0\r\n\r\n".utf8), tuple, by: 33)
    expectDescription(&call, &observer)
  }

  @Test(arguments: [true, false])
  func descriptionsInWebSocketsAreFound(isMasked: Bool) {
    var observer = Observer()
    var call = SyntheticCall()
    let start =
      isMasked
      ? "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
      : "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    var frames: [UInt8] = []
    // Sends the message in two frames, with a ping between them.
    for (first, part) in [
      (UInt8(0x01), json.prefix(100)), (0x89, []), (0x80, json.dropFirst(100)),
    ] {
      frames += [first, (isMasked ? 0x80 : 0) | UInt8(min(part.count, 126))]
      if part.count >= 126 { frames += [UInt8(part.count >> 8), UInt8(part.count & 255)] }
      let mask: [UInt8] = [1, 2, 3, 4]
      frames += isMasked ? mask : []
      frames += part.enumerated().map { isMasked ? $1 ^ mask[$0 % 4] : $1 }
    }
    feed(&observer, &call, Array(start.utf8) + frames, tuple, by: 17)
    expectDescription(&call, &observer)
  }

  @Test func connectionsUnderTLSAreReported() {
    var observer = Observer()
    var call = SyntheticCall()
    feed(&observer, &call, [22, 3, 1, 0, 200] + [UInt8](repeating: 1, count: 200), tuple, by: 300)
    #expect(call.seen.coverage.map(\.kind) == [.tls])
  }
}
