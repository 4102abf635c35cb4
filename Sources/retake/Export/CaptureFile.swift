import CPcap
import Foundation

/// A packet capture with nanosecond times that begins at the IP headers, written through libpcap.
final class CaptureFile {
  private let path: String
  private let capture: OpaquePointer
  private let dumper: OpaquePointer

  /// Creates the file for its owner alone; it must not exist. `-` is standard output.
  init(_ path: String) throws {
    self.path = path
    let descriptor =
      path == "-" ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw errno == EEXIST ? CommandFailure.exists(path, "--pcap") : CaptureFile.failure(path)
    }
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
  func flush() throws {
    guard pcap_dump_flush(dumper) == 0, ferror(pcap_dump_file(dumper)) == 0 else {
      throw CaptureFile.failure(path)
    }
  }

  private static func failure(_ path: String) -> CommandFailure {
    CommandFailure(
      .inputOutput, "\(path): it cannot be written: \(String(cString: strerror(errno)))")
  }
}

extension CommandFailure {
  /// The refusal to write over a file.
  static func exists(_ path: String, _ option: String) -> CommandFailure {
    CommandFailure(
      .inputOutput, "\(path) exists already: choose another \(option) or remove the file")
  }
}
