import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Stats
import Testing
import Wire

struct DataChannelTests {
  /// Makes a connected call between two peers, the first of which opened channels.
  static func call(
    seed: UInt64, link: LinkSettings = LinkSettings(),
    channels: [DataChannelInit] = [DataChannelInit(label: "chat")]
  ) -> VirtualCall {
    let call = VirtualCall(seed: seed, links: [link, link])
    for options in channels { #expect(call.call(0, .createDataChannel(options)).error == nil) }
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    return call
  }

  @Test func channelsOpenAndCarryMessagesInBothDirections() {
    let call = DataChannelTests.call(
      seed: 1,
      channels: [
        DataChannelInit(label: "chat", protocol: "lines"),
        DataChannelInit(label: "fast", ordered: false, maxRetransmits: 0, priority: .high),
      ])
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.state("sctp", of: peer) == "connected")
    }
    #expect(call.channelStates(of: 0, 0) == [.connecting, .open])
    #expect(call.channelStates(of: 1, 0) == [.open])
    let announced = call.channels(of: 1)
    #expect(announced.map(\.isRemote) == [true, true])
    #expect(announced[0].options.label == "chat" && announced[0].options.protocol == "lines")
    #expect(announced[1].options.maxRetransmits == 0 && !announced[1].options.ordered)
    #expect(announced[1].options.priority == .high)

