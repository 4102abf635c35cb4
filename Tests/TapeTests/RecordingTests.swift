import Foundation
import Glibc
import Peer
import Queries
import Testing
import Wire

@testable import Tape

struct RecordingTests {
  @Test func aTakeIsAboutAsLargeAsAPacketCapture() throws {
    let folder = try TakeFolder()
    // The ECN mark needs a byte per packet, and the views need some 68 kB per take.
    for (payload, share) in [(1_180, 1.05), (1_000, 1.054), (400, 1.115), (80, 1.334)] {
      let steps = SampleSteps.call(packets: 8_000, payload: payload)
      let path = try folder.record(steps, as: "\(payload).take") { $0.keepsMedia = false }
      let info = try TakeInfo(path: path)
      #expect(info.captureBytes == 24 + 8_000 * (58 + 20 + Int64(payload)))
      let ratio = Double(info.fileBytes) / Double(info.captureBytes)
      #expect(ratio < share, "payload \(payload)")
    }
  }

  @Test func aFullDiskEndsTheRecordingAndKeepsWhatWasWritten() throws {
    let folder = try TakeFolder()
    var options = TapeWriter.Options()
    options.pageLimit = 120
    let path = folder.file("a.take")
    let writer = try TapeWriter(path: path, options: options)
    _ = writer.addPeer(label: "a", role: "")
    let steps = SampleSteps.call(packets: 12_000, payload: 1_000)
    for step in steps { writer.record(step) }
    let error = try #require(#expect(throws: TapeError.self) { _ = try writer.finish() })
    #expect(error.reason.hasPrefix("the disk is full"))
    #expect(error.kind == .failed)
    #expect(writer.error != nil)
    let audit = try TapeAudit.run(path: path)
    #expect(audit.alteration == nil)
    #expect(!audit.isComplete)
    #expect(error.reason.hasSuffix("the take has the first \(audit.steps) steps"))
    #expect(audit.steps < steps.count)
  }

  @Test(arguments: ["SELECT count(*) FROM peer", "BEGIN; SELECT count(*) FROM peer"])
  func aTakeIsCompletedWhileAReaderHasItOpen(looking: String) throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    let steps = SampleSteps.call(packets: 500, payload: 400)
    do {
      let writer = try TapeWriter(path: path, options: TapeWriter.Options())
      _ = writer.addPeer(label: "a", role: "")
      let reader = try SQLiteConnection(path: path, mode: .readOnly)
      try reader.execute(looking)
      for step in steps { writer.record(step) }
      #expect(try writer.finish().steps == steps.count)
      // A statement at the end keeps the reader open until here.
      try reader.execute("SELECT count(*) FROM peer")
    }
    let audit = try TapeAudit.run(path: path)
    #expect(audit.isComplete && audit.alteration == nil)
    #expect(audit.steps == steps.count)
  }

  @Test func aSlowDiskNeverBlocksTheCall() throws {
    let folder = try TakeFolder()
    var options = TapeWriter.Options()
    options.queueLimit = 100_000
    let writer = try TapeWriter(path: folder.file("a.take"), options: options)
    for step in SampleSteps.call(packets: 2_000, payload: 1_000) { writer.record(step) }
    let error = #expect(throws: TapeError.self) { _ = try writer.finish() }
    #expect(error?.reason.contains("too slow") == true)
  }

  @Test func aDriverInVirtualTimeWaitsForTheDisk() throws {
    let folder = try TakeFolder()
    let steps = SampleSteps.call(packets: 4_000, payload: 1_000)
    let path = try folder.record(steps) {
      $0.queueLimit = 100_000
      $0.waitsForDisk = true
    }
    #expect(try TapeAudit.run(path: path).steps == steps.count)
  }

  @Test func manySendersAreForgottenAndRenumbered() throws {
    let folder = try TakeFolder()
    var steps = [SampleSteps.call(packets: 0, payload: 0)[0]]
    for index in 0..<140_000 {
      let remote = SocketAddress(IPAddress(ipv4: UInt32(index % 70_000)), port: 9)
      steps.append(
        StepRecord(
          peer: 1, at: .zero,
          input: .datagram(
            Datagram(local: SampleSteps.local, remote: remote, bytes: [9]), arrival: .zero),
          outputs: [], deadline: nil, entropyDrawn: 0))
    }
    let path = try folder.record(steps)
    let reader = try TapeReader(path: path)
    var index = -1
    while let chunk = try reader.next() {
      for step in chunk.steps {
        if case .datagram(let datagram, _) = step.peerInput {
          #expect(datagram.remote.ip == IPAddress(ipv4: UInt32(index % 70_000)))
        }
        index += 1
      }
    }
    #expect(index == 140_000)
  }

  @Test func manyThreadsMayRecord() async throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    let writer = try TapeWriter(path: path, options: TapeWriter.Options())
    await withTaskGroup { group in
      for peer in 1...4 {
        group.addTask {
          for var step in SampleSteps.call(packets: 500, payload: 20) {
            step.actor = UInt32(peer)
            writer.record(step)
          }
        }
      }
    }
    #expect(try writer.finish().steps == 4 * 501)
    let audit = try TapeAudit.run(path: path)
    #expect(audit.alteration == nil)
    #expect(audit.isComplete)
  }

  @Test func flushedStepsAreVisibleToAReader() throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    let steps = SampleSteps.call(packets: 500, payload: 400)
    let writer = try TapeWriter(path: path, options: TapeWriter.Options())
    _ = writer.addPeer(label: "a", role: "")
    let reader = try SQLiteConnection(path: path, mode: .readOnly)
    for (index, step) in steps.enumerated() {
      writer.record(step)
      guard index % 100 == 99 else { continue }
      writer.flush()
      #expect(try reader.integer("SELECT sum(steps) FROM tape") == Int64(index + 1))
    }
    #expect(try writer.finish().steps == steps.count)
    writer.flush()
  }
}

/// Tests the file that a killed process leaves.
struct RecordingExitTests {
  @Test func aKilledRecorderLeavesATakeThatReadsToItsEnd() async throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let writer = try TapeWriter(path: path, options: TapeWriter.Options())
      _ = writer.addPeer(label: "a", role: "")
      var steps = SampleSteps.call(packets: 40_000, payload: 900)[...]
      while let step = steps.popFirst() { writer.record(step) }
      // Once some steps are on the disk, the process dies in the middle of the rest.
      while (try? TapeAudit.run(path: path).steps) ?? 0 == 0 {}
      kill(getpid(), SIGKILL)
    }
    let log = try FileManager.default.attributesOfItem(atPath: path + "-wal")
    #expect(log[.size] as? Int ?? 0 > 0)
    let audit = try TapeAudit.run(path: path)
    #expect(audit.alteration == nil)
    #expect(!audit.isComplete)
    #expect((1...40_001).contains(audit.steps))
    let connection = try TakeFile.withoutSharedMemory(path)
    #expect(try connection.integer("SELECT sum(steps) FROM tape") == Int64(audit.steps))
  }
}
