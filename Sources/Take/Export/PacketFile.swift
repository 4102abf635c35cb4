import Tape
import Wire

/// A packet capture that is written from what peers sent and received.
struct PacketFile {
  private let file: CaptureFile
  private let startUnixNanoseconds: Int64
  /// The times of the take whose packets are wanted.
  private let window: ClosedRange<Int64>
  /// The number of the next byte of each direction of a TCP connection.
  private var sequences: [FiveTuple: UInt32] = [:]
  /// How many packets are in it.
  private(set) var count = 0

  /// Creates the file; instants count from the given Unix time.
  init(
    _ path: String, _ present: WholeFile.Present, startUnixNanoseconds: Int64,
    window: ClosedRange<Int64> = .min ... .max
  ) throws(ExportFailure) {
    self.window = window
    file = try CaptureFile(path, present)
    self.startUnixNanoseconds = startUnixNanoseconds
  }

  /// Appends a datagram; one that no UDP header can carry, a long message over TCP, is left out.
  mutating func datagram(
    from source: SocketAddress, to destination: SocketAddress, _ payload: [UInt8],
    ecn: ECNMark? = nil, atNanoseconds at: Int64
  ) {
    guard payload.count <= IPPacket.payloadMaximum else { return }
    append(
      IPPacket.datagram(
        from: source, to: destination, payload: payload, identification: identification,
        ecn: ecn ?? .notCapable), at)
  }

  /// Appends a part of a TCP stream, behind `lost` bytes that nobody saw.
  mutating func segment(
    from source: SocketAddress, to destination: SocketAddress, _ payload: [UInt8], lost: Int,
    isEnd: Bool, atNanoseconds at: Int64
  ) {
    let tuple = FiveTuple(.tcp, from: source, to: destination)
    var sequence = sequences[tuple] ?? 1
    sequence &+= UInt32(truncatingIfNeeded: lost)
    var rest = payload[...]
    repeat {
      let part = rest.prefix(IPPacket.segmentMaximum)
      rest = rest.dropFirst(part.count)
      append(
        IPPacket.segment(
          from: source, to: destination, payload: part, sequence: sequence,
          isEnd: isEnd && rest.isEmpty, identification: identification), at)
      sequence &+= UInt32(truncatingIfNeeded: part.count)
    } while !rest.isEmpty
    sequences[tuple] = isEnd ? nil : sequence
  }

  /// Appends an SCTP packet without DTLS and UDP around it.
  mutating func association(
    from source: IPAddress, to destination: IPAddress, _ packet: [UInt8], atNanoseconds at: Int64
  ) {
    append(
      IPPacket.association(
        from: source, to: destination, packet: packet, identification: identification), at)
  }

  private var identification: UInt16 { UInt16(truncatingIfNeeded: count) }

  private mutating func append(_ packet: [UInt8], _ at: Int64) {
    guard window.contains(at) else { return }
    file.append(packet, unixNanoseconds: startUnixNanoseconds +| at)
    count += 1
  }

  /// Writes out what is buffered.
  func flush() throws(ExportFailure) { try file.flush() }

  /// Writes out what is buffered and gives the file its name.
  func finish() throws(ExportFailure) { try file.finish() }
}
