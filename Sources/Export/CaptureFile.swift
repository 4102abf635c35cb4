import CPcap
import Foundation
import Tape

/// A packet capture with nanosecond times that begins at the IP headers, written through libpcap.
final class CaptureFile {
  private let path: String
  /// What gets its name when it is complete; nil for standard output.
  private let whole: WholeFile?
  private let capture: OpaquePointer
  private let dumper: OpaquePointer

  /// Creates the file, readable by its owner alone; it must not exist.
  ///
  /// - Parameter path: the file; `-` is standard output.
  init(_ path: String) throws(ExportFailure) {
    self.path = path
    if path == "-" {
      whole = nil
    } else {
      whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
        try WholeFile(path, .kept)
      }
    }
    let descriptor =
      whole.map { open($0.temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600) } ?? dup(STDOUT_FILENO)
    guard descriptor >= 0 else { throw CaptureFile.failure(path) }
    guard let stream = fdopen(descriptor, "w") else {
      close(descriptor)
      throw CaptureFile.failure(path)
    }
    guard
      let capture = pcap_open_dead_with_tstamp_precision(
        DLT_RAW, 262_144, UInt32(PCAP_TSTAMP_PRECISION_NANO)),
      let dumper = pcap_dump_fopen(capture, stream)
    else {
      fclose(stream)
      throw CaptureFile.failure(path)
    }
    self.capture = capture
    self.dumper = dumper
  }

  deinit {
    pcap_dump_close(dumper)
    pcap_close(capture)
  }

  /// Appends a packet with its Unix time.
  func append(_ packet: [UInt8], unixNanoseconds: Int64) {
    var header = pcap_pkthdr()
    header.ts.tv_sec = Int(unixNanoseconds / 1_000_000_000)
    header.ts.tv_usec = Int(unixNanoseconds % 1_000_000_000)
    header.caplen = UInt32(packet.count)
    header.len = UInt32(packet.count)
    packet.withUnsafeBufferPointer { bytes in
      pcap_dump(UnsafeMutablePointer(dumper), &header, bytes.baseAddress)
    }
  }

  /// Writes out what is buffered; libpcap tells only here that the disk failed.
  func flush() throws(ExportFailure) {
    guard pcap_dump_flush(dumper) == 0, ferror(pcap_dump_file(dumper)) == 0 else {
      throw CaptureFile.failure(path)
    }
  }

  /// Writes out what is buffered and gives the file its name.
  func finish() throws(ExportFailure) {
    try flush()
    guard let whole else { return }
    try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.finish() }
  }

  private static func failure(_ path: String) -> ExportFailure {
    .file(WholeFile.Failure(path: path, code: errno))
  }
}
