import Foundation
import Observer
import Secure
import Wire

/// The parts of a captured call and its key log that these tests need.
struct RecordedCall {
  /// The datagrams between its two ends, with the sending end and the class of each.
  var datagrams: [(end: Int, kind: DatagramClass, bytes: [UInt8])] = []
  var log = NSSKeyLog()

  init(_ name: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Samples")
    var reader = CaptureReader()
    reader.append(Array(try Data(contentsOf: folder.appending(path: name + ".pcap"))).span.bytes)
    var first: SocketAddress?
    while let event = try reader.next() {
      guard case .datagram(let datagram) = event, datagram.tuple.destination.port != 53 else {
        continue
      }
      if first == nil { first = datagram.tuple.source }
      let bytes = [UInt8](reader.bytes(datagram.payload))
      datagrams.append(
        (datagram.tuple.source == first ? 0 : 1, DatagramClass(bytes.span.bytes), bytes))
    }
    let keys = folder.appending(path: name + ".keys")
    _ = log.append(Array(try Data(contentsOf: keys)))
    _ = log.finish()
  }

  func followed(_ log: NSSKeyLog) -> (follower: DTLSFollower, events: [DTLSFollower.Event]) {
    var follower = DTLSFollower()
    var events: [DTLSFollower.Event] = []
    for datagram in datagrams where datagram.kind == .dtls {
      follower.receive(datagram.bytes, from: datagram.end, log, into: &events)
    }
    return (follower, events)
  }
}

extension [DTLSFollower.Event] {
  var srtpKeys: (profile: SRTPProfile, keys: [[UInt8]])? {
    for case .srtpKeys(let profile, let keys) in self { return (profile, keys) }
    return nil
  }
}
