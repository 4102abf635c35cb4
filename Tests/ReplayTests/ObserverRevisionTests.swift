import Foundation
import Lab
import Tape
import Testing
import Wire

/// The observer's revision is independent of the stack's.
struct ObserverRevisionTests {
  /// Records an observer of the given revision that saw nothing; returns the take's path.
  private func record(_ revision: Int64?, in folder: URL) throws -> String {
    let path = folder.appending(path: "\(revision ?? 0).take").path
    let writer = try TapeWriter(path: path, options: TapeWriter.Options())
    _ = writer.addActor(.observer, label: "observer")
    var genesis = ObserverGenesis.ofToday
    genesis.revision = revision
    let machine = ObserverMachine()
    var outbox = Outbox<ObserverOutput>()
    for input in [ObserverInput.genesis(genesis), .call(.end)] {
      machine.step(input, at: .zero, into: &outbox)
      writer.record(
        StepRecord(
          actor: 1, at: .zero, input: input, outputs: OutputList(outbox.drain()),
          deadline: machine.deadline, entropyDrawn: 0))
    }
    _ = try writer.finish()
    return path
  }

  /// A take from before observers had revisions is treated as revision 1.
  @Test func aTakeNamesTheRevisionOfItsObservers() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let present = try TapeReader(path: record(observerRevision, in: folder))
    #expect(try present.otherRevisions() == [])
    #expect(present.header.revision == stackRevision)
    for (revision, recorded) in [(nil, 1), (observerRevision + 40, observerRevision + 40)]
      as [(Int64?, Int64)]
    {
      let others = try TapeReader(path: record(revision, in: folder)).otherRevisions()
      #expect(
        others == [
          OtherRevision(isObserver: true, recorded: recorded, present: observerRevision)
        ])
      #expect(others.first?.text.contains("of the observer") == true)
    }
  }
}
