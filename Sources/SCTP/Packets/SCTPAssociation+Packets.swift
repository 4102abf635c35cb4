import Wire

/// Packets from the peer: the header, and who handles which chunk.
extension SCTPAssociation {
  mutating func receive(_ bytes: [UInt8], at now: Instant, into outbox: inout Outbox<Output>) {
    if phase == .idle {
      if early.count < SCTPLimits.earlyPackets { early.append(bytes) } else { drop() }
      return
    }
    if phase == .ended { return answerOutOfTheBlue(bytes, into: &outbox) }
    guard accepts(bytes) else {
      if phase == .cookieWait || phase == .cookieEchoed {
        answerOldShutdown(bytes, into: &outbox)
      }
      return drop()
    }
    counters.packetsReceived += 1
    hasData = false
    do throws(ReadError) {
      var reader = ByteReader(bytes.span.bytes)
      try reader.skip(PacketBuilder.header)
      var isFirst = true
      while reader.remaining >= 4, phase != .ended {
        let type = ChunkType(rawValue: try reader.uint8())
        let flags = try reader.uint8()
        let length = Int(try reader.uint16())
        guard length >= 4 else { throw .malformed }
        let body = try reader.span(length - 4)
        try reader.skip(min(-length & 3, reader.remaining))
        guard type.mayStand(isFirst: isFirst, isAlone: isFirst && reader.remaining < 4) else {
          drop()
          break
        }
        isFirst = false
        guard handle(type, flags, body, at: now, into: &outbox) else { break }
      }
    } catch {
      drop()
    }
    if hasData { settleReceived(at: now, into: &outbox) }
  }

  /// Whether a packet belongs to the association (RFC 9260 section 8.5).
  private func accepts(_ bytes: [UInt8]) -> Bool {
    guard isWhole(bytes) else { return false }
    var reader = ByteReader(bytes.span.bytes)
    guard (try? reader.skip(4)) != nil, let tag = try? reader.uint32() else { return false }
    let isReflected = bytes[13] & 1 == 1
    switch ChunkType(rawValue: bytes[12]) {
    case .initiation: return tag == 0
    case .abort,
      .shutdownComplete where isReflected:
      return tag == (isReflected ? peer.tag : localTag) && tag != 0
    // The cookie of a restarted peer comes with the tag that the answer offered.
    case .cookieEcho: return tag != 0
    default: return tag == localTag
    }
  }

  /// Whether a packet is long enough, between the two ports, and unaltered.
  func isWhole(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= PacketBuilder.header + 4, bytes.count <= 65536 else { return false }
    var reader = ByteReader(bytes.span.bytes)
    guard let source = try? reader.uint16(), let destination = try? reader.uint16(),
      source == parameters.remotePort, destination == parameters.localPort,
      (try? reader.skip(4)) != nil, let checksum = try? reader.uint32()
    else { return false }
    let type = ChunkType(rawValue: bytes[12])
    if checksum == 0, parameters.offersZeroChecksum, type != .initiation, type != .cookieEcho {
      return true
    }
    return CRC32C.checksum(of: bytes.span.bytes).byteSwapped == checksum
  }

