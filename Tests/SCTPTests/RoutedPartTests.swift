import Testing
import Wire

@testable import SCTP

/// Tests each of the parts that communicate through their association.
struct RoutedPartTests {
  private let parameters = SCTPParameters(isClient: true, offersInterleaving: false)

  // MARK: Handshake

  private func identity(_ tag: UInt32) -> AssociationIdentity {
    AssociationIdentity(cookieKey: CookieKey(first: 1, second: 2), tag: tag, firstNumber: tag)
  }

  private func chunks(_ actions: [SCTPAction]) -> [ControlChunk] {
    actions.flatMap { action -> [ControlChunk] in
      switch action {
      case .append(let chunk): [chunk]
      case .packet(let chunks, _): chunks
      default: []
      }
    }
  }

  /// Returns two finished handshakes, the first of which initiated.
  private func established() -> [Handshake] {
    let entropy = Entropy(seed: [3]).stream("sctp")
    var sides = [Handshake(), Handshake()]
    for side in 0..<2 { sides[side].start(parameters, identity(UInt32(100 + side))) }
    let offer = chunks(sides[0].offer())[0]
    let answer = chunks(sides[1].receiveInitiation(offer.body.span.bytes, entropy, at: .zero))[0]
    let echo = chunks(sides[0].receiveInitiationAcknowledgement(answer.body.span.bytes))[0]
    let done = sides[1].receiveCookie(echo.body.span.bytes, at: .zero)
    #expect(done == [.establish, .append(ControlChunk(type: .cookieAcknowledgement))])
    #expect(sides[0].receiveCookieAcknowledgement() == [.establish])
    return sides
  }

  @Test func aHandshakeExchangesBothSidesParameters() {
    let sides = established()
    #expect(sides.map(\.phase) == [.established, .established])
    #expect(sides.map(\.localTag) == [100, 101] && sides.map(\.peer.tag) == [101, 100])
    #expect(sides.map(\.interleaves) == [false, false])
    #expect(sides.map(\.destination.needsChecksum) == [false, false])
  }

  @Test func aShutdownGoesThroughItsPhasesAndEndsOnce() {
    var sides = established()
    #expect(sides[0].shutdown() == [] && sides[0].phase == .shutdownPending)
    let end = sides[0].continueShutdown(7)
    let body = Crafted.words(long: 7)
    #expect(end == [.append(ControlChunk(type: .shutdown, body: body)), .arm(.shutdown)])
    #expect(sides[1].receiveShutdown() == [] && sides[1].phase == .shutdownReceived)
    let answer = sides[1].continueShutdown(0)
    #expect(answer.contains(.cancel(.acknowledgement)))
    #expect(sides[1].phase == .shutdownAcknowledgementSent && sides[1].prolongShutdown(1) == [])
    #expect(sides[0].receiveShutdownAcknowledgement().last == .end(nil))
    #expect(sides[1].receiveShutdownComplete() == .end(nil))
    let ends = [sides[1].end(), sides[1].end()]
    #expect(ends == [true, false] && !sides[1].canAbort)
  }

  @Test func anInitIsRepeatedUntilThePeerIsGivenUp() {
    var side = Handshake()
    side.start(parameters, identity(9))
    let retries = (0..<21).map { _ in side.retry() }
    #expect(retries.dropLast().allSatisfy { $0 == [.backOff] + side.offer() })
    #expect(retries.last == [.end("the peer does not answer")])
  }

  // MARK: Queues

  private func message(_ count: Int) -> OutgoingMessage {
    OutgoingMessage(
      bytes: [UInt8](repeating: 1, count: count), payloadProtocol: .binary, ordered: true,
      limits: MessageLimits(), buffered: UInt64(count))
  }

  @Test func channelsShareBytesByPriority() {
    var queues = SendQueues()
    for (place, priority) in [DataChannelPriority.high, .medium].enumerated() {
      queues.open(place, priority: priority)
      queues.assign(UInt16(2 * place), to: place)
      for _ in 0..<6 { queues.enqueue(message(84), on: place) }
    }
    var order: [Int] = []
    for number in 0..<9 as Range<UInt32> {
      guard let place = queues.current, let message = queues.first(of: place) else { break }
      _ = queues.removePart(of: message, place, count: 84, header: 16, number: number)
      _ = queues.finishFirst(place, numbered: true, unsent: 84, interleaves: false)
      order.append(place)
    }
    // One byte on the medium-priority channel counts as much as two bytes on the high-priority
    // channel.
    #expect(order.filter { $0 == 0 }.count == 6 && order.prefix(3).contains(1))
    #expect(queues.bufferedAmount(of: 1) == 3 * 84 && queues.isConsistent)
    #expect(queues.isEmpty(0) && queues.lastNumber(of: 0) != nil)
  }

  @Test func aStartedMessageIsFinishedAndTheLowBufferReportedOnce() {
    var queues = SendQueues()
    queues.open(0, priority: .low)
    queues.open(1, priority: .high)
    queues.setLowThreshold(50, of: 0)
    queues.enqueue(message(100), on: 0)
    let part = queues.removePart(of: message(100), 0, count: 60, header: 16, number: 5)
    #expect(part.flags == .beginning && part.size == 76)
    let first = queues.finishPart(0, count: 60, buffered: 60, interleaves: false)
    #expect(first == QueueChange(place: 0, isLow: true))
    queues.enqueue(message(1), on: 1)
    #expect(queues.current == 0 && queues.sentOfFirst(of: 0) == 60 && queues.isConsistent)
    let end = queues.removePart(of: message(100), 0, count: 40, header: 16, number: 6)
    #expect(end.flags == .end && end.offset == 60 && end.part == 1)
    let last = queues.finishFirst(0, numbered: true, unsent: 40, interleaves: false)
    #expect(last == QueueChange(place: 0, isDrained: true) && queues.current == 1)
  }

