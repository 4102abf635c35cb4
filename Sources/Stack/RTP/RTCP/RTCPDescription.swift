import Wire

/// Canonical names of sources (RFC 3550 section 6.5); other items are skipped.
package struct SourceDescription: Hashable, Sendable {
  /// A source and its canonical name, empty if absent.
  package struct Chunk: Hashable, Sendable {
    package var ssrc: UInt32
    package var cname: String

    package init(ssrc: UInt32, cname: String) {
      self.ssrc = ssrc
      self.cname = cname
    }
  }

  package var chunks: [Chunk]

  package init(chunks: [Chunk]) { self.chunks = chunks }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    chunks = []
    for _ in 0..<count {
      let start = reader.offset
      var chunk = Chunk(ssrc: try reader.uint32(), cname: "")
      while true {
        let item = try reader.uint8()
        if item == 0 { break }
        let text = try reader.span(Int(try reader.uint8()))
        if item == 1 { chunk.cname = String(decoding: [UInt8](text), as: UTF8.self) }
      }
      // A chunk is padded to a 32-bit boundary.
      try reader.skip((4 - (reader.offset - start) % 4) % 4)
      chunks.append(chunk)
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.sourceDescription, count: min(31, chunks.count))
    for chunk in chunks.prefix(31) {
      let name = Array(chunk.cname.utf8.prefix(255))
      let chunkStart = writer.count
      writer.uint32(chunk.ssrc)
      writer.uint8(1)
      writer.uint8(UInt8(name.count))
      writer.append(name)
      writer.uint8(0)
      writer.zeros((4 - (writer.count - chunkStart) % 4) % 4)
    }
    writer.endRTCP(start)
  }
}

/// Sources that leave (RFC 3550 section 6.6).
package struct Goodbye: Hashable, Sendable {
  package var ssrcs: [UInt32]
  package var reason: String

  package init(ssrcs: [UInt32], reason: String = "") {
    self.ssrcs = ssrcs
    self.reason = reason
  }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    ssrcs = []
    for _ in 0..<count { ssrcs.append(try reader.uint32()) }
    reason = ""
    guard !reader.isAtEnd else { return }
    let text = try reader.span(Int(try reader.uint8()))
    reason = String(decoding: [UInt8](text), as: UTF8.self)
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.goodbye, count: min(31, ssrcs.count))
    for ssrc in ssrcs.prefix(31) { writer.uint32(ssrc) }
    if !reason.isEmpty {
      let text = Array(reason.utf8.prefix(255))
      writer.uint8(UInt8(text.count))
      writer.append(text)
    }
    writer.endRTCP(start)
  }
}
