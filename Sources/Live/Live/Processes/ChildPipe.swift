import CProcess
package import Tape

/// A pipe between this process and a child.
package struct ChildPipe {
  package let reading: FileDescriptor
  package let writing: FileDescriptor

  /// - Throws: `SystemError` if there is no descriptor left.
  package init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    try checked("make a pipe", cprocess_pipe(&ends))
    (reading, writing) = (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
  }

  /// Closes the child's end in this process, so that reading ends with the child.
  package func closeWriting() { writing.close() }

  /// Closes the child's reading end in this process.
  package func closeReading() { reading.close() }

  /// Reads until the child has closed its end, or has written this much.
  package func readAll(atMost maximum: Int) -> String {
    var bytes: [UInt8] = []
    while bytes.count < maximum {
      let more = reading.read(atMost: 1 << 16)
      if more.isEmpty { break }
      bytes += more
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the child has closed its end, and returns the last bytes.
  package func readLast(_ count: Int) -> String {
    var bytes: [UInt8] = []
    while true {
      let more = reading.read(atMost: 1 << 12)
      if more.isEmpty { return String(decoding: bytes, as: UTF8.self) }
      bytes = (bytes + more).suffix(count)
    }
  }
}
