import CProcess
package import Tape

/// A pipe between this process and a child of it.
package struct ChildPipe {
  package let reading: FileDescriptor
  package let writing: FileDescriptor

  /// - Throws: `SystemError` when there is no descriptor left.
  package init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    try checked("make a pipe", cprocess_pipe(&ends))
    (reading, writing) = (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
  }

  /// Leaves the end that the child writes to the child, so that reading ends with it.
  package func closeWriting() { writing.close() }

  /// Leaves the end that the child reads to the child.
  package func closeReading() { reading.close() }

  /// Reads until the child has closed its end, or has written so much.
  package func readAll(atMost maximum: Int) -> String {
    var bytes: [UInt8] = []
    while bytes.count < maximum {
      let more = reading.read(atMost: 1 << 16)
      if more.isEmpty { break }
      bytes += more
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the child has closed its end, and returns the last bytes of what it wrote.
  package func readLast(_ count: Int) -> String {
    var bytes: [UInt8] = []
    while true {
      let more = reading.read(atMost: 1 << 12)
      if more.isEmpty { return String(decoding: bytes, as: UTF8.self) }
      bytes = (bytes + more).suffix(count)
    }
  }
}