  // MARK: Channels

  @Test func aChannelIsRemovedOnceBothStreamsAreReset() {
    var sender = Sender()
    sender.start(packetSize: 1160, firstNumber: 1)
    var channels = DataChannels(next: DataChannelNumber(4))
    channels.resets.start(firstNumber: 1)
    var outbox = Outbox<SCTPAssociation.Output>()
    func outputs() -> [String] { outbox.drain().map { "\($0)".prefix { $0 != "(" }.description } }
    let isOpen = channels.open(
      DataChannelInit(negotiated: true, id: 6), nil, &sender, into: &outbox)
    #expect(isOpen)
    channels.openWaiting(below: 10, &sender, into: &outbox)
    #expect(outputs() == ["channelOpened"] && channels.table.place(ofStream: 6) == 0)
    // Nothing was sent on the channel, so its stream is reset at once; the remote stream is reset
    // afterwards.
    channels.close(0, &sender, into: &outbox)
    #expect(outputs() == ["channelClosing"] && channels.resets.mayAsk)
    #expect(channels.ask(most: 10, &sender, into: &outbox))
    channels.finishReset(of: [6], &sender, into: &outbox)
    #expect(outputs() == [])
    channels.closeByPeer([6], &sender, into: &outbox)
    #expect(outputs() == ["channelClosed"] && channels.table.count == 0)
  }

  @Test func aRefusedChannelOrOneWithoutAStreamIsClosed() {
    var sender = Sender()
    var channels = DataChannels(next: DataChannelNumber(0))
    var outbox = Outbox<SCTPAssociation.Output>()
    let isOpen = channels.open(DataChannelInit(id: 65535), .malformed, &sender, into: &outbox)
    #expect(!isOpen && channels.table.count == 0)
    for _ in 0..<2 { _ = channels.open(DataChannelInit(), nil, &sender, into: &outbox) }
    // Only one stream number below three is odd.
    channels.assignStreams(isEven: false, below: 3, &sender, into: &outbox)
    #expect(channels.table.places.map { channels.table[$0].options.id } == [1])
  }

  // MARK: Packets

  @Test func chunksAreBundledUntilAPacketIsFull() {
    var writer = PacketWriter()
    writer.start(SCTPParameters(isClient: true, remotePort: 5001, maximumPacketSize: 256))
    var outbox = Outbox<SCTPAssociation.Output>()
    let peer = PacketDestination(tag: 7, needsChecksum: false)
    #expect(writer.capacity == 244 && writer.space.isEmpty)
    for count in [100, 100, 40] {
      let body = [UInt8](repeating: 1, count: count)
      writer.append(ControlChunk(type: .heartbeat, body: body), to: peer, into: &outbox)
    }
    writer.emit(to: peer, into: &outbox)
    writer.emit(to: peer, into: &outbox)
    writer.emit([ControlChunk(type: .abort)], tag: 9, into: &outbox)
    let packets = outbox.drain().compactMap { output -> [UInt8]? in
      if case .packet(let bytes) = output { bytes } else { nil }
    }
    #expect(packets.map(\.count) == [12 + 208, 12 + 44, 12 + 4] && writer.sent == 3)
    #expect(packets.map { Crafted.read($0).tag } == [7, 7, 9])
    // A packet sent outside the association always has its checksum (RFC 9653 section 5.2).
    #expect(packets.map { $0[8..<12] == [0, 0, 0, 0] } == [true, true, false])
  }

  @Test func tagAndFirstChunkDecideWhetherAPacketBelongs() {
    func header(_ tag: UInt32, _ type: ChunkType, flags: UInt8 = 0) -> PacketHeader? {
      PacketHeader(Crafted.packet(tag: tag, [.init(type: type, flags: flags)]), parameters)
    }
    let cases: [(PacketHeader?, belongs: Bool)] = [
      (header(5, .data), true), (header(6, .data), false), (header(0, .initiation), true),
      (header(5, .initiation), false), (header(5, .abort), true), (header(6, .abort), false),
      (header(6, .abort, flags: 1), true), (header(0, .abort, flags: 1), false),
      (header(6, .shutdownComplete, flags: 1), true), (header(8, .cookieEcho), true),
    ]
    for (header, belongs) in cases {
      #expect(
        header?.belongs(localTag: 5, remoteTag: 6) == belongs, "\(String(describing: header))")
    }
    var altered = Crafted.packet(tag: 5, [.init(type: .data, body: [1, 2, 3, 4])])
    altered[17] ^= 1
    #expect(PacketHeader(altered, parameters) == nil)
    #expect(PacketHeader(Array(altered.prefix(12)), parameters) == nil)
  }

  @Test func aMisplacedChunkEndsThePacket() throws {
    let chunks: [Crafted.Chunk] = [
      .init(type: .heartbeat, flags: 3, body: [1, 2, 3]), .init(type: .cookieEcho),
    ]
    let packet = Crafted.packet(tag: 5, chunks)
    var reader = try ChunkReader(packet.span.bytes)
    var body: [UInt8] = []
    if let span = try reader.next() { body = [UInt8](span) }
    #expect(body == [1, 2, 3] && reader.type == .heartbeat && reader.flags == 3)
    var isMalformed = false
    do { _ = try reader.next() } catch { isMalformed = error == .malformed }
    #expect(isMalformed && reader.type == .cookieEcho)
  }
}
