import CPcap
import FoundationEssentials
import Glibc
import Importing
import Tape
import Wire

/// Captures a network interface's frames from the kernel's ring through libpcap, as a pcap stream.
final class InterfaceSource: CaptureSource {
  /// Whether timestamps are in nanoseconds rather than microseconds.
  let hasNanoseconds: Bool
  private let handle: OpaquePointer
  private let name: String
  private var hasHeader = false
  private var dropped: UInt32 = 0

  /// The kernel ring's capacity in bytes.
  private static let ringLength: Int32 = 64 << 20
  /// libpcap's timeout in milliseconds, after which the kernel should deliver the frames that it
  /// has.
  static let holdMilliseconds: Int32 = 100
  private static let pieceLength = 1 << 20

  /// Starts capturing on a network interface.
  init(_ name: String, filter: String?, snapLength: Int32) throws(CommandFailure) {
    var errors = [CChar](repeating: 0, count: Int(PCAP_ERRBUF_SIZE))
    guard let handle = pcap_create(name, &errors) else {
      throw CommandFailure(.inputOutput, "\(name): it cannot be captured: \(Self.text(errors))")
    }
    do throws(CommandFailure) {
      try Self.activate(handle, name, snapLength)
      if let filter { try Self.install(filter, handle) }
      guard pcap_setnonblock(handle, 1, &errors) == 0 else {
        throw CommandFailure(.inputOutput, "\(name): it cannot be captured: \(Self.text(errors))")
      }
    } catch {
      pcap_close(handle)
      throw error
    }
    self.handle = handle
    self.name = name
    hasNanoseconds = pcap_get_tstamp_precision(handle) == PCAP_TSTAMP_PRECISION_NANO
  }

  deinit { pcap_close(handle) }

  // MARK: Opening

  private static func activate(_ handle: OpaquePointer, _ name: String, _ snapLength: Int32)
    throws(CommandFailure)
  {
    pcap_set_snaplen(handle, snapLength)
    pcap_set_timeout(handle, holdMilliseconds)
    pcap_set_buffer_size(handle, ringLength)
    // If this is not supported, timestamps are in microseconds.
    pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO)
    let code = pcap_activate(handle)
    guard code < 0 else { return }
    switch code {
    case PCAP_ERROR_PERM_DENIED, PCAP_ERROR_PROMISC_PERM_DENIED:
      throw CommandFailure(
        .inputOutput,
        "\(name): capturing needs the capability CAP_NET_RAW: run it as root, or give it to the "
          + "executable with setcap cap_net_raw+ep")
    case PCAP_ERROR_NO_SUCH_DEVICE:
      throw CommandFailure(
        .noSuchFile, "\(name): there is no such interface, only \(interfaces())")
    case PCAP_ERROR_IFACE_NOT_UP:
      throw CommandFailure(.inputOutput, "\(name): the interface is down; bring it up first")
    default:
      throw CommandFailure(
        .inputOutput, "\(name): it cannot be captured: \(String(cString: pcap_geterr(handle)))")
    }
  }

  /// Returns the names of all interfaces, for a message; `others` if they cannot be listed.
  private static func interfaces() -> String {
    var first: UnsafeMutablePointer<pcap_if_t>?
    var errors = [CChar](repeating: 0, count: Int(PCAP_ERRBUF_SIZE))
    guard pcap_findalldevs(&first, &errors) == 0 else { return "others" }
    defer { pcap_freealldevs(first) }
    let names = sequence(first: first, next: { $0?.pointee.next }).prefix { $0 != nil }
      .compactMap { $0?.pointee.name.map { String(cString: $0) } }
    return names.isEmpty ? "others" : names.joined(separator: ", ")
  }

  private static func install(_ filter: String, _ handle: OpaquePointer) throws(CommandFailure) {
    var program = bpf_program()
    guard pcap_compile(handle, &program, filter, 1, bpf_u_int32(PCAP_NETMASK_UNKNOWN)) == 0 else {
      throw CommandFailure(
        .usage,
        "--filter \(CommandReading.oneLine(filter)): it is not a filter that libpcap understands: "
          + String(cString: pcap_geterr(handle)))
    }
    defer { pcap_freecode(&program) }
    guard pcap_setfilter(handle, &program) == 0 else {
      throw CommandFailure(
        .inputOutput, "--filter cannot be set: \(String(cString: pcap_geterr(handle)))")
    }
  }

  private static func text(_ errors: [CChar]) -> String {
    String(decoding: errors.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  // MARK: Frames

  func read(into bytes: inout [UInt8], waiting milliseconds: Int32)
    throws(TapeError) -> Bool
  {
    bytes.removeAll(keepingCapacity: true)
    bytes.reserveCapacity(Self.pieceLength + (Self.pieceLength >> 2))
    if !hasHeader { writeHeader(&bytes) }
    var ready = pollfd(
      fd: pcap_get_selectable_fd(handle), events: Int16(POLLIN), revents: 0)
    guard poll(&ready, 1, milliseconds) > 0 else { return true }
    while bytes.count < Self.pieceLength {
      var head: UnsafeMutablePointer<pcap_pkthdr>?
      var content: UnsafePointer<UInt8>?
      let code = pcap_next_ex(handle, &head, &content)
      if code == 0 { return true }
      guard code == 1, let head, let content else {
        throw TapeError(
          path: name, place: "",
          reason: "capturing ended: \(String(cString: pcap_geterr(handle)))", kind: .failed)
      }
      let captured = Int(head.pointee.caplen)
      bytes.put(UInt32(truncatingIfNeeded: head.pointee.ts.tv_sec))
      bytes.put(UInt32(truncatingIfNeeded: head.pointee.ts.tv_usec))
      bytes.put(UInt32(head.pointee.caplen))
      bytes.put(UInt32(head.pointee.len))
      bytes.append(contentsOf: UnsafeBufferPointer(start: content, count: captured))
    }
    return true
  }

  /// Writes a capture's header (draft-ietf-opsawg-pcap section 4).
  private func writeHeader(_ bytes: inout [UInt8]) {
    bytes.put(hasNanoseconds ? 0xa1b2_3c4d : 0xa1b2_c3d4)
    bytes.put(0x0002_0004)
    bytes.put(0)
    bytes.put(0)
    bytes.put(UInt32(clamping: pcap_snapshot(handle)))
    bytes.put(UInt32(clamping: pcap_datalink(handle)))
    hasHeader = true
  }

  func removeDropped() -> UInt64 {
    var statistics = pcap_stat()
    guard pcap_stats(handle, &statistics) == 0 else { return 0 }
    // The kernel's counters are 32 bits wide and wrap.
    let all = statistics.ps_drop &+ statistics.ps_ifdrop
    defer { dropped = all }
    return UInt64(all &- dropped)
  }
}

extension [UInt8] {
  /// Appends a big-endian number.
  @inline(__always)
  fileprivate mutating func put(_ value: UInt32) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}
