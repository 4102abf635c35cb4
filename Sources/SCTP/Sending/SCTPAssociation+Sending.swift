import DequeModule
import Wire

/// Packets to the peer: what goes into them, and in which order (RFC 9260 section 6.1).
extension SCTPAssociation {
  /// The length of the fixed part of a DATA or I-DATA chunk with its header.
  private var dataHeader: Int { interleaves ? 20 : 16 }

  /// Sends everything that may be sent now; the end of each step.
  mutating func flush(at now: Instant, into outbox: inout Outbox<Output>) {
    if isEstablished || phase == .shutdownSent {
      if acknowledgement == .due { sendAcknowledgement(into: &outbox) }
    }
    if isEstablished {
      sendReset(at: now, into: &outbox)
      sendLost(at: now, into: &outbox)
      sendNew(at: now, into: &outbox)
      if isForwardDue { sendForward(at: now, into: &outbox) }
      // Messages that were given up before they were sent may have been the last of a channel.
      sendReset(at: now, into: &outbox)
      continueShutdown(at: now, into: &outbox)
    }
    emit(into: &outbox)
  }

  /// Appends a chunk to the packet under way, or to a new one when it does not fit.
  mutating func append(
    _ type: ChunkType, flags: UInt8 = 0, _ body: [UInt8] = [], into outbox: inout Outbox<Output>
  ) {
    makeRoom(for: body.count + 4, into: &outbox)
    builder.chunk(type, flags: flags, body)
  }

  private mutating func makeRoom(for size: Int, into outbox: inout Outbox<Output>) {
    if builder.isBegun, builder.room < size { emit(into: &outbox) }
    if !builder.isBegun {
      builder.begin(from: parameters.localPort, to: parameters.remotePort, tag: peer.tag)
    }
  }

  /// Sends the packet under way.
  mutating func emit(into outbox: inout Outbox<Output>) {
    guard !builder.isEmpty else { return }
    counters.packetsSent += 1
    outbox.append(.packet(builder.finish(checksum: !omitsChecksum)))
  }

  mutating func sendAcknowledgement(into outbox: inout Outbox<Output>) {
    let room = parameters.maximumPacketSize - PacketBuilder.header - 4
    append(.selectiveAcknowledgement, acknowledgementBody(room: room), into: &outbox)
    acknowledgement = .none
    toldWindow = freeWindow
    acknowledgementTimer = nil
    duplicates.removeAll(keepingCapacity: true)
  }

  // MARK: - Data

  private mutating func sendLost(at now: Instant, into outbox: inout Outbox<Output>) {
    var freeRoom = isFastRetransmitDue ? builder.room : 0
    isFastRetransmitDue = false
    while let index = sent.firstLost() {
      if isOver(sent.chunks[index], at: now) {
        // Its time passed while the window was closed.
        abandon(index, into: &outbox)
        continue
      }
      let size = sent.chunks[index].size
      let isFree = size <= freeRoom
      guard isFree || mayFly(size), sent.flight == 0 || sent.flight + size <= peerWindow
      else { return }
      if isFree { freeRoom -= size }
      write(sent.chunks[index], number: sent.number(at: index), into: &outbox)
      sent.resend(at: index)
      counters.chunksRetransmitted += 1
      // What comes behind may be acknowledged only when this is (RFC 9260 section 6.3.1, rule C5).
      if let timed, sent.place(of: timed.number) >= index { self.timed = nil }
      if index == 0 || retransmissionTimer == nil { retransmissionTimer = now + roundTrip.timeout }
      lastSent = now
    }
  }

  /// Whether the congestion window lets a chunk go (RFC 9260 section 6.1, rule B).
  private func mayFly(_ size: Int) -> Bool {
    // The packet that reaches the window is filled, and the window exceeded by less than a packet.
    if builder.hasData, size <= builder.room { return true }
    // After a timeout one packet goes, however small its chunks are.
    return sent.flight < window.bytes && !(window.isProbing && sent.flight > 0)
  }

  /// How much of a message the next chunk carries.
  ///
  /// What does not fit into one packet anyway begins in the room that others left in theirs.
  private func partSize(of message: OutgoingMessage, rest: Int) -> Int {
    let most = parameters.maximumPacketSize - PacketBuilder.header - dataHeader
    guard rest > most || message.bytes.count > most, !builder.isEmpty else {
      return min(rest, most)
    }
    let room = (builder.room - dataHeader) & ~3
    return min(rest, room >= 128 ? room : most)
  }

  private mutating func sendNew(at now: Instant, into outbox: inout Outbox<Output>) {
    if let lastSent, sent.isEmpty, unfinished ?? schedule.first != nil {
      window.idle(for: now - lastSent, timeout: roundTrip.timeout)
    }
    while sent.flight < window.bytes || builder.hasData, sent.lostCount == 0,
      sent.count < SCTPLimits.chunksInFlight, let place = unfinished ?? schedule.first
    {
      guard let message = channels[place].queue.first else {
        endTurn(place)
        continue
      }
      if let expiry = message.limits.expiry, now >= expiry, peer.features.contains(.forward) {
        if channels[place].sentOfFirst > 0 {
          abandonBegun(place, into: &outbox)
        } else {
          channels[place].counters.messagesAbandoned += 1
          finishFirst(place, numbered: false, unsent: message.buffered, into: &outbox)
        }
        continue
      }
      let rest = message.bytes.count - channels[place].sentOfFirst
      let count = partSize(of: message, rest: rest)
      let size = (count + dataHeader + 3) & ~3
      guard mayFly(size), sent.flight == 0 || sent.flight + size <= peerWindow else { return }
      sendPart(of: message, place, count: count, isLast: count == rest, at: now, into: &outbox)
    }
  }

