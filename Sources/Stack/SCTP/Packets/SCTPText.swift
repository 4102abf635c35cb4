import Wire

/// An SCTP packet in words, for people who look into a take; any bytes are fine.
package enum SCTPText {
  /// How many chunks are told.
  private static let chunksMaximum = 16

  /// The chunks of a packet on one line: `SCTP SACK up to 7, DATA 12 ...`.
  package static func title(_ packet: RawSpan) -> String {
    var chunks: [String] = []
    var reader = ByteReader(packet)
    try? reader.skip(PacketBuilder.header)
    while chunks.count < chunksMaximum, reader.remaining >= 4 {
      guard let type = try? reader.uint8(), let flags = try? reader.uint8(),
        let length = try? reader.uint16(), length >= 4,
        let body = try? reader.span(Int(length) - 4)
      else {
        chunks.append("a chunk that is cut off")
        break
      }
      try? reader.skip(min(-Int(length) & 3, reader.remaining))
      chunks.append(chunk(ChunkType(rawValue: type), flags, body))
    }
    return "SCTP " + (chunks.isEmpty ? "\(packet.byteCount) bytes" : chunks.joined(separator: "; "))
  }

  private static func chunk(_ type: ChunkType, _ flags: UInt8, _ body: RawSpan) -> String {
    var reader = ByteReader(body)
    switch type {
    case .data, .interleavedData:
      return (try? data(type == .interleavedData, DataFlags(rawValue: flags), &reader))
        ?? "DATA that is cut off"
    case .selectiveAcknowledgement:
      return (try? acknowledgement(&reader)) ?? "SACK that is cut off"
    case .forward, .interleavedForward:
      let number = try? reader.uint32()
      return "FORWARD-TSN up to \(number.map { String($0) } ?? "?")"
    case .reconfiguration: return "RE-CONFIG " + reconfiguration(&reader)
    case .abort, .error:
      var cause: UInt16 = 0
      _ = reader.parameter(&cause)
      return (type == .abort ? "ABORT" : "ERROR") + (cause == 0 ? "" : " cause \(cause)")
    default:
      return names.first { $0.0 == type }?.1 ?? "chunk of type \(type.rawValue)"
    }
  }

  private static func data(
    _ interleaved: Bool, _ flags: DataFlags, _ reader: inout ByteReader
  ) throws(ReadError) -> String {
    let number = try reader.uint32()
    let stream = try reader.uint16()
    let sequence = UInt32(try reader.uint16())
    let message = interleaved ? try reader.uint32() : sequence
    let word = try reader.uint32()
    let isFirst = flags.contains(.beginning)
    var words = ["\(interleaved ? "I-DATA" : "DATA") \(number) on stream \(stream)"]
    words.append(flags.contains(.unordered) ? "unordered" : "message \(message)")
    if !interleaved || isFirst { words.append(kind(PayloadProtocol(rawValue: word), reader)) }
    switch (isFirst, flags.contains(.end)) {
    case (true, true): break
    case (true, false): words.append("first part")
    case (false, true): words.append("last part")
    case (false, false): words.append("part")
    }
    words.append("\(reader.remaining) bytes")
    return words.joined(separator: ", ")
  }

  private static func kind(_ kind: PayloadProtocol, _ reader: borrowing ByteReader) -> String {
    switch kind {
    case .control:
      let rest = copy reader
      switch try? ChannelMessage(rest.rest()) {
      case .open(let options): return "OPEN \"\(options.label)\""
      case .acknowledgement: return "OPEN acknowledged"
      case nil: return "control"
      }
    case .string, .stringPart: return "text"
    case .emptyString: return "empty text"
    case .binary, .binaryPart: return "binary"
    case .emptyBinary: return "empty binary"
    default: return "protocol \(kind.rawValue)"
    }
  }

  private static func acknowledgement(_ reader: inout ByteReader) throws(ReadError) -> String {
    let cumulative = try reader.uint32()
    let window = try reader.uint32()
    let gaps = try reader.uint16()
    let duplicates = try reader.uint16()
    var words = ["SACK up to \(cumulative)", "window \(window)"]
    if gaps > 0 { words.append("\(gaps) ranges above") }
    if duplicates > 0 { words.append("\(duplicates) came twice") }
    return words.joined(separator: ", ")
  }

  private static func reconfiguration(_ reader: inout ByteReader) -> String {
    var words: [String] = []
    var type: UInt16 = 0
    while words.count < 4, let value = reader.parameter(&type) {
      var inner = ByteReader(value)
      switch ParameterType(rawValue: type) {
      case .outgoingResetRequest:
        try? inner.skip(min(12, inner.remaining))
        var streams: [String] = []
        while let stream = try? inner.uint16(), streams.count < 16 { streams.append("\(stream)") }
        words.append("resets " + (streams.isEmpty ? "all" : streams.joined(separator: " ")))
      case .reconfigurationResponse:
        try? inner.skip(min(4, inner.remaining))
        let result = (try? inner.uint32()).map { ResetResult(rawValue: $0) }
        words.append(result == .performed ? "performed" : "answered \(result?.rawValue ?? 0)")
      default: words.append("request of type \(type)")
      }
    }
    return words.joined(separator: ", ")
  }

  private static let names: [(ChunkType, String)] = [
    (.initiation, "INIT"), (.initiationAcknowledgement, "INIT ACK"), (.heartbeat, "HEARTBEAT"),
    (.heartbeatAcknowledgement, "HEARTBEAT ACK"), (.shutdown, "SHUTDOWN"),
    (.shutdownAcknowledgement, "SHUTDOWN ACK"), (.cookieEcho, "COOKIE ECHO"),
    (.cookieAcknowledgement, "COOKIE ACK"), (.shutdownComplete, "SHUTDOWN COMPLETE"),
    (.padding, "PAD"),
  ]
}
