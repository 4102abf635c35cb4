import ArgumentParser
import Capture
import Decryption
import Foundation
import Observer
import Peer
import Tape
import Wire

/// Makes a take of calls between others that a packet capture holds.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Make a take of the calls in a packet capture.",
    discussion: """
      Reads a pcap or pcapng file and makes a take of the calls between others that it holds: both \
      ends of each as peers, with candidates, pairs, states, streams, RTCP and descriptions as far \
      as the wire shows them. What could not be seen, and why, stands in the table coverage and \
      in retake info. Packets are opened with the keys of a key log as browsers and other programs \
      write it (SSLKEYLOGFILE), with one inside of a pcapng file, or with SRTP keys as servers log \
      them.

      Examples:
        retake import call.pcap --keys keys.log --out call.take
        retake import call.pcapng --sdp offer.sdp --sdp answer.sdp --out call.take
        retake import call.pcap --map 96=vp8,97=rtx --decode --out call.take
        tcpdump -w - udp | retake import - --out call.take
      """)

  @Argument(
    help: "The packet capture; - is standard input.",
    completion: .file(extensions: ["pcap", "pcapng"]), transform: Taking.path)
  var capture: String

  @Option(
    help: "The take to write.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  @Option(
    help: "A key log (NSS format); may be given several times.", completion: .file(),
    transform: Taking.path)
  var keys: [String] = []

  @Option(
    help: ArgumentHelp(
      "An SRTP key with its salt, in hexadecimal or base64; before it may stand whose packets it "
        + "is for, as in ssrc:1234=KEY or 192.0.2.1:5000=KEY.", valueName: "key"),
    transform: ImportCommand.key)
  var srtpKey: [String] = []

  @Option(
    help: "A session description of one of the ends; may be given several times.",
    completion: .file(), transform: Taking.path)
  var sdp: [String] = []

  @Option(
    help: "What payload types stand for, as in 96=vp8,97=rtx,111=opus/48000.",
    transform: ImportCommand.payloadTypes)
  var map: String?

  @Flag(help: "Decode what the ends receive, for levels and digests of pictures and sound.")
  var decode = false

  @Flag(help: "Do not keep encoded frames in the clear.")
  var noMediaCopy = false

  @Option(help: "A name for the take.")
  var label = ""

  @Flag(help: "Print JSON for programs.")
  var json = false

  private static let key: Taking.Reader<String> = { word in
    do throws(SRTPKeyError) {
      _ = try SRTPKey(parsing: word)
    } catch {
      throw Taking.Refusal(error.reason)
    }
    return word
  }

  private static let payloadTypes: Taking.Reader<String> = { word in
    guard PayloadTypeMapping.list(parsing: word) != nil else {
      throw Taking.Refusal(
        "payload types are from 0 to 127, each with its codec, as in 96=vp8,97=rtx")
    }
    return word
  }

  func run() throws {
    let logs = try keys.map { try text($0) }
    let descriptions = try sdp.map { try text($0) }
    let summary = try WritingWhole.take(out) { path in
      try importCapture(into: path, logs: logs, descriptions: descriptions)
    }
    try Output.line(json ? CanonicalJSON.text(summary) : words(summary))
  }

  /// Reads the capture piece by piece; memory does not grow with it.
  private func importCapture(into path: String, logs: [String], descriptions: [String]) throws
    -> CaptureImport.Summary
  {
    let input = capture == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: capture)
    guard let input else {
      throw CommandFailure(
        .noSuchFile, "\(CommandReading.oneLine(capture)): there is no such file")
    }
    let progress = Progress("importing")
    defer { progress.clear() }
    var reader = CaptureReader()
    var observer: CaptureImport?
    // Secrets and comments stand before the first packet, which sets the clock.
    var head = CaptureNotes()
    var read = 0
    while let data = try input.read(upToCount: ImportCommand.pieceLength), !data.isEmpty {
      read += data.count
      progress.show("importing: \(read >> 20) MB")
      reader.append([UInt8](data).span.bytes)
      while let event = try next(&reader) {
        if observer == nil, let began = event.unixNanoseconds {
          observer = try begin(path, began, logs, descriptions, head)
        }
        if observer == nil { head.take(event, of: reader) }
        observer?.show(event, of: reader)
      }
    }
    guard let observer else {
      throw CommandFailure(.invalidTake, "\(capture): no UDP or TCP packet is in it")
    }
    do throws(TapeError) {
      var summary = try observer.finish(reader.counters)
      summary.take = out
      return summary
    } catch {
      throw CommandFailure(error)
    }
  }

  private static let pieceLength = 1 << 20

  private func next(_ reader: inout CaptureReader) throws -> CaptureEvent? {
    do throws(CaptureError) {
      return try reader.next()
    } catch {
      throw CommandFailure(.invalidTake, "\(capture): \(error)")
    }
  }

  private func begin(
    _ path: String, _ began: Int64, _ logs: [String], _ descriptions: [String],
    _ head: CaptureNotes
  ) throws -> CaptureImport {
    do throws(TapeError) {
      var options = TapeWriter.Options()
      options.label = label
      options.startUnixNanoseconds = began
      options.toolVersion = retakeVersion
      options.waitsForDisk = true
      options.keepsMedia = !noMediaCopy
      options.toolchain = try Toolchain.current(for: path)
      var genesis = head.genesis ?? ObserverGenesis()
      if let map { genesis.payloadTypes = map }
      if decode { genesis.decodes = true }
      genesis.startUnixNanoseconds = began
      let observer = CaptureImport(
        try TapeWriter(path: path, options: options), genesis, began: began, take: path)
      for log in logs + head.keyLogs { observer.tell(.keyLog(log)) }
      for key in srtpKey + head.srtpKeys { observer.tell(.srtpKey(key)) }
      for text in descriptions + head.descriptions { observer.tell(.description(text)) }
      return observer
    } catch {
      throw CommandFailure(error)
    }
  }

  private func text(_ path: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CommandFailure(.noSuchFile, "\(CommandReading.oneLine(path)): it cannot be read")
    }
    return String(decoding: data, as: UTF8.self)
  }

  private func words(_ summary: CaptureImport.Summary) -> String {
    var lines = [
      "\(summary.take): \(summary.calls) calls, \(summary.streams) streams, "
        + "\(summary.packets) RTP and RTCP packets (\(summary.packetsInClear) in the clear) of "
        + "\(summary.datagrams) datagrams, \(summary.mediaFrames) frames, "
        + "\(summary.steps) steps"
    ]
    if !summary.notSeen.isEmpty {
      lines.append("not seen: \(summary.notSeen.joined(separator: ", ")); retake info tells more")
    }
    return lines.joined(separator: "\n")
  }
}

extension CaptureEvent {
  /// When the packet was captured; nil for what is no packet.
  fileprivate var unixNanoseconds: Int64? {
    switch self {
    case .datagram(let datagram): datagram.unixNanoseconds
    case .stream(let piece): piece.unixNanoseconds
    case .secrets, .comment, .dropped: nil
    }
  }
}
