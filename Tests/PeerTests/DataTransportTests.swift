import JSEP
import Lab
import SCTP
import Secure
import Testing
import Wire

@testable import Peer

/// Tests a peer's data channels without ICE and DTLS, by passing packets directly from end to end.
struct DataTransportTests {
  private let agreed = NegotiatedData(
    mid: "0", transport: 1, remotePort: 5000, remoteMaximumMessageSize: 1 << 20)

  /// Two ends, and each one's outputs besides packets.
  private struct Ends {
    var ends: [DataTransport]
    var outputs: [[DataTransport.Output]] = [[], []]
    var transports: Set<Int> = []
    var now = Instant.zero

    init() {
      ends = [UInt8(1), 2].map { seed in
        let entropy = Entropy(seed: [UInt8](repeating: seed, count: 32))
        return DataTransport(entropy: entropy.stream("sctp"))
      }
    }

    /// Applies an input, and delivers packets between the ends until none is left; `isCut` drops
    /// them.
    mutating func drive(_ end: Int, _ input: DataTransport.Input, isCut: Bool = false) {
      var waiting = [(end, input)]
      while !waiting.isEmpty {
        let (end, input) = waiting.removeFirst()
        var outbox = Outbox<DataTransport.Output>()
        ends[end].step(input, at: now, into: &outbox)
        while let output = outbox.next() {
          if case .packet(let packet, let transport) = output {
            transports.insert(transport)
            if !isCut { waiting.append((1 - end, .packet(packet))) }
          } else {
            outputs[end].append(output)
          }
        }
      }
    }

    /// Advances the time, meeting every deadline on the way.
    mutating func run(for interval: Interval) {
      let end = now + interval
      while let next = earliest(ends[0].deadline, ends[1].deadline), next <= end {
        now = max(now, next)
        for index in ends.indices {
          if let due = ends[index].deadline, due <= now { drive(index, .deadline) }
        }
      }
      now = end
    }

    mutating func open(_ end: Int, _ label: String) throws {
      drive(end, .open(try ends[end].channel(madeWith: DataChannelInit(label: label))))
    }

    /// Returns the reported channel states, as `label state`.
    func channels(of end: Int) -> [String] {
      outputs[end].compactMap { output in
        guard case .event(.dataChannel(let record)) = output else { return nil }
        return "\(record.options.label) \(record.state.rawValue)"
      }
    }

    /// Returns the replies to `send` calls, in order; nil errors mean success.
    func replies(of end: Int) -> [(call: UInt32, error: String?)] {
      outputs[end].compactMap { output in
        guard case .reply(let call, let reply) = output else { return nil }
        return (call, reply.error?.name)
      }
    }
  }

  /// Returns both ends after the first end's channel has opened at both.
  private func connected() throws -> Ends {
    var ends = Ends()
    try ends.open(0, "chat")
    ends.drive(0, .negotiated(agreed, isWanted: true, role: nil))
    #expect(ends.channels(of: 0) == ["chat connecting"], "there is no carrier yet")
    ends.drive(1, .negotiated(agreed, isWanted: true, role: .server))
    ends.drive(0, .negotiated(agreed, isWanted: true, role: .client))
    return ends
  }

  @Test func channelsOpenOnceTheyHaveACarrier() throws {
    let ends = try connected()
    #expect(ends.channels(of: 0) == ["chat connecting", "chat open"])
    #expect(ends.channels(of: 1) == ["chat open"])
    #expect(ends.transports == [1])
    #expect(ends.ends[0].infos.map(\.readyState) == [.open])
    #expect(ends.ends[0].infos.map(\.maxMessageSize) == [1 << 20])
  }

  @Test func sendsCompleteWhenThereIsRoom() throws {
    var ends = try connected()
    let message = DataMessage(
      channel: 0, isBinary: true, bytes: [UInt8](repeating: 7, count: 800_000))
    ends.drive(0, .send(message, call: 1), isCut: true)
    #expect(ends.replies(of: 0).map(\.call) == [1])
    ends.drive(0, .send(message, call: 2), isCut: true)
    #expect(ends.replies(of: 0).map(\.call) == [1], "more than a mebibyte waits")
    ends.run(for: .seconds(60))
    #expect(ends.replies(of: 0).map(\.call) == [1, 2])
    #expect(ends.replies(of: 0).allSatisfy { $0.error == nil })
    let received = ends.outputs[1].filter { if case .event(.message) = $0 { true } else { false } }
    #expect(received.count == 2)
  }

  @Test func waitingSendersAreInformedWhenTheCarrierIsLost() throws {
    var ends = try connected()
    let message = DataMessage(
      channel: 0, isBinary: true, bytes: [UInt8](repeating: 7, count: 1 << 20))
    for call in 1...2 { ends.drive(0, .send(message, call: UInt32(call)), isCut: true) }
    ends.drive(0, .carrierLost, isCut: true)
    let last = try #require(ends.replies(of: 0).last)
    #expect(last == (2, "OperationError"))
    #expect(ends.channels(of: 0).last == "chat closed")
    ends.drive(0, .send(message, call: 3))
    #expect(ends.replies(of: 0).last?.error == "InvalidStateError")
    #expect(throws: PeerError.self) {
      try ends.ends[0].channel(madeWith: DataChannelInit(label: "late"))
    }
  }

  @Test func anotherCarrierStartsOverWithOtherNumbers() throws {
    var ends = try connected()
    for end in 0...1 { ends.drive(end, .carrierRenewed, isCut: true) }
    #expect(ends.channels(of: 1).last == "chat closed")
    try ends.open(0, "again")
    ends.drive(1, .negotiated(agreed, isWanted: true, role: .server))
    ends.drive(0, .negotiated(agreed, isWanted: true, role: .client))
    #expect(ends.channels(of: 0).suffix(3) == ["chat closed", "again connecting", "again open"])
    #expect(ends.ends[0].infos.map(\.number) == [1])
    #expect(ends.ends[0].opened == 2 && ends.ends[0].closed == 1)
  }

  @Test func aRefusingExchangeClosesWaitingChannels() throws {
    var ends = Ends()
    try ends.open(0, "vain")
    ends.drive(0, .negotiated(nil, isWanted: true, role: .client))
    #expect(ends.channels(of: 0) == ["vain connecting"], "the next offer asks for them")
    ends.drive(0, .negotiated(nil, isWanted: false, role: .client))
    #expect(ends.channels(of: 0).last == "vain closed")
    let errors = ends.outputs[0].filter {
      if case .event(.dataChannelError) = $0 { true } else { false }
    }
    #expect(errors.count == 1)
  }
}
