import Foundation
import Lab
import Peer
import Secure
import Tape
import Testing
import Wire

@testable import Replay

struct SubstitutionTests {
  private func inFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.path + "/substitute-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
  }

  private func options(_ parts: RecordedSecurity.Parts) -> Replayer.Options {
    var options = Replayer.Options()
    options.security = parts
    return options
  }

  private func divergence(_ report: ReplayReport) -> Divergence? {
    if case .diverged(let found) = report.verdict { return found }
    return nil
  }

  @Test(arguments: [true, false])
  func aTakeOfAnotherOpenSSLReplaysFromItsKeyLog(keepsMedia: Bool) throws {
    try inFolder { folder in
      let take = try ForeignTake(in: folder, keepsMedia: keepsMedia)
      let exact = try #require(divergence(try replay(take.path)))
      #expect(exact.step == 1)
      #expect(exact.layer == "dtls")

      let report = try replay(take.path, options(.dtls))
      #expect(divergence(report) == nil, "\(report)")
      #expect(report.substituted.count == 1)
      #expect(report.substituted.first?.hasPrefix("DTLS: 2 certificates, the keys of 2 ") == true)
      let connection = try TakeFile.openForQueries(take.path)
      let came = try connection.integer("SELECT count(*) FROM message WHERE direction = 'in'")
      #expect(came ?? 0 > 15)
      let lost = try connection.integer("SELECT sum(lost) FROM loss WHERE direction = 'in'")
      #expect(lost ?? 0 > 10)
    }
  }

  @Test func aRelayedTakeOfAnotherOpenSSLReplaysFromItsKeyLog() throws {
    try inFolder { folder in
      var relayed = PeerConfiguration()
      relayed.iceServers = [
        ICEServerConfiguration(
          urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user", credential: "password")
      ]
      relayed.iceTransportPolicy = .relay
      let address = try #require(SocketAddress("203.0.113.1:3478"))
      let take = try ForeignTake(
        in: folder, configurations: [relayed, PeerConfiguration()],
        server: VirtualTURNServer(address: address))
      let relay = try TakeFile.open(take.path).integer(
        "SELECT count(*) FROM selected_pair WHERE local_type = 'relay'")
      #expect(relay ?? 0 > 0)
      let report = try replay(take.path, options(.dtls))
      #expect(divergence(report) == nil, "\(report)")
    }
  }

  @Test func packetsOfAnotherSRTPLibraryAreComparedDecrypted() throws {
    try inFolder { folder in
      let path = folder + "/counted.take"
      try ForeignTake(in: folder).countingFromOne(path)
      let found = try #require(divergence(try replay(path, options(.dtls))))
      #expect(found.layer == "rtcp")

      let report = try replay(path, options([.dtls, .srtp]))
      #expect(divergence(report) == nil, "\(report)")
      let words = try #require(report.substituted.last)
      #expect(words.hasPrefix("SRTP: "))
      #expect(!words.hasPrefix("SRTP: 0 "))
    }
  }

  @Test(arguments: [RecordedSecurity.Parts.dtls, [.dtls, .srtp]])
  func aChangedStackIsStillNoticed(parts: RecordedSecurity.Parts) throws {
    try inFolder { folder in
      let take = try ForeignTake(in: folder)
      let connection = try TakeFile.open(take.path)
      let step = try #require(
        try connection.integer(
          "SELECT step FROM packet WHERE protocol = 'rtp' AND direction = 'out' AND size > 70 "
            + "LIMIT 1 OFFSET 40"))
      // A header byte, and a payload byte.
      for offset in [3, 60] {
        let bend = Bend(step: Int(step)) { outputs in
          outputs.map { output in
            guard case .datagram(var datagram) = output, datagram.bytes[0] >= 128 else {
              return output
            }
            datagram.bytes[offset] ^= 1
            return .datagram(datagram)
          }
        }
        let found = try #require(
          divergence(try replay(take.path, options(parts), bend: bend)))
        #expect(found.step == Int(step))
        #expect(found.layer == "rtp")
      }
      let drawn = Bend(step: Int(step), entropy: 3)
      let found = try #require(divergence(try replay(take.path, options(parts), bend: drawn)))
      #expect(found.layer == "entropy")
    }
  }

  @Test func theReasonsForSubstitutionAreReported() throws {
    try inFolder { folder in
      let take = try ForeignTake(in: folder)
      let header = try TapeReader(path: take.path).header
      var other = header.toolchain
      #expect(try Substitution(of: take.path, header, by: other) == Substitution())
      other.openssl = "OpenSSL 4.0.1, engine 1"
      other.srtp = "libsrtp2 2.9.0"
      let both = try Substitution(of: take.path, header, by: other)
      #expect(both.security == [.dtls, .srtp])
      #expect(!both.skipsCodecs)
      #expect(both.isReplayable)
      #expect(both.notes.count == 2)
      other.opus = "libopus 9"
      #expect(try Substitution(of: take.path, header, by: other).skipsCodecs)
      #expect(try Substitution(all: take.path, header).security == [.dtls, .srtp])
    }
  }
}
