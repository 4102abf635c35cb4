import Capture
import Foundation
import Observer
import Peer
import Tape
import Wire

/// Shows an observer a packet capture, and writes down what it was shown and what it told.
final class CaptureImport {
  /// What came of it.
  struct Summary: Encodable {
    var take: String
    var calls = 0
    var streams = 0
    var steps = 0
    var datagrams = 0
    /// RTP and RTCP packets of calls, and how many of them are in the clear.
    var packets = 0
    var packetsInClear = 0
    /// Pictures and packets of sound that the ends received and that were put together.
    var mediaFrames = 0
    var frames: UInt64 = 0
    var duplicates: UInt64 = 0
    /// What could not be seen, each kind once.
    var notSeen: [String] = []
  }

  private let writer: TapeWriter
  private let actor: UInt32
  private let machine = ObserverMachine()
  private var outbox = Outbox<ObserverOutput>()
  private var now = Instant.zero
  private let began: Int64
  private var summary: Summary

  /// Begins with the genesis of the observer.
  ///
  /// - Parameter began: Unix time of the take's zero instant, in nanoseconds.
  init(_ writer: TapeWriter, _ genesis: ObserverGenesis, began: Int64, take: String) {
    self.writer = writer
    self.began = began
    summary = Summary(take: take)
    actor = writer.addActor(.observer, label: "observer")
    step(.genesis(genesis))
  }

  /// Tells the observer something that is no packet.
  func tell(_ call: ObserverCall) { step(.call(call)) }

  /// Shows the observer an event of a capture.
  func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .datagram(let datagram):
      pass(to: datagram.unixNanoseconds)
      summary.datagrams += 1
      let bytes = [UInt8](reader.bytes(datagram.payload))
      step(
        .datagram(
          Datagram(
            local: datagram.tuple.source, remote: datagram.tuple.destination, bytes: bytes),
          isTruncated: datagram.isTruncated))
    case .stream(let piece):
      pass(to: piece.unixNanoseconds)
      step(
        .call(
          .segment(
            source: piece.tuple.source.description,
            destination: piece.tuple.destination.description,
            bytes: Data([UInt8](reader.bytes(piece.payload))), lost: piece.lost,
            isEnd: piece.isEnd)))
    case .secrets(.tlsKeyLog, let place):
      let text = String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self)
      step(.call(.keyLog(text)))
    case .secrets, .comment, .dropped: break
    }
  }

  /// Ends the capture; gives what came of it.
  func finish(_ counters: CaptureCounters) throws(TapeError) -> Summary {
    step(.call(.end))
    summary.steps = try writer.finish().steps
    summary.frames = counters.frames
    summary.duplicates = counters.duplicates
    return summary
  }

  /// Goes on to the time of a packet; captures of several interfaces are not always in order.
  private func pass(to unixNanoseconds: Int64) {
    let at = Instant(nanoseconds: unixNanoseconds - began)
    while let due = machine.deadline, due < at {
      now = max(now, due)
      step(.deadline)
    }
    now = max(now, at)
  }

  private func step(_ input: ObserverInput) {
    machine.step(input, at: now, into: &outbox)
    var outputs = outbox.take()
    for index in outputs.indices {
      count(outputs[index])
      outputs[index].digest()
    }
    writer.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: machine.deadline, entropyDrawn: machine.entropyDrawn))
  }

  private func count(_ output: ObserverOutput) {
    switch output.content {
    case .followed(.event(.frame(let frame)), _):
      if !frame.bytes.isEmpty { summary.mediaFrames += 1 }
    case .told(.call): summary.calls += 1
    case .told(.stream(let stream)): summary.streams = max(summary.streams, stream.number)
    case .told(.packet(let packet)):
      summary.packets += 1
      if packet.isClear { summary.packetsInClear += 1 }
    case .told(.coverage(let row)):
      let what = row.kind.rawValue
      if !summary.notSeen.contains(what) { summary.notSeen.append(what) }
    default: break
    }
  }
}
