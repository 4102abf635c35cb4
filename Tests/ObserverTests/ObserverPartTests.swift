import ICE
import Testing
import Wire

@testable import Observer

/// Tests each part of an observer separately.
struct ObserverPartTests {
  private func message(_ bytes: [UInt8]) throws -> STUNMessage { try STUNMessage(bytes) }

  /// Returns a Binding request to a server, which is not a check.
  private func request(_ number: Int) throws -> STUNMessage {
    var writer = STUNWriter(.request, transactionID: Messages.transaction(number))
    writer.priority(1)
    return try message(writer.finish(key: [1]))
  }

  @Test func aMappedAddressBelongsToTheEndThatAsked() throws {
    var mappings = MappedAddresses()
    mappings.ask(try request(1), from: Messages.a)
    mappings.ask(try request(2), from: Messages.b)
    let strange = mappings.answer(try message(Messages.success(3, mapped: Messages.relayed)))
    let first = mappings.answer(try message(Messages.success(1, mapped: Messages.relayed)))
    let again = mappings.answer(try message(Messages.success(1, mapped: Messages.relayed)))
    // An end whose address is mapped to itself is not behind a NAT.
    let second = mappings.answer(try message(Messages.success(2, mapped: Messages.b)))
    #expect([strange, first, again, second] == [false, true, false, true])
    #expect(mappings.isMapped(Messages.a) && !mappings.isMapped(Messages.b))
  }

  @Test func theOldestUnansweredRequestsAreForgotten() throws {
    var mappings = MappedAddresses()
    for number in 0...256 { mappings.ask(try request(number), from: Messages.a) }
    let oldest = mappings.answer(try message(Messages.success(0, mapped: Messages.relayed)))
    let newest = mappings.answer(try message(Messages.success(256, mapped: Messages.relayed)))
    #expect(!oldest && newest)
  }

  @Test func packetsWaitingForKeysAreLimited() {
    var keys = KeyRing(awaitsKeys: true, waitingBytesMaximum: 100)
    keys.hold(bytes: 100)
    #expect(keys.areAwaited && !keys.holdsTooMuch)
    keys.hold(bytes: 1)
    #expect(keys.holdsTooMuch)
    keys.release(bytes: 101)
    keys.stopWaiting()
    #expect(!keys.areAwaited && !keys.holdsTooMuch)
  }

  @Test func aTransportIsFoundByItsUsernamesInBothDirections() throws {
    var calls = CallTable()
    let number = calls.add(.wire, FiveTuple(from: Messages.a, to: Messages.b), at: .zero)
    #expect(number == 1 && !calls.isNamed(1))
    let call = calls.name(call: 1, after: [Messages.b, Messages.a])
    #expect(call.addresses == [Messages.b, Messages.a] && calls.namingDeadline == nil)
    let names = try ["one:two", "two:one", "one:three"].map { try #require(CheckNames($0)) }
    calls.name(4, names[0])
    #expect(names.map { calls[$0] } == [4, 4, nil])
  }

  @Test func anotherNominatedPathIsSelectedOnceTheFormerIsSilent() {
    var choice = PairChoice()
    func nominate(_ path: Int, at seconds: Int64, _ priority: UInt64) -> Bool {
      choice.nominate(path, at: .zero + .seconds(seconds)) { $0 == path ? priority : 5 }
    }
    let changes = [
      nominate(3, at: 0, 5), nominate(4, at: 1, 4), nominate(3, at: 2, 5), nominate(4, at: 8, 4),
      nominate(5, at: 9, 6),
    ]
    #expect(changes == [true, false, false, true, true] && choice.selected == 5)
    let cleared = choice.clear()
    #expect(cleared == 5 && choice.selected == nil)
  }

  @Test func aTransportHasAPathInUseForEachComponent() {
    var transport = TransportFollower(
      ObservedTransport(number: 1, call: 1, usernameFragments: [nil, nil]))
    for (path, component) in [(3, 1), (4, 2), (5, 1)] as [(Int, UInt8)] {
      _ = transport.choose(component) { $0.nominate(path, at: .zero) { UInt64($0) } }
    }
    #expect(transport.selectedPath == 5 && transport.selectedPath(2) == 4)
    let isNews = [0, 0, 1].map { transport.isNews(Messages.a, of: $0) }
    #expect(isNews == [true, false, true] && transport.hosts == [Messages.a.ip])
    transport.add(stream: 7)
    let removed = transport.removeStreams()
    #expect(removed == [7] && transport.streams.isEmpty)
  }
}
