import CProcess
package import Foundation
import Glibc

/// A pipe between this process and a child of it.
///
/// Foundation's own ends the process where no descriptor is left.
package struct ChildPipe {
  package let reading: FileHandle
  package let writing: FileHandle

  /// - Throws: `SystemError` when there is no descriptor left.
  package init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    try checked("make a pipe", cprocess_pipe(&ends))
    reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    writing = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
  }

  /// Leaves the end that the child writes to the child, so that reading ends with it.
  package func closeWriting() { try? writing.close() }

  /// Leaves the end that the child reads to the child.
  package func closeReading() { try? reading.close() }

  /// Reads until the child has closed its end, or has written so much.
  package func readAll(atMost maximum: Int) -> String {
    var bytes: [UInt8] = []
    while bytes.count < maximum, let data = try? reading.read(upToCount: 1 << 16), !data.isEmpty {
      bytes += data
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the child has closed its end, and gives the last bytes of what it wrote.
  package func readLast(_ count: Int) -> String {
    var bytes: [UInt8] = []
    while let data = try? reading.read(upToCount: 1 << 12), !data.isEmpty {
      bytes = (bytes + data).suffix(count)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