    call.send(0, channel: 0, text: "hällo")
    call.send(1, channel: 0, text: "")
    call.send(1, channel: 1, bytes: [UInt8](repeating: 7, count: 262_144))
    call.send(0, channel: 1, bytes: [])
    call.run(for: .seconds(2))
    #expect(
      call.messages(of: 1) == [
        DataMessage(channel: 0, isBinary: false, bytes: Array("hällo".utf8)),
        DataMessage(channel: 1, isBinary: true, bytes: []),
      ])
    #expect(call.messages(of: 0).map(\.bytes.count) == [0, 262_144])
    #expect(call.messages(of: 0).map(\.isBinary) == [false, true])
  }

  @Test func theDTLSRoleDeterminesTheStreamNumbers() throws {
    for offerer in 0..<2 {
      let call = VirtualCall(seed: 2)
      for peer in 0..<2 {
        call.call(peer, .createDataChannel(DataChannelInit(label: "of \(peer)")))
      }
      #expect(call.negotiate(from: offerer, to: 1 - offerer) == nil)
      call.run(for: .seconds(2))
      for peer in 0..<2 {
        let isClient = call.secured(peer)?.role == "client"
        // The answerer is the DTLS server, so the offerer is the client.
        #expect(isClient == (peer == offerer))
        let localChannel = try #require(call.channels(of: peer).last { !$0.isRemote })
        #expect(localChannel.options.id == (isClient ? 0 : 1))
      }
    }
  }

  @Test func aChannelIsAddedToARunningCall() {
    let call = CallTests.call(seed: 3, seconds: 1)
    #expect(!call.events[0].contains { $0.event.isDataChannel })
    let before = call.negotiationNeeds(of: 0)
    #expect(call.call(0, .createDataChannel(DataChannelInit(label: "late"))).error == nil)
    #expect(call.negotiationNeeds(of: 0) == before + 1)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    // The second channel needs no negotiation.
    call.call(1, .createDataChannel(DataChannelInit(label: "later")))
    call.run(for: .seconds(1))
    #expect(call.negotiationNeeds(of: 0) == before + 1)
    #expect(call.channels(of: 0).filter { $0.state == .open }.map(\.options.label).count == 2)
    call.send(0, channel: 1, text: "over yours")
    call.run(for: .seconds(1))
    #expect(call.messages(of: 1).map(\.channel) == [1])
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > 150)
  }

  @Test func closingAChannelReachesThePeerAfterItsMessages() {
    let call = DataChannelTests.call(seed: 4)
    for number in 0..<20 { call.send(0, channel: 0, bytes: [UInt8](repeating: 1, count: number)) }
    #expect(call.call(0, .closeDataChannel(0)).error == nil)
    #expect(call.send(0, channel: 0, text: "too late")?.name == "InvalidStateError")
    call.run(for: .seconds(2))
    #expect(call.messages(of: 1).map(\.bytes.count) == Array(0..<20))
    #expect(call.channelStates(of: 0, 0) == [.connecting, .open, .closing, .closed])
    #expect(call.channelStates(of: 1, 0) == [.open, .closing, .closed])
    #expect(call.channels(of: 1).last?.counters.messagesReceived == 20)
    #expect(call.channels(of: 0).last?.counters.bytesSent == 190)
    guard case .dataChannels(let left) = call.call(0, .dataChannels) else {
      Issue.record("no channels were reported")
      return
    }
    #expect(left.isEmpty)
  }

  @Test func closingTheConnectionAbortsTheAssociation() {
    let call = DataChannelTests.call(seed: 5)
    call.call(0, .close)
    #expect(call.state("sctp", of: 0) == "closed")
    #expect(call.channelStates(of: 0, 0).last == .closed)
    #expect(call.send(0, channel: 0, text: "no")?.name == "InvalidStateError")
    #expect(
      call.call(0, .createDataChannel(DataChannelInit())).error?.name == "InvalidStateError")
    call.run(for: .seconds(1))
    #expect(call.state("sctp", of: 1) == "closed")
    #expect(call.channelStates(of: 1, 0).last == .closed)
  }

  @Test func messagesSurvivePacketLoss() {
    var link = LinkSettings()
    link.lossPerMille = 100
    link.jitter = .milliseconds(15)
    let call = DataChannelTests.call(seed: 6, link: link)
    call.run(for: .seconds(3))
    for number in 0..<200 {
      call.send(number % 2, channel: 0, bytes: [UInt8](repeating: UInt8(number), count: 3000))
    }
    call.run(for: .seconds(30))
    for peer in 0..<2 {
      let received = call.messages(of: peer).map { $0.bytes.first.map { Int($0) } ?? -1 }
      #expect(received == Array(stride(from: 1 - peer, to: 200, by: 2)))
    }
  }

  @Test func sendsCompleteLateWhileMuchIsBuffered() {
    let call = DataChannelTests.call(seed: 7)
    let message = DataMessage(
      channel: 0, isBinary: true, bytes: [UInt8](repeating: 1, count: 1_000_000))
    #expect(call.step(0, .send(id: 900, message)).contains { $0.answers(900) })
    #expect(!call.step(0, .send(id: 901, message)).contains { $0.answers(901) })
    var refusals: [PeerError] = []
    for id in UInt32(902)..<920 {
      for case .reply(id, .failure(let error)) in call.step(0, .send(id: id, message)) {
        refusals.append(error)
      }
    }
    #expect(refusals.map(\.name) == [String](repeating: "OperationError", count: 4))
    #expect(!call.replies[0].contains { $0.id == 901 })
    call.run(for: .seconds(3))
    #expect(call.messages(of: 1).count > 1)
    #expect(call.replies[0].filter { $0.id == 901 }.count == 1)
  }

  @Test func bufferedAmountLowIsReportedOncePerFall() {
    let call = DataChannelTests.call(seed: 14)
    call.call(0, .setBufferedAmountLowThreshold(channel: 0, 1000))
    for fall in 1...2 {
      call.send(0, channel: 0, bytes: [UInt8](repeating: 1, count: 100_000))
      #expect(call.events[0].filter { $0.event.isBufferedAmountLow }.count == fall - 1)
      call.run(for: .seconds(1))
      #expect(call.events[0].filter { $0.event.isBufferedAmountLow }.count == fall)
    }
  }

  @Test func sendersAreInformedWhenTheChannelCloses() {
    let call = DataChannelTests.call(seed: 8)
    let message = DataMessage(
      channel: 0, isBinary: true, bytes: [UInt8](repeating: 1, count: 1_040_000))
    call.step(0, .send(id: 900, message))
    #expect(!call.step(0, .send(id: 901, message)).contains { $0.answers(901) })
    call.call(0, .close)
    let reply = call.replies[0].first { $0.id == 901 }?.reply
    #expect(reply?.error?.name == "OperationError")
  }

  @Test func invalidCallsAreRefused() {
    let call = DataChannelTests.call(seed: 9)
    func refused(_ options: DataChannelInit) -> String? {
      call.call(0, .createDataChannel(options)).error?.name
    }
    #expect(refused(DataChannelInit(maxPacketLifeTime: 1, maxRetransmits: 1)) == "TypeError")
    #expect(refused(DataChannelInit(negotiated: true)) == "TypeError")
    #expect(
      refused(DataChannelInit(label: String(repeating: "x", count: 70_000))) == "TypeError")
    #expect(refused(DataChannelInit(negotiated: true, id: 0)) == "OperationError")
    #expect(call.call(0, .closeDataChannel(9)).error?.name == "InvalidAccessError")
    #expect(
      call.call(0, .setBufferedAmountLowThreshold(channel: 9, 1)).error?.name
        == "InvalidAccessError")
    #expect(call.send(0, channel: 9, text: "nobody")?.name == "InvalidStateError")
    let large = [UInt8](repeating: 0, count: 1 << 20 + 1)
    #expect(call.send(0, channel: 0, bytes: large)?.name == "TypeError")
  }

  @Test func channelsNegotiatedByTheApplicationAreNotAnnounced() {
    let options = DataChannelInit(label: "both", negotiated: true, id: 40)
    let call = VirtualCall(seed: 10)
    for peer in 0..<2 { call.call(peer, .createDataChannel(options)) }
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(call.channels(of: peer).map(\.isRemote) == [false, false])
      call.send(peer, channel: 0, text: "from \(peer)")
    }
    call.run(for: .seconds(1))
    #expect(call.messages(of: 0).map(\.bytes) == [Array("from 1".utf8)])
    #expect(call.messages(of: 1).map(\.bytes) == [Array("from 0".utf8)])
  }

  @Test func aRefusedSectionClosesTheWaitingChannels() throws {
    let call = VirtualCall(seed: 11)
    call.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 300, pauseSeconds: 0)))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    call.call(0, .setLocalDescription(nil))
    guard case .description(let offer) = call.call(0, .localDescription) else { return }
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
    call.call(1, .setLocalDescription(nil))
    guard case .description(var answer) = call.call(1, .localDescription) else { return }
    let range = try #require(answer.sdp.firstRange(of: "m=application "))
    let end = answer.sdp[range.upperBound...].firstIndex(of: " ") ?? answer.sdp.endIndex
    answer.sdp.replaceSubrange(range.upperBound..<end, with: "0")
    answer.sdp = answer.sdp.replacing("BUNDLE 0 1", with: "BUNDLE 0")
    #expect(call.call(0, .setRemoteDescription(answer)).error == nil)
    #expect(call.channelStates(of: 0, 0) == [.connecting, .closed])
    #expect(call.events[0].contains { $0.event.isDataChannelError })
    call.run(for: .seconds(1))
    #expect(call.state("connection", of: 0) == "connected")
  }

  @Test func statsCountChannelsAndMessages() throws {
    let call = DataChannelTests.call(
      seed: 12, channels: [DataChannelInit(label: "a"), DataChannelInit(label: "b")])
    call.send(0, channel: 0, text: "four")
    call.send(1, channel: 0, bytes: [1, 2, 3])
    call.call(0, .closeDataChannel(1))
    call.run(for: .seconds(1))
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let json = report.objects.filter { $0.type == "data-channel" }.map(\.membersJSON)
    #expect(
      json == [
        """
        {"label":"a","protocol":"","dataChannelIdentifier":0,"state":"open","messagesSent":1,\
        "bytesSent":4,"messagesReceived":1,"bytesReceived":3}
        """
      ])
    let connection = try #require(report.objects.first { $0.type == "peer-connection" })
    #expect(connection.membersJSON == #"{"dataChannelsOpened":2,"dataChannelsClosed":1}"#)
  }

  @Test func aHundredChannelsOpenCarryAndClose() {
    let call = DataChannelTests.call(
      seed: 13,
      channels: (0..<100).map { DataChannelInit(label: "\($0)", ordered: $0 % 2 == 0) })
    for channel in UInt32(0)..<100 { call.send(1, channel: channel, text: "to \(channel)") }
    call.run(for: .seconds(2))
    #expect(call.messages(of: 0).count == 100)
    for channel in UInt32(0)..<100 { call.call(0, .closeDataChannel(channel)) }
    call.run(for: .seconds(3))
    for peer in 0..<2 {
      #expect(call.channels(of: peer).filter { $0.state == .closed }.count == 100)
    }
  }
}

