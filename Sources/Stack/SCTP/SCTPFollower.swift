import Wire

/// Follows an association between two other endpoints, and its data channels, by reading the
/// packets of both.
///
/// It sends nothing, and reassembles messages from chunks as a receiver does (RFC 9260 section 6.9,
/// RFC 8260). Chunks that the receiver acknowledged but that were not captured are skipped, so that
/// the messages after them can be delivered.
package struct SCTPFollower {
  /// An event found in the packets.
  package enum Event {
    /// A channel opened, or its state changed.
    case channel(FollowedChannel)
    /// An endpoint's message is complete.
    case message(FollowedChannel, from: Int, isBinary: Bool, [UInt8])
    /// This many chunks were acknowledged but not captured.
    case missed(Int)
  }

  /// One of the two endpoints: its parameters and the data that it sent.
  private struct Side {
    var receiver: Receiver?
    var initiation: Initiation?
    /// Streams that were joined in the middle because the start was not captured.
    var joined: Set<UInt16> = []
    /// The sequence number of the last request to reset streams.
    var lastReset: UInt32?
    /// Streams to reset once everything up to this number has been captured.
    var reset: (last: Int64, streams: [UInt16])?
  }

  /// The maximum number of channels followed during an association.
  private static let channelsMaximum = 4096
  /// Limits on a reassembled message and on waiting data per endpoint, in bytes.
  private static let messageMaximum = 4 << 20
  private static let windowMaximum = 4 << 20

  private var sides = [Side(), Side()]
  /// All channels in order of discovery.
  package private(set) var channels: [FollowedChannel] = []
  /// The place of the channel that currently uses each stream.
  private var carried: [UInt16: Int] = [:]

  package init() {}

  /// Handles a packet from endpoint 0 or 1; malformed parts are skipped.
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

  // MARK: Start

  private mutating func begin(_ body: RawSpan, from end: Int) {
    var cookie: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let read = try? Initiation(body, cookie: &cookie, unrecognized: &unrecognized),
      read.tag != sides[end].initiation?.tag
    else { return }
    sides[end] = Side()
    sides[end].initiation = read
  }

  /// Starts receiving an endpoint's data at the endpoint's first chunk, or else at the first
  /// captured chunk.
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
    // Skip a message whose beginning is missing.
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
        // The channel was not announced: either both applications created it, or it opened before
        // the capture.
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

  /// Skips chunks that the other endpoint acknowledged but that were not captured.
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

  /// Handles an endpoint's request to reset its streams (RFC 6525 section 4.1), which closes
  /// channels.
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

  /// Advances a channel's state: closing after one endpoint's reset, closed after both.
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
  /// The channel's number within its association, from 0.
  package var number: Int
  /// The endpoint that announced the channel; nil if the announcement was not captured or the
  /// channel is negotiated.
  package var opener: Int?
  package var options: DataChannelInit
  /// Messages sent by each endpoint, and their bytes.
  package var messages: [UInt64] = [0, 0]
  package var bytes: [UInt64] = [0, 0]
  /// Whether each endpoint has reset its stream.
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
