import FoundationEssentials
package import Observer
import Tape
import Wire

/// Reads the bytes of a capture as they come, compressed or not, down to events.
package final class CaptureFeed {
  private let name: String
  private let notice: (String) -> Void
  private(set) var reader = CaptureReader()
  /// The first bytes, until they tell whether they are compressed.
  private var head: [UInt8]? = []
  private var decompression: Decompression?
  private var cutBytes: UInt64 = 0
  private var hasIncompleteCompression = false

  /// The frame counters so far, including damage at the end once that was read.
  package var counters: CaptureCounters {
    var counters = reader.counters
    counters.cutBytes = cutBytes
    counters.hasIncompleteCompression = hasIncompleteCompression
    return counters
  }

  /// - Parameters:
  ///   - name: what the capture is called in errors.
  ///   - notice: gets a sentence for each kind of damage.
  package init(_ name: String, notice: @escaping (String) -> Void) {
    self.name = PrintableText.line(name)
    self.notice = notice
  }

  /// Reads a whole capture, piece by piece; `-` is standard input.
  ///
  /// - Parameters:
  ///   - what: what is done with it, for who watches.
  ///   - isAgain: whether it was read before, so that its damage was reported already.
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

  /// Receives further bytes, and hands on the events that they complete.
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

  /// Ends the capture: says so where bytes are missing at its end.
  ///
  /// - Parameters:
  ///   - isWhole: whether its end was reached; false when somebody stopped the reading.
  ///   - isAgain: whether it was read before, so that its damage was reported already.
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
        "\(name): \(damage); \(counters.damagedBytes) bytes are left out, what stands around them "
          + "is used")
    }
    if let decompression, !decompression.isComplete {
      hasIncompleteCompression = true
      guard !isAgain else { return }
      notice("\(name): the compressed data end early; what came before the end is used")
    } else if reader.isRecognised, reader.waitingCount > 0 {
      cutBytes = UInt64(reader.waitingCount)
      guard !isAgain else { return }
      notice(
        "\(name): the capture ends in the middle of a record; its last \(cutBytes) bytes are left "
          + "out, what came before is used")
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
