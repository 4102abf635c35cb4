package import Observer
package import Tape
import Wire

/// Receives the events of a capture while it is running, for a take or for a flight recorder.
package protocol CaptureConsumer: AnyObject {
  /// Handles the next event of the capture; `reader` has its contents.
  func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) throws(TapeError)
  func receive(keyLog lines: String)
  func recordDropped(_ count: UInt64)
  /// Advances the time when no packet arrives.
  func pass(to unixNanoseconds: Int64)
  /// The error after which nothing more can be recorded; nil if there was none.
  var error: TapeError? { get }
  /// A summary of what was captured so far, for a progress line.
  var progress: String { get }
}

extension CaptureRecorder: CaptureConsumer {
  package func recordDropped(_ count: UInt64) { observer?.recordDropped(count) }
  package func pass(to unixNanoseconds: Int64) { observer?.pass(to: unixNanoseconds) }
  package var error: TapeError? { observer?.error }

  package var progress: String {
    guard let summary = observer?.summary else { return "no packet yet" }
    return "\(counted(summary.calls, "call")), "
      + "\(counted(summary.packets, "RTP and RTCP packet")), "
      + "\(summary.ofNoCall) of no call, \(summary.dropped) lost"
  }
}

/// Puts a capture's packets that may belong to calls into a flight recorder's ring.
package final class CaptureRing: CaptureConsumer {
  private let recorder: FlightRecorder
  /// Separates TCP connections that carry media or signaling from others.
  private var gate = CallGate()
  private var packets: UInt64 = 0
  private var others: UInt64 = 0
  private var dropped: UInt64 = 0

  package init(_ recorder: FlightRecorder) { self.recorder = recorder }

  package var error: TapeError? { nil }
  package var progress: String {
    "\(counted(packets, "packet")), \(others) of no call, \(dropped) lost, "
      + counted(recorder.takes.count, "take")
  }

  package func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) throws(TapeError) {
    switch event {
    case .datagram(let datagram): show(RingPacket(datagram, reader))
    case .stream(let piece): showPiece(RingPacket(piece, reader))
    case .secrets(.tlsKeyLog, let place):
      receive(keyLog: String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self))
    case .dropped(let count): recordDropped(count)
    case .comment(let text):
      for mark in [CaptureMark.description, .signaling] {
        if let description = mark.content(of: text) { recorder.add(description: description) }
      }
    case .secrets: break
    }
  }

  package func receive(keyLog lines: String) { recorder.add(keyLog: lines) }

  package func recordDropped(_ count: UInt64) {
    guard count > 0 else { return }
    dropped +|= count
    recorder.recordDropped(count)
  }

  package func pass(to unixNanoseconds: Int64) { recorder.pass(to: unixNanoseconds) }

  private func show(_ datagram: RingPacket) {
    for text in SignalingText.descriptions(in: datagram.bytes) { recorder.add(description: text) }
    guard Self.mayBeOfCall(datagram.bytes) else { return count(datagram) }
    packets += 1
    recorder.append(datagram)
  }

  private func count(_ packet: RingPacket) {
    others += 1
    recorder.pass(to: packet.at)
  }

  /// Returns whether a datagram's first bytes may belong to a call (RFC 7983 section 7).
  private static func mayBeOfCall(_ bytes: [UInt8]) -> Bool {
    switch DatagramClass(bytes.span.bytes) {
    case .stun: bytes.count >= 20 && bytes.span.bytes.uint32(at: 4) == 0x2112_a442
    case .dtls, .rtp, .rtcp, .channelData: bytes.count >= 4
    case .other: false
    }
  }

  private func showPiece(_ piece: RingPacket) {
    let verdict = gate.examine(piece.tuple, piece.bytes, lost: piece.lost, isEnd: piece.isEnd)
    for text in verdict.descriptions { recorder.add(description: text) }
    guard let bytes = verdict.bytes else { return count(piece) }
    packets += 1
    var rest = bytes[...]
    repeat {
      let part = rest.prefix(RingRecord.bytesMaximum)
      rest = rest.dropFirst(part.count)
      var packet = piece
      packet.bytes = Array(part)
      packet.lost = part.startIndex == 0 ? piece.lost : 0
      packet.isEnd = piece.isEnd && rest.isEmpty
      recorder.append(packet)
    } while !rest.isEmpty
  }
}
