import CZlib
import CZstd
import FoundationEssentials
import Glibc
package import Observer
package import Tape
import Wire

/// Reads a capture's bytes as they arrive, compressed or not, and delivers the events in them.
package final class CaptureFeed {
  private let name: String
  private let notice: (String) -> Void
  private(set) var reader = CaptureReader()
  /// The first bytes, kept until they reveal whether the capture is compressed; nil after that.
  private var head: [UInt8]? = []
  private var decompression: Decompression?
  private var cutBytes: UInt64 = 0
  private var hasIncompleteCompression = false

  /// The frame counters so far; after `finish`, they include damage found at the end.
  package var counters: CaptureCounters {
    var counters = reader.counters
    counters.cutBytes = cutBytes
    counters.hasIncompleteCompression = hasIncompleteCompression
    return counters
  }

  /// - Parameters:
  ///   - name: the capture's name in error messages.
  ///   - notice: receives a sentence for each kind of damage.
  package init(_ name: String, notice: @escaping (String) -> Void) {
    self.name = PrintableText.line(name)
    self.notice = notice
  }

  /// Reads a complete capture piece by piece; `-` is standard input.
  ///
  /// - Parameters:
  ///   - what: the progress line's text.
  ///   - isAgain: whether the capture was read before, in which case its damage has already been
  ///     reported.
  package static func read(
    _ path: String, _ what: String, isAgain: Bool = false, _ reports: ImportReports,
    _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws -> CaptureCounters {
    let source = try DescriptorSource(path)
    let feed = CaptureFeed(path, notice: reports.notice)
    reports.progress(what, 0)
    defer { reports.end() }
    var bytes: [UInt8] = []
    var read = 0
    while true {
      bytes.removeAll(keepingCapacity: true)
      guard try source.read(into: &bytes, waiting: -1) else { break }
      read += bytes.count
      reports.progress(what, read)
      try feed.receive(bytes, each)
    }
    try feed.finish(isAgain: isAgain, each)
    return feed.counters
  }

  /// Reads further bytes, and delivers the events that they complete.
  package func receive(
    _ bytes: [UInt8], _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws {
    var bytes = bytes
    if let before = head {
      bytes = before + bytes
      guard bytes.count >= Decompression.Format.headLength else { return head = bytes }
      head = nil
      if let format = Decompression.Format(bytes) {
        do throws(Decompression.Damage) {
          decompression = try Decompression(format)
        } catch {
          throw TapeError(path: name, place: "", reason: error.reason, kind: .failed)
        }
      }
    }
    guard let decompression else { return try read(bytes, each) }
    do {
      try decompression.expand(bytes) { try read($0, each) }
    } catch let damage as Decompression.Damage {
      throw TapeError(path: name, place: "", reason: damage.reason)
    }
  }

  /// Ends the capture, and reports any damage and an incomplete end.
  ///
  /// - Parameters:
  ///   - isWhole: whether the capture's end was reached; false if reading was stopped.
  ///   - isAgain: whether the capture was read before, in which case its damage has already been
  ///     reported.
  package func finish(
    isWhole: Bool = true, isAgain: Bool = false,
    _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws {
    if let bytes = head { try read(bytes, each) }
    head = nil
    guard isWhole else { return }
    reader.finish()
    while let event = try next() { try each(event, reader) }
    if let damage = reader.damage, !isAgain {
      let counters = reader.counters
      notice(
        "\(name): \(damage); \(counters.damagedBytes) bytes are left out, and what is around them "
          + "is used")
    }
    if let decompression, !decompression.isComplete {
      hasIncompleteCompression = true
      guard !isAgain else { return }
      notice("\(name): the compressed data are cut off; the part before that is used")
    } else if reader.isRecognised, reader.waitingCount > 0 {
      cutBytes = UInt64(reader.waitingCount)
      guard !isAgain else { return }
      notice(
        "\(name): the capture ends in the middle of a record; its last \(cutBytes) bytes are left "
          + "out, and the part before them is used")
    }
  }

  private func read(
    _ bytes: [UInt8], _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws {
    reader.append(bytes.span.bytes)
    while let event = try next() { try each(event, reader) }
  }

  private func next() throws(TapeError) -> CaptureEvent? {
    do throws(CaptureError) {
      return try reader.next()
    } catch {
      throw TapeError(path: name, place: "", reason: "\(error)")
    }
  }
}

// MARK: - CaptureSource

/// A source of a capture's bytes, such as a file, a pipe or a live interface.
package protocol CaptureSource: AnyObject {
  /// Waits up to `milliseconds` for bytes, and puts the available bytes into `bytes`, which must be
  /// empty.
  ///
  /// - Returns: whether more bytes may arrive.
  func read(into bytes: inout [UInt8], waiting milliseconds: Int32) throws(TapeError)
    -> Bool

  /// Returns the number of frames that the system lost since the last call; 0 if unknown.
  func removeDropped() -> UInt64
}

/// A file, or a pipe from another program.
package final class DescriptorSource: CaptureSource {
  private let handle: FileDescriptor
  private let name: String

  static let pieceLength = 1 << 20

  /// Opens a file; `-` is standard input.
  package init(_ path: String) throws(TapeError) {
    name = PrintableText.line(path)
    if path == "-" {
      handle = FileDescriptor(STDIN_FILENO, isOwned: false)
      return
    }
    switch FileBytes.open(path) {
    case .success(let descriptor):
      handle = FileDescriptor(descriptor)
    case .failure(let code):
      throw TapeError(
        path: name, place: "",
        reason: code.number == ENOENT ? "there is no such file" : "it cannot be read: \(code)",
        kind: .missing)
    }
  }

  package func read(into bytes: inout [UInt8], waiting milliseconds: Int32)
    throws(TapeError) -> Bool
  {
    var ready = pollfd(fd: handle.number, events: Int16(POLLIN), revents: 0)
    guard poll(&ready, 1, milliseconds) > 0 else { return true }
    let descriptor = handle.number
    var code: Int32 = 0
    let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceLength) { buffer, count in
      let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      code = got < 0 ? errno : 0
      count = max(got, 0)
    }
    if code == EINTR || code == EAGAIN { return true }
    guard code == 0 else {
      throw TapeError(
        path: name, place: "", reason: "it cannot be read: \(SystemCode(code))", kind: .failed)
    }
    bytes = piece
    return !piece.isEmpty
  }

  package func removeDropped() -> UInt64 { 0 }
}

// MARK: - Decompression

/// Decompresses a capture piece by piece, so that memory does not grow with its size.
final class Decompression {
  /// The compression formats, recognized by the first bytes.
  enum Format {
    /// RFC 1952.
    case gzip
    /// RFC 8878.
    case zstd

    /// The number of bytes that identify the format.
    static let headLength = 4

    /// Detects the format by the first bytes; fails if they match neither format.
    init?(_ bytes: [UInt8]) {
      if bytes.starts(with: [0x1f, 0x8b, 8]) {
        self = .gzip
      } else if bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) {
        self = .zstd
      } else {
        return nil
      }
    }
  }

  /// Thrown for invalid compressed bytes, or if memory runs out.
  struct Damage: Error {
    var reason: String
  }

  /// The length of a decompressed piece, in bytes.
  private static let pieceLength = 1 << 20
  /// The base-2 logarithm of the largest accepted window: 128 MB, the default limit of zstd.
  private static let windowLogarithm: Int32 = 27

  private enum Engine {
    /// zlib's state, which contains a pointer to itself, so it must not move.
    case gzip(UnsafeMutablePointer<z_stream>)
    case zstd(OpaquePointer)
  }

  private let engine: Engine
  /// Whether the latest gzip member or zstd frame is complete; true before the first one.
  private(set) var isComplete = true
  /// Whether a gzip member was followed by bytes that begin no other member; they are ignored.
  private var isOver = false

  init(_ format: Format) throws(Damage) {
    switch format {
    case .gzip:
      let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
      stream.initialize(to: z_stream())
      // 15 is the largest window, and 16 makes zlib expect a gzip header.
      let code = inflateInit2_(
        stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
      engine = .gzip(stream)
      guard code == Z_OK else { throw Damage(reason: "there is no memory to decompress it") }
    case .zstd:
      guard let stream = ZSTD_createDStream() else {
        throw Damage(reason: "there is no memory to decompress it")
      }
      engine = .zstd(stream)
      _ = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLogarithm)
    }
  }

  deinit {
    switch engine {
    case .gzip(let stream):
      inflateEnd(stream)
      stream.deallocate()
    case .zstd(let stream): ZSTD_freeDStream(stream)
    }
  }

  /// Decompresses further bytes, and delivers each piece before decompressing the next.
  func expand(_ bytes: [UInt8], _ take: ([UInt8]) throws -> Void) throws {
    var taken = 0
    while !isOver {
      var step: (taken: Int, isDone: Bool) = (0, true)
      var failure: Damage?
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceLength) { room, count in
        do throws(Damage) {
          step = try advance(bytes, from: taken, into: room, &count)
        } catch {
          failure = error
        }
      }
      taken += step.taken
      if !piece.isEmpty { try take(piece) }
      if let failure { throw failure }
      if step.isDone { return }
    }
  }

  /// Decompresses until the bytes are used up, the output is full, or a gzip member or zstd frame
  /// ends.
  private func advance(
    _ bytes: [UInt8], from start: Int, into room: UnsafeMutableBufferPointer<UInt8>,
    _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    switch engine {
    case .gzip(let stream): try inflate(stream, bytes, start, room, &count)
    case .zstd(let stream): try expand(stream, bytes, start, room, &count)
    }
  }

  private func inflate(
    _ stream: UnsafeMutablePointer<z_stream>, _ bytes: [UInt8], _ start: Int,
    _ room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    if isComplete, start < bytes.count {
      // Another gzip member may follow (RFC 1952 section 2.2).
      isOver = bytes[start] != 0x1f
      guard !isOver else { return (bytes.count - start, true) }
      inflateReset(stream)
      isComplete = false
    }
    let (code, left) = bytes.withUnsafeBufferPointer { input in
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: input.baseAddress.map { $0 + start })
      stream.pointee.avail_in = UInt32(clamping: bytes.count - start)
      stream.pointee.next_out = room.baseAddress
      stream.pointee.avail_out = UInt32(clamping: room.count)
      let code = CZlib.inflate(stream, Z_NO_FLUSH)
      return (code, Int(stream.pointee.avail_in))
    }
    count = room.count - Int(stream.pointee.avail_out)
    isComplete = code == Z_STREAM_END
    // Z_BUF_ERROR is not an error: there was nothing left to do.
    guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
      throw Damage(reason: "its gzip data are damaged")
    }
    return (bytes.count - start - left, left == 0 && (count < room.count || isComplete))
  }

  private func expand(
    _ stream: OpaquePointer, _ bytes: [UInt8], _ start: Int,
    _ room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
  ) throws(Damage) -> (taken: Int, isDone: Bool) {
    var output = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
    let (code, position) = bytes.withUnsafeBufferPointer { input in
      var input = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: start)
      let code = ZSTD_decompressStream(stream, &output, &input)
      return (code, input.pos)
    }
    count = output.pos
    guard ZSTD_isError(code) == 0 else {
      throw Damage(
        reason: "its zstd data are damaged: \(String(cString: ZSTD_getErrorName(code)))")
    }
    isComplete = code == 0
    return (position - start, position == bytes.count && count < room.count)
  }
}
