import Secure
import Seeded
import Wire

/// Two transports on a virtual link with a virtual clock, and a trace of all events.
final class DTLSPair {
  /// One end of the link.
  final class End {
    let transport: DTLSTransport
    let role: DTLSRole
    let entropy: EntropyStream
    var sent: [[UInt8]] = []
    var states: [DTLSTransportState] = []
    var result: DTLSResult?
    var data: [[UInt8]] = []
    var failures: [String] = []
    /// Every input with its instant, as a take would store them.
    var tape: [(DTLSTransport.Input, Instant)] = []
    /// The datagrams that the transport sent, grouped by tape position.
    var steps: [[[UInt8]]] = []

    init(_ role: DTLSRole, seed: [UInt8], _ options: Options = Options()) throws {
      self.role = role
      entropy = Entropy(seed: seed).stream("dtls")
      transport = try DTLSTransport(
        entropy: entropy, wallClock: .test, certificates: options.certificates,
        profiles: options.profiles)
    }
  }

  /// The certificates and negotiation options of an end.
  struct Options {
    var certificates: [PeerCertificate] = []
    var profiles = SRTPProtection.preferred
  }

  /// Returns the copies of a datagram that arrive, each with its delay; none if the datagram is
  /// lost.
  typealias Link = (_ index: Int, _ bytes: [UInt8]) -> [(delay: Interval, bytes: [UInt8])]

  static let delay = Interval.milliseconds(20)

  let client: End
  let server: End
  private(set) var now = Instant.zero
  private var link: Link
  private var flying: [(at: Instant, number: Int, to: End, bytes: [UInt8])] = []
  private var count = 0

  /// Runs a step, on any thread.
  private let execute: (@escaping () -> Void) -> Void

  init(
    seed: UInt8 = 1, client clientOptions: Options = Options(),
    server serverOptions: Options = Options(),
    link: @escaping Link = { _, bytes in [(DTLSPair.delay, bytes)] },
    execute: @escaping (@escaping () -> Void) -> Void = { $0() }
  ) throws {
    client = try End(.client, seed: [seed, 1], clientOptions)
    server = try End(.server, seed: [seed, 2], serverOptions)
    self.link = link
    self.execute = execute
  }

  /// Returns a link that loses the datagrams whose bits are set, counted over both directions.
  static func losing(_ mask: UInt32) -> Link {
    { index, bytes in index < 32 && mask >> UInt32(index) & 1 == 1 ? [] : [(delay, bytes)] }
  }

  var isConnected: Bool {
    client.transport.state == .connected && server.transport.state == .connected
  }

  func peer(of end: End) -> End { end === client ? server : client }

  func start(
    clientExpects: [CertificateFingerprint]? = nil, serverExpects: [CertificateFingerprint]? = nil
  ) {
    step(
      server, .start(.server, remoteFingerprints: serverExpects ?? [client.transport.fingerprint]))
    step(
      client, .start(.client, remoteFingerprints: clientExpects ?? [server.transport.fingerprint]))
  }

  func step(_ end: End, _ input: DTLSTransport.Input) {
    var outbox = Outbox<DTLSTransport.Output>()
    let now = self.now
    execute { end.transport.step(input, at: now, into: &outbox) }
    end.tape.append((input, now))
    var datagrams: [[UInt8]] = []
    for output in outbox.drain() {
      switch output {
      case .datagram(let bytes):
        datagrams.append(bytes)
        send(bytes, from: end)
      case .state(let state): end.states.append(state)
      case .established(let result): end.result = result
      case .data(let bytes): end.data.append(bytes)
      case .failure(let reason): end.failures.append(reason)
      }
    }
    end.sent += datagrams
    end.steps.append(datagrams)
  }

  private func send(_ bytes: [UInt8], from end: End) {
    for copy in link(count, bytes) {
      flying.append((now + copy.delay, flying.count + count * 1000, peer(of: end), copy.bytes))
    }
    count += 1
  }

  /// Runs until no datagram is in transit and no timer waits, or until a limit.
  func run(for limit: Interval = .seconds(60)) {
    let end = now + limit
    while true {
      let first = flying.indices.min { left, right in
        (flying[left].at, flying[left].number) < (flying[right].at, flying[right].number)
      }
      let arrival = first.map { flying[$0].at }
      let timer = earliest(client.transport.deadline, server.transport.deadline)
      guard let next = earliest(arrival, timer), next <= end else { return }
      now = max(now, next)
      if let first, arrival == next {
        let datagram = flying.remove(at: first)
        step(datagram.to, .datagram(datagram.bytes))
      } else {
        step(client.transport.deadline == next ? client : server, .deadline)
      }
    }
  }

  /// Whether both ends are connected with the same keys.
  var agrees: Bool {
    guard isConnected, let client = client.result, let server = server.result else { return false }
    return client.sendKey == server.receiveKey && client.receiveKey == server.sendKey
      && client.profile == server.profile && client.sendKey != client.receiveKey
  }

  /// Everything on the wire and both keys, for comparisons.
  var transcript: [[UInt8]] {
    client.sent + server.sent + [client.result?.sendKey ?? [], client.result?.receiveKey ?? []]
  }
}

extension DTLSTransport {
  /// The first local certificate's fingerprint.
  var fingerprint: CertificateFingerprint { fingerprints[0] }
  /// The first local certificate.
  var certificate: [UInt8] { certificates[0] }
}

extension WallClock {
  /// Begins at 2026-01-01T00:00:00Z.
  static let test = WallClock(unixNanosecondsAtZero: 1_767_225_600_000_000_000)
}

/// Returns the bytes with one to four random changes to their values or their length.
func mutated(_ bytes: [UInt8], with random: inout SeededGenerator) -> [UInt8] {
  var bytes = bytes
  for _ in 0..<Int.random(in: 1...4, using: &random) {
    switch Int.random(in: 0..<5, using: &random) {
    case 0 where !bytes.isEmpty:
      bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
    case 1:
      let more = Int.random(in: 1...40, using: &random)
      bytes += (0..<more).map { _ in UInt8.random(in: 0...255, using: &random) }
    case 2 where !bytes.isEmpty:
      // Length fields and flags often fail at extremes.
      let value: UInt8 = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
      bytes[Int.random(in: bytes.indices, using: &random)] = value
    case 3 where bytes.count > 13:
      bytes[Int.random(in: 0..<13, using: &random)] = UInt8.random(in: 0...255, using: &random)
    default:
      guard !bytes.isEmpty else { continue }
      let index = Int.random(in: bytes.indices, using: &random)
      bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }
  }
  return bytes
}

/// Parses hexadecimal digits with blanks or colons between them.
func hex(_ text: String) -> [UInt8] {
  [UInt8](hexadecimal: text.filter { !$0.isWhitespace && $0 != ":" }) ?? []
}
