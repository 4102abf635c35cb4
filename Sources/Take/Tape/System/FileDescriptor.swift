import Glibc
import Synchronization

/// A descriptor of the system, closed when it is let go of.
package final class FileDescriptor: Sendable {
  private let descriptor: Mutex<Int32>
  private let isOwned: Bool

  /// - Parameter isOwned: whether it is closed in the end.
  package init(_ number: Int32, isOwned: Bool = true) {
    descriptor = Mutex(number)
    self.isOwned = isOwned
  }

  deinit { if isOwned { close() } }

  /// Its number; -1 once it is closed.
  package var number: Int32 { descriptor.withLock { $0 } }

  /// Closes it, where that has not been done yet.
  package func close() {
    descriptor.withLock { number in
      if number >= 0 { Glibc.close(number) }
      number = -1
    }
  }

  /// The size of its file in bytes; nil if that is unknown.
  package var size: UInt64? {
    var status = stat()
    return fstat(number, &status) == 0 ? UInt64(clamping: status.st_size) : nil
  }

  /// Waits for bytes and reads up to so many; none at the end, and where it cannot be read.
  /// - Parameter offset: where to read in a file; nil continues after what was read before.
  package func read(atMost maximum: Int, from offset: UInt64? = nil) -> [UInt8] {
    let number = number
    return [UInt8](unsafeUninitializedCapacity: maximum) { target, count in
      while true {
        let got =
          offset.map { pread(number, target.baseAddress, maximum, off_t(clamping: $0)) }
          ?? Glibc.read(number, target.baseAddress, maximum)
        if got < 0, errno == EINTR { continue }
        count = max(got, 0)
        return
      }
    }
  }

  /// Waits until all bytes are written; false where that fails, as where nobody reads a pipe.
  package func write(_ bytes: [UInt8]) -> Bool {
    let number = number
    return bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let put = Glibc.write(number, part.baseAddress, part.count)
        if put < 0, errno == EINTR { continue }
        guard put > 0 else { return false }
        rest = rest.dropFirst(put)
      }
      return true
    }
  }
}
