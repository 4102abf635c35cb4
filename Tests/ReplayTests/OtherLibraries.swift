import Foundation
import Lab
import Media
import Peer
import SCTP
import Secure
import Tape
import Wire

@testable import Replay

/// Libraries that act like another version: OpenSSL draws extra random bytes first, so
/// certificates, keys and every flight differ.
struct OtherLibraries: SecurityFactory {
  func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting {
    _ = entropy.bytes(7)
    return try LibrarySecurity().transport(
      entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles)
  }

  func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext? {
    try LibrarySecurity().protection(result)
  }
}

/// A take made with other libraries.
struct ForeignTake {
  let path: String

  /// Records a call with media and messages over a lossy path.
  init(
    in folder: String, keepsMedia: Bool = true, configurations: [PeerConfiguration] = [],
    server: VirtualTURNServer? = nil
  ) throws {
    path = folder + "/foreign.take"
    var link = LinkSettings()
    link.lossPerMille = 100
    link.jitter = .milliseconds(8)
    let recording = try RecordedVirtualCall(
      path: path, seed: 11, links: [link, link], labels: ["caller", "callee"],
      keepsMedia: keepsMedia, configurations: configurations, security: OtherLibraries())
    let call = recording.call
    call.network.server = server
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    call.call(
      0, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 2)))
    call.call(
      1,
      .addTrack(
        kind: .video, streamIDs: ["s"], source: .pattern(width: 64, height: 48, framesPerSecond: 8))
    )
    _ = call.negotiate(gatheringTime: .milliseconds(300))
    recording.run(for: .seconds(4))
    for number in 0..<20 {
      call.send(
        number % 2,
        DataMessage(
          channel: 0, isBinary: true, bytes: [UInt8](repeating: UInt8(number), count: number * 90)))
    }
    recording.run(for: .seconds(3))
    _ = try recording.finish()
  }

  /// Writes a copy in which every stream's SRTCP index starts at 1, as some libraries count (RFC
  /// 3711 section 3.4 allows any start).
  func countingFromOne(_ path: String) throws {
    let reader = try TapeReader(path: self.path)
    let copy = try TakeCopy(path: path, header: reader.header)
    var sealers: [UInt32: Sealer] = [:]
    while let chunk = try reader.next() {
      for step in chunk.steps {
        var rows = RowList()
        for row in step.rows {
          var values = Array(chunk.rows.row(row))
          if step.outputRows.contains(row) {
            if let event = EventRow(chunk.rows, row), event.type == "keylog" {
              let role: DTLSRole = step.head.actor == 1 ? .client : .server
              sealers[step.head.actor] = try Sealer(event.detail, role)
            } else if chunk.rows.table(row) == .packet,
              case .blob(let bytes) = chunk.rows[row, column: "bytes"],
              bytes.count > 8, bytes[0] >= 128, (192..<224).contains(bytes[1])
            {
              let place = values.firstIndex { if case .blob = $0 { true } else { false } }
              values[place ?? 0] = .blob(try sealers[step.head.actor]?.next(bytes) ?? bytes)
            }
          }
          rows.append(chunk.rows.table(row), values)
        }
        try copy.append(step.head, rows, 0..<rows.count)
      }
    }
    try copy.finish()
  }

  /// Decrypts control packets and protects them with the next index.
  private final class Sealer {
    private var opener: SRTPContext
    private var sealer: SRTPContext
    private var known: Set<[UInt8]> = []

    init(_ text: String, _ role: DTLSRole) throws {
      let log = CanonicalJSON.value(KeyLogText.self, from: text)?.log
      let keys = log?.secrets.srtpKeys(
        .aeadAES128GCM, cipherSuite: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", role: role)
      opener = try SRTPContext(
        profile: .aeadAES128GCM, sendKey: keys?.receive ?? [], receiveKey: keys?.send ?? [])
      sealer = try SRTPContext(
        profile: .aeadAES128GCM, sendKey: keys?.send ?? [], receiveKey: keys?.receive ?? [])
    }

    func next(_ bytes: [UInt8]) throws -> [UInt8] {
      var packet = bytes
      try opener.unprotectRTCP(&packet)
      if known.insert(Array(bytes[4..<8])).inserted {
        var first = packet
        try sealer.protectRTCP(&first)
      }
      try sealer.protectRTCP(&packet)
      return packet
    }
  }
}