  /// Handles a chunk; false ends the packet.
  private mutating func handle(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Bool {
    switch type {
    case .data, .interleavedData:
      receiveData(body, flags, interleaved: type == .interleavedData, at: now, into: &outbox)
    case .selectiveAcknowledgement: receiveAcknowledgement(body, at: now, into: &outbox)
    case .forward, .interleavedForward:
      receiveForward(body, interleaved: type == .interleavedForward, at: now, into: &outbox)
    case .initiation:
      receiveInitiation(body, at: now, into: &outbox)
      return false
    case .initiationAcknowledgement:
      receiveInitiationAcknowledgement(body, at: now, into: &outbox)
      return false
    case .cookieEcho: receiveCookie(body, at: now, into: &outbox)
    case .cookieAcknowledgement: receiveCookieAcknowledgement(at: now, into: &outbox)
    case .reconfiguration: receiveReconfiguration(body, at: now, into: &outbox)
    case .heartbeat: answerHeartbeat(body, into: &outbox)
    case .heartbeatAcknowledgement: receiveHeartbeatAcknowledgement(body, at: now)
    case .abort: receiveAbort(body, into: &outbox)
    case .error: receiveError(body, into: &outbox)
    case .shutdown: receiveShutdown(body, at: now, into: &outbox)
    case .shutdownAcknowledgement: receiveShutdownAcknowledgement(into: &outbox)
    case .shutdownComplete:
      if phase == .shutdownAcknowledgementSent { end(into: &outbox) } else { drop() }
    case .padding: break
    default:
      drop()
      if type.isReportedWhenUnknown, isEstablished { report(type, flags, body, into: &outbox) }
      return type.isSkippedWhenUnknown
    }
    return true
  }

  private mutating func report(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, into outbox: inout Outbox<Output>
  ) {
    var chunk = ByteWriter()
    chunk.uint8(type.rawValue)
    chunk.uint8(flags)
    chunk.uint16(UInt16(truncatingIfNeeded: body.byteCount + 4))
    // The whole chunk, if there is room for it.
    let room = parameters.maximumPacketSize - PacketBuilder.header - 12
    chunk.append(body.extracting(0..<min(body.byteCount, room & ~3)))
    var cause = ByteWriter()
    cause.parameter(ErrorCause.unrecognizedChunk.rawValue, chunk.bytes)
    append(.error, cause.bytes, into: &outbox)
  }

  private mutating func receiveAbort(_ body: RawSpan, into outbox: inout Outbox<Output>) {
    var reader = ByteReader(body)
    var cause: UInt16 = 0
    _ = reader.parameter(&cause)
    // Peers that close without a shutdown give that cause or none.
    if cause == 0 || cause == ErrorCause.userInitiated.rawValue {
      end(into: &outbox)
    } else {
      end("the peer aborted the association (cause \(cause))", into: &outbox)
    }
  }

  private mutating func receiveError(_ body: RawSpan, into outbox: inout Outbox<Output>) {
    var reader = ByteReader(body)
    var cause: UInt16 = 0
    guard reader.parameter(&cause) != nil, cause == ErrorCause.staleCookie.rawValue,
      phase == .cookieEchoed
    else { return }
    // A new INIT gets a fresh cookie when the timer passes (RFC 9260 section 5.2.6).
    phase = .cookieWait
  }

  private mutating func answerHeartbeat(_ body: RawSpan, into outbox: inout Outbox<Output>) {
    guard body.byteCount <= parameters.maximumPacketSize - PacketBuilder.header - 4,
      phase != .cookieWait
    else { return drop() }
    append(.heartbeatAcknowledgement, [UInt8](body), into: &outbox)
  }

  private mutating func receiveHeartbeatAcknowledgement(_ body: RawSpan, at now: Instant) {
    var reader = ByteReader(body)
    var type: UInt16 = 0
    guard let value = reader.parameter(&type) else { return drop() }
    var inner = ByteReader(value)
    guard let beat = heartbeat, (try? inner.uint64()) == beat.nonce else { return drop() }
    heartbeat = nil
    silentTimeouts = 0
    roundTrip.measure(now - beat.at)
  }

  /// Asks an idle peer for a sign of life (RFC 9260 section 8.3).
  mutating func beat(at now: Instant, into outbox: inout Outbox<Output>) {
    heartbeatTimer = now + SCTPLimits.heartbeatInterval
    guard isEstablished, sent.isEmpty else { return }
    if heartbeat != nil {
      silentTimeouts += 1
      guard silentTimeouts <= SCTPLimits.associationRetries else {
        return end("the peer is silent", into: &outbox)
      }
    }
    let nonce = entropy.integer(UInt64.self)
    heartbeat = (nonce, now)
    var value = ByteWriter()
    value.uint64(nonce)
    var body = ByteWriter()
    body.parameter(ParameterType.heartbeatInformation.rawValue, value.bytes)
    append(.heartbeat, body.bytes, into: &outbox)
  }
}
