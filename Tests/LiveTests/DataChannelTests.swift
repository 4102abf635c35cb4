import Live
import Peer
import SCTP
import Stats
import Testing
import Wire

@Suite(.timeLimit(.minutes(10)), .serialized) struct DataChannelTests {
  /// Echoes all messages on all of a peer's channels until it is closed.
  static func echo(_ peer: PeerConnection) -> Task<Void, Never> {
    Task {
      await peer.forEachRemoteDataChannel { channel in
        for await message in channel.messages { try? await channel.send(message) }
      }
    }
  }

  @Test func messagesTravelBothWaysOverLoopback() async throws {
    let call = try LoopbackCall()
    let echo = DataChannelTests.echo(call.callee)
    let channel = try await call.caller.createDataChannel(
      "chat", DataChannelInit(protocol: "lines", priority: .high))
    #expect(channel.readyState == .connecting && channel.id == nil && !channel.isRemote)
    let refusal = await #expect(throws: PeerError.self) { try await channel.send("too early") }
    #expect(refusal?.name == "InvalidStateError")
    try await call.connect()
    try await channel.waitUntilOpen(timeout: .seconds(120))
    #expect(channel.id == 0 && channel.label == "chat" && channel.protocol == "lines")
    #expect(await channel.maxMessageSize == 1 << 20)
    let messages = channel.messages.makeAsyncIterator()
    let sent: [DataChannelMessage] = [
      .text("hällo"), .text(""), .binary([]), .binary([0, 255]),
      .binary([UInt8](repeating: 9, count: 300_000)),
    ]
    for message in sent {
      try await channel.send(message)
      #expect(await messages.next() == message)
    }
    #expect(await channel.bufferedAmount == 0)
    let tooLarge = await #expect(throws: PeerError.self) {
      try await channel.send([UInt8](repeating: 0, count: 1 << 20 + 1))
    }
    #expect(tooLarge?.name == "TypeError")
    let stats = try await call.caller.getStats()
    #expect(stats.objects.contains { $0.type == "data-channel" })
    await channel.close()
    try await channel.waitUntilClosed(timeout: .seconds(120))
    #expect(await messages.next() == nil)
    #expect(call.caller.dataChannels.isEmpty)
    let late = await #expect(throws: PeerError.self) { try await channel.send("too late") }
    #expect(late?.name == "InvalidStateError")
    try await call.session.finish()
    await echo.value
  }

  @Test func aSenderThatAwaitsIsAsFastAsThePath() async throws {
    let call = try LoopbackCall()
    let channel = try await call.caller.createDataChannel("bulk")
    try await call.connect()
    try await channel.waitUntilOpen(timeout: .seconds(120))
    let count = 40
    let size = 250_000
    let sending = Task {
      for number in 0..<count {
        try await channel.send([UInt8](repeating: UInt8(number), count: size))
        // The buffered amount never exceeds the mark plus the message that crossed the mark.
        #expect(await channel.bufferedAmount <= 1 << 20 + UInt64(size))
      }
    }
    var received: [Int] = []
    await call.callee.firstRemoteChannel { remote in
      for await message in remote.messages {
        guard case .binary(let bytes) = message, bytes.count == size else { break }
        received.append(Int(bytes[0]))
        if received.count == count { break }
      }
    }
    #expect(received == Array(0..<count))
    try await sending.value
    try await call.session.finish()
  }

  @Test func unreadMessagesWaitUntilTheConnectionEnds() async throws {
    let call = try LoopbackCall()
    let channel = try await call.caller.createDataChannel("chat")
    try await call.connect()
    try await channel.waitUntilOpen(timeout: .seconds(120))
    for number in 0..<3 { try await channel.send("\(number)") }
    var seen: [DataChannelMessage] = []
    await call.callee.firstRemoteChannel { remote in
      // Reading starts after the channel closed; received messages are still available.
      await channel.close()
      try? await remote.waitUntilClosed()
      for await message in remote.messages { seen.append(message) }
    }
    #expect(seen == [.text("0"), .text("1"), .text("2")])
    let other = try await call.caller.createDataChannel("other")
    await call.caller.close()
    #expect(other.readyState == .closed)
    try await call.session.finish()
  }

  @Test func eventsAndThresholdsAreReported() async throws {
    let call = try LoopbackCall()
    let events = call.caller.events
    let channel = try await call.caller.createDataChannel("chat")
    try await call.connect()
    try await channel.waitUntilOpen(timeout: .seconds(120))
    try await channel.setBufferedAmountLowThreshold(10)
    #expect(channel.bufferedAmountLowThreshold == 10)
    try await channel.send([UInt8](repeating: 0, count: 500_000))
    var told: [String] = []
    for await event in events {
      switch event {
      case .sctpState(let state): told.append("sctp \(state.rawValue)")
      case .dataChannelState(channel, let state): told.append("channel \(state.rawValue)")
      case .bufferedAmountLow(channel): told.append("low")
      default: continue
      }
      if told.last == "low" { break }
    }
    #expect(
      told == ["sctp connecting", "sctp connected", "channel open", "low"])
    try await call.session.finish()
  }

  @Test func aReaderThatIsCancelledStops() async throws {
    let call = try LoopbackCall()
    let channel = try await call.caller.createDataChannel("chat")
    let reader = Task {
      for await _ in channel.messages {}
      return true
    }
    reader.cancel()
    #expect(await reader.value)
    try await call.session.finish()
  }
}

extension PeerConnection {
  /// Runs a closure with the first channel that the remote side opened.
  fileprivate func firstRemoteChannel(_ body: (DataChannel) async -> Void) async {
    let events = events
    if let channel = dataChannels.first(where: \.isRemote) { return await body(channel) }
    for await event in events {
      if case .dataChannel(let channel) = event { return await body(channel) }
    }
  }
}