extension VirtualCall {
  func channels(of peer: Int) -> [DataChannelRecord] {
    events[peer].compactMap { entry in
      if case .dataChannel(let record) = entry.event { return record }
      return nil
    }
  }

  func channelStates(of peer: Int, _ channel: UInt32) -> [DataChannelState] {
    channels(of: peer).filter { $0.channel == channel }.map(\.state)
  }

  func messages(of peer: Int) -> [DataMessage] {
    events[peer].compactMap { entry in
      if case .message(let message) = entry.event { return message }
      return nil
    }
  }

  func secured(_ peer: Int) -> SecuredTransport? {
    for case .secured(let transport) in events[peer].map(\.event) { return transport }
    return nil
  }

  func negotiationNeeds(of peer: Int) -> Int {
    events[peer].count { entry in
      if case .negotiationNeeded = entry.event { return true }
      return false
    }
  }

  @discardableResult
  func send(_ peer: Int, channel: UInt32, text: String) -> PeerError? {
    send(peer, DataMessage(channel: channel, isBinary: false, bytes: Array(text.utf8)))
  }

  @discardableResult
  func send(_ peer: Int, channel: UInt32, bytes: [UInt8]) -> PeerError? {
    send(peer, DataMessage(channel: channel, isBinary: true, bytes: bytes))
  }
}

extension PeerOutput {
  func answers(_ call: UInt32) -> Bool {
    if case .reply(call, _) = self { return true }
    return false
  }
}

extension PeerEvent {
  var isDataChannel: Bool { if case .dataChannel = self { true } else { false } }
  var isBufferedAmountLow: Bool { if case .bufferedAmountLow = self { true } else { false } }
  var isDataChannelError: Bool { if case .dataChannelError = self { true } else { false } }
}
