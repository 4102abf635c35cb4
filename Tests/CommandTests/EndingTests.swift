import Foundation
import Testing

extension LiveConnectionTests {
  /// Tests how recordings end when they are interrupted.
  struct EndingTests {
    /// The maximum part of a call that may be missing: one transaction of 100 ms, plus a busy
    /// machine's delay.
    private static let slackMilliseconds: Int64 = 600

    @Test(arguments: [300, 700, 1100])
    func aKilledRecorderLeavesATakeThatReplaysToItsEnd(milliseconds: Int64) async throws {
      let folder = try Folder()
      let path = folder.file("killed.take")
      let run = try Run(
        Tool.path,
        [
          "record", "demo", "--size", "160x120", "--rate", "10", "--seconds", "600", "--out", path,
        ])
      try await poll("so much of the take") {
        let last = try? Takes.number(path, "SELECT max(at_ns) FROM tape")
        return last ?? 0 > milliseconds * 1_000_000
      }
      // Transactions are committed every 100 ms; the kill may come at any moment between two
      // commits.
      let moment = ContinuousClock.now + .milliseconds(milliseconds % 97)
      try await poll("the moment") { ContinuousClock.now >= moment }
      run.send(SIGKILL)
      let killed = Date()
      #expect(try await run.outcome().wasKilled)
      let replay = try await Tool.run("replay", path)
      #expect(replay.status == 0, "\(replay.output) \(replay.errors)")
      #expect(replay.output.contains("cut short and replays to its end"))
      #expect(try Takes.number(path, "SELECT count(*) FROM ending") == 0)
      // The take's clock shows when its last packet was recorded, and the time of the kill is
      // known.
      let start = try Takes.number(path, "SELECT start_unix_ns FROM take")
      let last = try Takes.number(path, "SELECT max(at_ns) FROM packet_store")
      let end = Double(start + last) / 1e9
      let missing = Int64((killed.timeIntervalSince1970 - end) * 1000)
      #expect(missing < 100 + Self.slackMilliseconds, "\(missing) ms are missing")
      let info = try await Tool.run("info", path)
      #expect(info.status == 0 && info.output.contains("cut short"))
    }

    @Test(arguments: [["--seed", "5"], []])
    func aFullDiskIsReportedAndLeavesAValidTake(options: [String]) async throws {
      let folder = try Folder()
      let path = folder.file("full.take")
      let words = options.joined(separator: " ")
      // The limit is in units of 512 bytes, so the take ends at half a megabyte.
      let outcome = try await Tool.shell(
        "ulimit -f 1000; \"$RETAKE\" record demo --seconds 3 \(words) --out '\(path)'")
      #expect(outcome.status == 74 && !outcome.wasKilled, "\(outcome)")
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains(path), "\(outcome.errors)")
      #expect(outcome.output.isEmpty)
      if options.isEmpty {
        let replay = try await Tool.run("replay", path)
        #expect(replay.status == 0, "\(replay.output) \(replay.errors)")
      } else {
        // A call in virtual time (`--seed`) is written in one piece, so its take is complete or
        // absent.
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      }
    }

    @Test func aSignalEndsADemoInOrder() async throws {
      let folder = try Folder()
      let path = folder.file("demo.take")
      let run = try Run(
        Tool.path,
        ["record", "demo", "--size", "160x120", "--seconds", "60", "--out", path])
      try await poll("the take's first packets") {
        ((try? Takes.number(path, "SELECT count(*) FROM packet_store")) ?? 0) > 50
      }
      run.send(SIGINT)
      let outcome = try await run.outcome()
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      #expect(outcome.output.split(separator: "\n").count == 1)
      #expect(try Takes.number(path, "SELECT count(*) FROM ending") == 1)
    }

    @Test func aSignalEndsARecordingAtAnyMoment() async throws {
      let folder = try Folder()
      for round in 0..<60 {
        let run = try Run(
          Tool.path,
          [
            "record", "serve", "--listen", "127.0.0.1:0", "--bind", "127.0.0.1", "--out",
            folder.file("\(round).take"),
          ])
        let moment = run.begin + .milliseconds(10 + 2 * round)
        try await poll("the moment") { ContinuousClock.now >= moment }
        run.send(SIGTERM)
        try await poll("the end after a signal at \(10 + 2 * round) ms") { !run.isRunning }
      }
    }

    @Test(arguments: ["call", "whip"])
    func aSignalEndsTheWaitForAnAnswer(verb: String) async throws {
      let folder = try Folder()
      let path = folder.file("call.take")
      // The listener never answers a request.
      let listener = try SilentListener()
      let run = try Run(
        Tool.path,
        ["record", verb, "http://127.0.0.1:\(listener.port)", "--bind", "127.0.0.1", "--out", path])
      try await poll("the beginning of the take") {
        (try? Takes.number(path, "SELECT count(*) FROM take")) == 1
      }
      let moment = ContinuousClock.now + .milliseconds(300)
      try await poll("the offer") { ContinuousClock.now >= moment }
      let begin = ContinuousClock.now
      run.send(SIGINT)
      let outcome = try await run.outcome()
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      let end = try #require(run.end)
      // The command did not wait for the request's own time limit of ten seconds.
      #expect(begin.duration(to: end) < .seconds(9))
      #expect(try await Tool.run("replay", path).status == 0)
    }

    @Test func theSecondsOfARecordingAreKept() async throws {
      let folder = try Folder()
      let path = folder.file("demo.take")
      let outcome = try await Tool.run(
        "record", "demo", "--size", "160x120", "--rate", "5", "--seconds", "1", "--out", path)
      #expect(outcome.status == 0)
      let length = try Takes.number(path, "SELECT at_ns FROM ending") / 1_000_000
      #expect((1000..<4000).contains(length), "\(length) ms")
    }
  }
}

/// A TCP port on loopback to which clients can connect, but which never sends anything.
private final class SilentListener {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isOpen = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(socket, address, length) == 0 && listen(socket, 4) == 0
          && getsockname(socket, address, &length) == 0
      }
    }
    (descriptor, port) = (socket, UInt16(bigEndian: address.sin_port))
    try #require(isOpen)
  }

  deinit { close(descriptor) }
}
