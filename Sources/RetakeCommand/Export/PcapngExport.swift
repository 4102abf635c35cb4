import Export
import Foundation
import Media
import Observer
import Peer
import Replay
import Tape
import Transport
import Wire

/// Writes a take as a capture: what was on the wire with the secrets that open it, and beside it
/// what it was in the clear.
///
/// The packets in the clear stand on ports of their own (the highest bit is turned), so that a
/// reader does not take them for repetitions of those on the wire. A short exchange of SIP heads
/// them, so that it knows RTP and codecs without settings.
final class PcapngExport {
  private let take: String
  private let only: Int64?
  private let head: CaptureHead
  private let file: PcapngFile
  /// The ends of the pairs that observers told of.
  private var pairs: [Int: [SocketAddress]] = [:]
  private var sessions: Set<[SocketAddress]> = []
  private var failure: (any Error)?
  private var packets = 0
  /// Parts of TCP connections, which are not written.
  private(set) var leftOut = 0

  /// - Parameter only: the number of the endpoint whose packets are wanted; nil for all.
  init(take: String, only: Int64?, to path: String) throws {
    self.take = take
    self.only = only
    head = try reading { () throws(TapeError) in try CaptureHead(take) }
    if let only, !head.endpoints.contains(only) {
      throw CommandFailure(
        .usage, "\(take): --peer \(only): there is no such peer that Retake itself was")
    }
    file = try PcapngFile(path, comments: head.comments, secrets: head.secrets)
  }

  /// Replays the take to its end or to the first difference.
  func run() throws -> (report: ReplayReport, counts: [Int]) {
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    var options = Replayer.Options()
    options.skipsCodecs = head.keepsMedia
    var made = 0
    let report = try reading { () throws(TapeError) in
      let replayer = try Replayer(
        path: take, options: options,
        kinds: .following { input, outputs, at in self.note(input, outputs, at) },
        codecs: { LibraryCodecs() },
        peer: { codecs in
          let number = made < self.head.endpoints.count ? self.head.endpoints[made] : 0
          made += 1
          let machine = PeerMachine(codecs: codecs)
          guard self.only == nil || self.only == number else { return machine }
          return ShownPeer(machine, self)
        })
      return try replayer.run { progress.show("exporting packets: \(Int($0.seconds)) s") }
    }
    if let failure { throw failure }
    try file.finish()
    return (report, file.counts)
  }

  // MARK: Packets

  /// What an observer saw and what that was in the clear.
  private func note(_ input: ObserverInput, _ outputs: [ObserverOutput], _ at: Instant) {
    var seen: (SocketAddress, SocketAddress)?
    switch input {
    case .datagram(let datagram, let isTruncated, let arrival):
      seen = (datagram.local, datagram.remote)
      wire(datagram.local, datagram.remote, datagram.bytes, isTruncated: isTruncated, arrival)
    case .call(.segment): leftOut += 1
    default: break
    }
    for output in outputs {
      switch output.content {
      case .told(.pair(let pair)): pairs[pair.number] = pair.addresses
      case .told(.packet(let packet)) where packet.isClear:
        let ends = pairs[packet.pair].map { ($0[packet.from], $0[1 - packet.from]) } ?? seen
        guard let ends, packet.kind != .sctp else { continue }
        clear(ends.0, ends.1, packet.bytes, packet.at)
      default: break
      }
    }
  }

  fileprivate func note(_ datagram: Datagram, isInbound: Bool, _ at: Instant) {
    if isInbound {
      wire(datagram.remote, datagram.local, datagram.bytes, isTruncated: false, at)
    } else {
      wire(datagram.local, datagram.remote, datagram.bytes, isTruncated: false, at)
    }
  }

  fileprivate func note(_ packet: ClearPacket) {
    switch packet.kind {
    case .rtp, .rtcp: break
    case .sctp: return
    }
    if packet.isInbound {
      clear(packet.remote, packet.local, packet.bytes, packet.at)
    } else {
      clear(packet.local, packet.remote, packet.bytes, packet.at)
    }
  }

  private func wire(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], isTruncated: Bool,
    _ at: Instant
  ) {
    // What was cut off was a byte or more.
    put(source, destination, bytes + (isTruncated ? [0] : []), cut: isTruncated ? 1 : 0, .wire, at)
  }

  private func clear(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], _ at: Instant
  ) {
    let (source, destination) = (shifted(source), shifted(destination))
    if !sessions.contains([source, destination]) {
      sessions.formUnion([[source, destination], [destination, source]])
      let session = ClearSession(
        source: source, destination: destination, formats: head.formats,
        number: sessions.count / 2)
      for message in session.messages where !head.formats.isEmpty {
        put(message.from, message.to, Array(message.text.utf8), .clear, at)
      }
    }
    put(source, destination, bytes, .clear, at)
  }

  private func shifted(_ address: SocketAddress) -> SocketAddress {
    SocketAddress(address.ip, port: address.port ^ 0x8000)
  }

  private func put(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], cut: Int = 0,
    _ interface: PcapngFile.Interface, _ at: Instant
  ) {
    guard failure == nil, bytes.count <= IPPacket.payloadMaximum,
      source.ip.isIPv4 == destination.ip.isIPv4
    else { return }
    let packet = IPPacket.datagram(
      from: source, to: destination, payload: bytes,
      identification: UInt16(truncatingIfNeeded: packets))
    packets += 1
    do {
      try file.append(
        Array(packet.dropLast(cut)), length: packet.count, to: interface,
        unixNanoseconds: head.startUnixNanoseconds + at.nanoseconds)
    } catch {
      failure = error
    }
  }
}

/// A peer in a replay whose packets are exported.
private final class ShownPeer: ReplayedPeer {
  private let machine: PeerMachine
  private let export: PcapngExport

  init(_ machine: PeerMachine, _ export: PcapngExport) {
    self.machine = machine
    self.export = export
    machine.onlooker = { export.note($0) }
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if case .datagram(let datagram, let arrival) = input {
      export.note(datagram, isInbound: true, arrival)
    }
    machine.step(input, at: now, into: &outbox)
    for case .datagram(let datagram) in outbox.outputs {
      export.note(datagram, isInbound: false, now)
    }
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
}
