import Wire

/// Follows an association between other endpoints, and its data channels, from the packets of both
/// ends.
///
/// It sends and decides nothing: messages of one end are reassembled from its chunks as the
/// receiver does it (RFC 9260 section 6.9, RFC 8260). Chunks that the receiver acknowledges but
/// that were not captured are skipped, so that the rest continues.
package struct SCTPFollower {
  /// An event that the packets show.
  package enum Event {
    /// A channel opened, or changed its state.
    case channel(FollowedChannel)
    /// A message of an end is complete.
    case message(FollowedChannel, from: Int, isBinary: Bool, [UInt8])
    /// This many chunks were acknowledged and not seen.
    case missed(Int)
  }

  /// The sending side of one end.
  private struct Side {
    var receiver: Receiver?
    var initiation: Initiation?
    /// Streams whose first message was seen, if the beginning of the association was not.
    var joined: Set<UInt16> = []
    /// The number of the last handled request to reset streams.
    var lastReset: UInt32?
    /// Streams to be reset once everything before this number was seen.
    var reset: (last: Int64, streams: [UInt16])?
  }

  /// The maximum number of channels followed in the life of an association.
  private static let channelsMaximum = 4096
  /// The largest reassembled message, and the limit of waiting data per end, in bytes.
  private static let messageMaximum = 4 << 20
  private static let windowMaximum = 4 << 20

  private var sides = [Side(), Side()]
  /// In order of discovery.
  package private(set) var channels: [FollowedChannel] = []
  /// The place of the channel that currently uses a stream.
  private var carried: [UInt16: Int] = [:]

  package init() {}

  /// Handles a packet of an end, 0 or 1; malformed parts are skipped.
  package mutating func receive(_ packet: [UInt8], from end: Int, into events: inout [Event]) {
    guard (0...1).contains(end) else { return }
    do throws(ReadError) {
      var reader = try ChunkReader(packet.span.bytes)
      while let body = try reader.next() {
        receive(reader.type, reader.flags, body, from: end, into: &events)
      }
    } catch {
      return
    }
  }

  private mutating func receive(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, from end: Int,
    into events: inout [Event]
  ) {
    switch type {
    case .initiation, .initiationAcknowledgement: begin(body, from: end)
    case .data, .interleavedData:
      let isInterleaved = type == .interleavedData
      join(body, DataFlags(rawValue: flags), from: end, isInterleaved: isInterleaved)
      apply(
        sides[end].receiver?.receive(
          body, DataFlags(rawValue: flags), interleaved: isInterleaved), from: end, &events)
    case .forward, .interleavedForward:
      apply(
        sides[end].receiver?.receiveForward(body, interleaved: type == .interleavedForward),
        from: end, &events)
    case .selectiveAcknowledgement:
      var reader = ByteReader(body)
      guard let number = try? reader.uint32() else { return }
      pass(through: number, of: 1 - end, &events)
    case .reconfiguration: reset(body, from: end, &events)
    case .abort, .shutdownComplete:
      for place in channels.indices { close(place, by: nil, &events) }
    default: break
    }
  }

  // MARK: Beginnings

  private mutating func begin(_ body: RawSpan, from end: Int) {
    var cookie: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let read = try? Initiation(body, cookie: &cookie, unrecognized: &unrecognized),
      read.tag != sides[end].initiation?.tag
    else { return }
    sides[end] = Side()
    sides[end].initiation = read
  }

  /// Begins with the first data of an end; if the beginning was not captured, with the first packet
  /// seen.
  private mutating func join(
    _ body: RawSpan, _ flags: DataFlags, from end: Int, isInterleaved: Bool
  ) {
    var reader = ByteReader(body)
    guard let number = try? reader.uint32(), let stream = try? reader.uint16(),
      let sequence = try? reader.uint16()
    else { return }
    if sides[end].receiver == nil {
      var initiation = sides[end].initiation ?? Initiation()
      if sides[end].initiation == nil {
        initiation.outgoingStreams = .max
        initiation.firstNumber = number
      }
      var receiver = Receiver()
      receiver.establish(
        SCTPParameters(
          isClient: false, localMaximumMessageSize: Self.messageMaximum,
          receiveWindow: Self.windowMaximum), initiation, interleaves: isInterleaved)
      sides[end].receiver = receiver
    }
    guard sides[end].initiation == nil, !flags.contains(.unordered),
      sides[end].joined.insert(stream).inserted
    else { return }
    let first = isInterleaved ? (try? reader.uint32()) ?? 0 : UInt32(sequence)
    // A message without its beginning is skipped.
    sides[end].receiver?.join(stream, at: Int64(first) + (flags.contains(.beginning) ? 0 : 1))
  }

  // MARK: Messages

  private mutating func apply(
    _ outcome: ReceiverOutcome?, from end: Int, _ events: inout [Event]
  ) {
    switch outcome {
    case .messages(let messages)?:
      for message in messages { handle(message, from: end, &events) }
    case .failed?: sides[end].receiver?.end()
    case .nothing?, .useless?, .unknownStream?, nil: break
    }
    finishReset(of: end, &events)
  }

  private mutating func handle(
    _ message: ReceivedMessage, from end: Int, _ events: inout [Event]
  ) {
    switch message.payloadProtocol {
    case .control:
      guard case .open(let options)? = try? ChannelMessage(message.bytes.span.bytes) else { return }
      open(message.stream, options, by: end, &events)
    case .string, .stringPart, .binary, .binaryPart, .emptyString, .emptyBinary:
      if carried[message.stream] == nil {
        // It was not announced: both applications created it, or it was opened before the capture.
        open(message.stream, DataChannelInit(negotiated: true), by: nil, &events)
      }
      guard let place = carried[message.stream] else { return }
      let isEmpty = [.emptyString, .emptyBinary].contains(message.payloadProtocol)
      let isBinary = [.binary, .binaryPart, .emptyBinary].contains(message.payloadProtocol)
      let bytes = isEmpty ? [] : message.bytes
      channels[place].messages[end] += 1
      channels[place].bytes[end] += UInt64(bytes.count)
      events.append(.message(channels[place], from: end, isBinary: isBinary, bytes))
    default: break
    }
  }

  /// Skips chunks that the other end acknowledged and that were not captured.
  private mutating func pass(through number: UInt32, of end: Int, _ events: inout [Event]) {
    guard let outcome = sides[end].receiver?.pass(through: number) else { return }
    if outcome.missed > 0 { events.append(.missed(outcome.missed)) }
    apply(.messages(outcome.messages), from: end, &events)
  }

  // MARK: Channels

  private mutating func open(
    _ stream: UInt16, _ options: DataChannelInit, by end: Int?, _ events: inout [Event]
  ) {
    guard channels.count < Self.channelsMaximum, carried[stream] == nil else { return }
    var options = options
    options.id = stream
    carried[stream] = channels.count
    channels.append(
      FollowedChannel(number: channels.count, opener: end, options: options))
    events.append(.channel(channels[channels.count - 1]))
  }

  /// Handles an end's request to reset its streams (RFC 6525 section 4.1), which closes channels.
  private mutating func reset(_ body: RawSpan, from end: Int, _ events: inout [Event]) {
    var reader = ByteReader(body)
    var type: UInt16 = 0
    while let value = reader.parameter(&type) {
      guard ParameterType(rawValue: type) == .outgoingResetRequest else { continue }
      var fields = ByteReader(value)
      guard let number = try? fields.uint32(), (try? fields.skip(4)) != nil,
        let last = try? fields.uint32(), sides[end].lastReset != number
      else { continue }
      sides[end].lastReset = number
      var streams: [UInt16] = []
      while let stream = try? fields.uint16() { streams.append(stream) }
      guard let receiver = sides[end].receiver else { continue }
      sides[end].reset = (receiver.numbers.extend(last), streams)
      finishReset(of: end, &events)
    }
  }

  private mutating func finishReset(of end: Int, _ events: inout [Event]) {
    guard let (last, streams) = sides[end].reset, let receiver = sides[end].receiver,
      receiver.numbers.cumulative >= last
    else { return }
    sides[end].reset = nil
    sides[end].receiver?.reset(streams)
    let reset =
      streams.isEmpty ? Array(channels.indices) : streams.compactMap { carried[$0] }
    for place in reset { close(place, by: end, &events) }
  }

  /// Advances a channel's state: closing with the reset of one end, closed with that of both.
  private mutating func close(_ place: Int, by end: Int?, _ events: inout [Event]) {
    let before = channels[place].state
    if let end {
      channels[place].isReset[end] = true
    } else {
      channels[place].isReset = [true, true]
    }
    guard channels[place].state != before else { return }
    if channels[place].state == .closed, let id = channels[place].options.id {
      carried[id] = nil
    }
    events.append(.channel(channels[place]))
  }
}

/// A data channel between other endpoints.
package struct FollowedChannel: Hashable, Sendable {
  /// From 0, in its association.
  package var number: Int
  /// Which end opened it; nil if that was not seen.
  package var opener: Int?
  /// The options that it was opened with.
  package var options: DataChannelInit
  /// Messages that each end sent, and their bytes.
  package var messages: [UInt64] = [0, 0]
  package var bytes: [UInt64] = [0, 0]
  /// Whether each end reset its stream.
  fileprivate(set) var isReset = [false, false]

  fileprivate init(number: Int, opener: Int?, options: DataChannelInit) {
    self.number = number
    self.opener = opener
    self.options = options
  }

  package var state: DataChannelState {
    isReset == [true, true] ? .closed : isReset.contains(true) ? .closing : .open
  }
}
