import Foundation
import Observer
import Wire

/// A capture's complete content.
struct WholeCapture {
  var datagrams: [(at: Int64, tuple: FiveTuple, isTruncated: Bool, bytes: [UInt8])] = []
  /// The ECN marks, one for each datagram.
  var marks: [ECNMark] = []
  var streams: [(tuple: FiveTuple, lost: Int, isEnd: Bool, bytes: [UInt8])] = []
  var secrets: [[UInt8]] = []
  var comments: [String] = []
  var dropped: UInt64 = 0
  var counters = CaptureCounters()
  var waiting = 0
}

/// Reads a capture to its end, including what a damaged last record hides.
func readAll(_ bytes: [UInt8]) throws(CaptureError) -> WholeCapture {
  var whole = WholeCapture()
  var reader = CaptureReader()
  reader.append(bytes.span.bytes)
  var hasEnded = false
  while true {
    guard let event = try reader.next() else {
      if hasEnded { break }
      hasEnded = true
      reader.finish()
      continue
    }
    switch event {
    case .datagram(let datagram):
      whole.datagrams.append(
        (
          datagram.unixNanoseconds, datagram.tuple, datagram.isTruncated,
          [UInt8](reader.bytes(datagram.payload))
        ))
      whole.marks.append(datagram.ecn)
    case .stream(let piece):
      whole.streams.append(
        (piece.tuple, piece.lost, piece.isEnd, [UInt8](reader.bytes(piece.payload))))
    case .secrets(_, let place): whole.secrets.append([UInt8](reader.bytes(place)))
    case .comment(let text): whole.comments.append(text)
    case .dropped(let count): whole.dropped += count
    }
  }
  whole.counters = reader.counters
  whole.waiting = reader.waitingCount
  return whole
}

func sample(_ name: String) throws -> [UInt8] {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  return Array(try Data(contentsOf: folder.appending(path: "Samples/\(name)")))
}