  private mutating func sendPart(
    of message: OutgoingMessage, _ place: Int, count: Int, isLast: Bool, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    if unfinished == nil { schedule.popFirst() }
    unfinished = place
    let number = sent.nextNumber
    let offset = channels[place].sentOfFirst
    var flags: DataFlags = message.ordered ? [] : .unordered
    if offset == 0 { flags.insert(.beginning) }
    if isLast { flags.insert(.end) }
    let chunk = SentChunk(
      bytes: message.bytes, offset: offset, count: count, size: (count + dataHeader + 3) & ~3,
      message: message.number, channel: place, stream: channels[place].options.id ?? 0,
      flags: flags, payloadProtocol: message.payloadProtocol,
      order: message.ordered ? channels[place].nextOrdered : channels[place].nextUnordered,
      part: channels[place].partsOfFirst, limits: message.limits, strikeFloor: number &+ 1)
    write(chunk, number: number, into: &outbox)
    sent.append(chunk)
    counters.chunksSent += 1
    channels[place].lastNumber = number
    channels[place].turn += channels[place].cost(chunk.size)
    if timed == nil { timed = (number, now) }
    if retransmissionTimer == nil { retransmissionTimer = now + roundTrip.timeout }
    lastSent = now
    let buffered = min(UInt64(count), message.buffered)
    if isLast {
      finishFirst(place, numbered: true, unsent: buffered, into: &outbox)
    } else {
      channels[place].sentOfFirst += count
      channels[place].partsOfFirst += 1
      lowerBuffered(place, by: buffered, into: &outbox)
      if interleaves { endTurn(place) }
    }
  }

  private mutating func write(
    _ chunk: SentChunk, number: UInt32, into outbox: inout Outbox<Output>
  ) {
    if builder.isEmpty, acknowledgement == .delayed {
      // An acknowledgement that waits goes along when it costs no packet of its own.
      let size = 16 + 4 * (duplicates.count + received.ranges.count)
      if size + chunk.size <= parameters.maximumPacketSize - PacketBuilder.header {
        sendAcknowledgement(into: &outbox)
      }
    }
    makeRoom(for: chunk.size, into: &outbox)
    let isFirst = chunk.flags.contains(.beginning)
    let kind = chunk.payloadProtocol.rawValue
    var fields: [6 of UInt32] = .init(repeating: 0)
    fields[0] = number
    fields[1] = UInt32(chunk.stream) << 16
    if interleaves {
      fields[2] = chunk.order
      fields[3] = isFirst ? kind : chunk.part
    } else {
      fields[1] |= chunk.order & 0xffff
      fields[2] = kind
    }
    builder.chunk(
      interleaves ? .interleavedData : .data, flags: chunk.flags.rawValue, fields: fields,
      count: interleaves ? 4 : 3,
      chunk.bytes.span.bytes.extracting(chunk.offset..<chunk.offset + chunk.count))
  }

  // MARK: - The queue of a channel

  /// Takes the first message off a channel's queue, sent or given up.
  ///
  /// - Parameters:
  ///   - numbered: whether it used up a number of the stream.
  ///   - unsent: how many of its bytes count as buffered until now.
  mutating func finishFirst(
    _ place: Int, numbered: Bool, unsent: UInt64, into outbox: inout Outbox<Output>
  ) {
    if numbered, let message = channels[place].queue.first {
      if message.ordered {
        channels[place].nextOrdered &+= 1
      } else if interleaves {
        channels[place].nextUnordered &+= 1
      }
    }
    channels[place].queue.removeFirst()
    channels[place].queue.releaseSpaceWhenEmpty()
    channels[place].sentOfFirst = 0
    channels[place].partsOfFirst = 0
    endTurn(place)
    lowerBuffered(place, by: unsent, into: &outbox)
  }

  /// Ends the turn of a channel, which gets a later one when it has more to send.
  private mutating func endTurn(_ place: Int) {
    if unfinished == place { unfinished = nil } else { schedule.remove(place) }
    if channels[place].queue.isEmpty {
      if channels[place].state == .closing { wantReset(place) }
    } else {
      schedule.push(place, time: channels[place].turn)
    }
  }

  private mutating func lowerBuffered(
    _ place: Int, by amount: UInt64, into outbox: inout Outbox<Output>
  ) {
    guard amount > 0 else { return }
    let before = channels[place].bufferedAmount
    let after = before - min(before, amount)
    channels[place].bufferedAmount = after
    let threshold = channels[place].lowThreshold
    if before > threshold, after <= threshold {
      outbox.append(.bufferedAmountLow(channels[place].number))
    }
  }

  /// Puts a message at the end of a channel's queue.
  mutating func enqueue(_ message: OutgoingMessage, on place: Int) {
    channels[place].queue.append(message)
    if channels[place].queue.count == 1 {
      channels[place].turn = max(channels[place].turn, schedule.now)
      schedule.push(place, time: channels[place].turn)
    }
  }
}
