import Live
import Peer
import Synchronization
import Tape
import Wire

/// A monotonic clock that the test moves.
final class ManualClock: Sendable {
  let nanoseconds = Mutex<Int64>(5_000)

  var takeClock: TakeClock {
    TakeClock(unixNanoseconds: 1_767_225_600_000_000_000) { [self] in
      nanoseconds.withLock { $0 }
    }
  }

  func advance(by interval: Interval) { nanoseconds.withLock { $0 += interval.nanoseconds } }
}

/// Collects elements that any thread adds.
final class Collector<Element: Sendable>: Sendable {
  private let kept = Mutex<[Element]>([])

  var all: [Element] { kept.withLock { $0 } }
  func append(_ element: Element) { kept.withLock { $0.append(element) } }
}

extension Collector: StepSink where Element == StepRecord {
  func record(_ step: StepRecord) { append(step) }
  func end(actor: UInt32) {}
}

/// An engine whose behaviour the test scripts.
final class ScriptedEngine: PeerEngine {
  typealias Script = (ScriptedEngine, PeerInput, Instant, inout Outbox<PeerOutput>) -> Void

  var deadline: Instant?
  var entropyDrawn: UInt64 = 0
  /// A short description of each input, preceded by its time in milliseconds.
  private(set) var inputs: [String] = []
  private let script: Script

  init(_ script: @escaping Script = { _, _, _, _ in }) { self.script = script }

  func recognizes(_ datagram: Datagram) -> Bool { true }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    inputs.append("\(now.nanoseconds / 1_000_000) \(input.word)")
    entropyDrawn += 1
    script(self, input, now, &outbox)
  }
}

extension PeerInput {
  /// A word for the kind of input, so that tests can compare sequences of inputs.
  var word: String {
    switch self {
    case .genesis: "genesis"
    case .interfaces(let addresses, _): "interfaces \(addresses)"
    case .datagram(let datagram, let arrival):
      "datagram \(datagram.bytes) \(arrival.nanoseconds / 1_000_000)"
    case .deadline: "deadline"
    case .call(let id, let call): "call \(id) \(call)"
    case .send(let id, let message): "send \(id) \(message.channel) \(message.bytes.count)"
    case .captured(let transceiver, _): "captured \(transceiver)"
    case .answer(.socketBound(let id, let address)): "bound \(id) \(address)"
    case .answer(.socketFailed(let id, let code)): "failed \(id) \(code)"
    case .answer(.streamAccepted(_, let remote)): "accepted \(remote)"
    case .answer(.nameResolved(let id, let addresses)): "resolved \(id) \(addresses)"
    case .sendFailed(let failure): "refused \(failure.remote) \(failure.code)"
    case .signaling(let message): "signaling \(message.type)"
    case .relayed: "relayed"
    }
  }
}

/// A port without a network: sockets get ports from 1000 on; sent datagrams are kept, or rejected.
final class ScriptedPort: DatagramPort {
  var sendCode: Int32 = 0
  var bindCode: Int32?
  private(set) var sent: [Datagram] = []
  private(set) var closed: [SocketAddress] = []
  private(set) var names: [String] = []
  private(set) var flushes = 0
  private var flushed = 0
  private var refusals: [SendFailure] = []
  private var nextPort: UInt16 = 1000

  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    if let bindCode { throw SystemError(operation: "bind", code: bindCode) }
    defer { nextPort += 1 }
    return SocketAddress(ip, port: nextPort)
  }

  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError) {
    throw SystemError(operation: "connect", code: 111)
  }

  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress { try bind(ip) }

  func close(_ local: SocketAddress) { closed.append(local) }

  func closeStream(_ local: SocketAddress, _ remote: SocketAddress) { closed.append(remote) }

  func send(_ datagram: Datagram) {
    if sendCode == 0 { return sent.append(datagram) }
    refusals.append(
      SendFailure(datagram, code: sendCode))
  }

  func flush() -> [SendFailure] {
    defer { refusals = [] }
    flushes += sent.count > flushed ? 1 : 0
    flushed = sent.count
    return refusals
  }

  func publish(_ name: String, _ ip: IPAddress) { names.append("\(name) is \(ip)") }

  func resolve(_ name: String, id: UInt32) { names.append("\(id) \(name)") }
}

/// A driver over a scripted engine, a scripted port and a manual clock.
struct DriverFixture {
  let clock = ManualClock()
  let port = ScriptedPort()
  let engine: ScriptedEngine
  let steps = Collector<StepRecord>()
  let events = Collector<String>()
  let driver: PeerDriver

  static let local = SocketAddress(IPAddress(ipv4: 0x7f00_0001), port: 1000)
  static let remote = SocketAddress(IPAddress(ipv4: 0x7f00_0001), port: 2000)
  static let genesis = Genesis(
    seed: [1], wallClock: WallClock(unixNanosecondsAtZero: 0), configuration: PeerConfiguration())

  init(
    statsInterval: Interval? = nil, records: Bool = true,
    script: @escaping ScriptedEngine.Script = { _, _, _, _ in }
  ) {
    engine = ScriptedEngine(script)
    let events = events
    driver = PeerDriver(
      engine: engine, clock: clock.takeClock, recorder: records ? steps : nil, actor: 3,
      statsInterval: statsInterval, port: port,
      observer: { event, now in events.append("\(now.nanoseconds / 1_000_000) \(event)") })
  }

  /// Makes a datagram that arrives from `remote` at `local`.
  static func datagram(_ bytes: [UInt8]) -> Datagram {
    Datagram(local: local, remote: remote, bytes: bytes)
  }
}
