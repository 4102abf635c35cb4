import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Live
import Peer
import Relaying
import Signaling
import Synchronization
import TLS
import Tape
import Wire

/// Records calls between a client and a server whose signaling and media pass through a relay.
struct RecordRelay: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "relay",
    abstract: "Relay between an application and its server, and record their calls.",
    discussion: """
      The application gets the relay's address instead of its server's, and needs no other change. \
      The relay forwards HTTP and WebSockets, and replaces the addresses and keys in descriptions \
      by its own, so that both ends connect to it; everything else is the same on both legs. The \
      take has both legs of each call, with their signaling as received and as forwarded, and both \
      ends, reconstructed from their decrypted packets. Media is not decoded meanwhile; retake \
      upgrade --decode does that later.

      Descriptions and candidates are found in JSON, forms, plain text and SDP bodies; --sdp-rules \
      names further places. Signaling without descriptions, as in mediasoup and Jingle, and binary \
      formats such as protobuf are refused.

      --fault changes what passes between the legs: drop, delay, duplicate, corrupt, jitter or \
      rate, with the packets to affect, or wifi, lossy-wifi, congested-wifi, cellular or \
      satellite. With --ring, takes of the last seconds have both legs and both ends, \
      reconstructed from the packets on their paths.

      Examples:
        retake record relay --upstream https://sfu.example --out call.take
        retake record relay --listen 127.0.0.1:8090 \\
          --upstream ws://127.0.0.1:8188 --fault 'drop near rtp video 5%'
        retake record relay --upstream https://app.example \\
          --certificate a.pem --key a.key --allow-origin https://app.example
        retake record relay --upstream https://a.example --ring 60s --on finding:high
      """)

  @Option(
    help: """
      The address of the server, without a path: http:// or https://HOST[:PORT], or with ws:// or \
      wss://.
      """,
    transform: Taking.url(["http", "https", "ws", "wss"]))
  var upstream: String

  @OptionGroup var paths: RelayPathOptions
  @OptionGroup var listening: RelayListenOptions

  @OptionGroup var signaling: RelaySignalingOptions

  @Option(
    help: """
      A fault for the packets between the legs, as in 'drop near rtp video 5%', 'delay 80ms \
      audio', 'rate 800kbps queue=300ms' or cellular; may be given several times. near and far \
      name the packets' sender.
      """,
    transform: Self.faultReader)
  var fault: [RelayFaults] = []

  @Option(
    name: .customLong("fault-file"),
    help: """
      A file with a fault on each line, read again whenever it changes; empty lines and lines that \
      begin with # are ignored.
      """,
    completion: .file(), transform: Taking.path)
  var faultFile: String?

  @Option(
    help: "How many calls may run at once; further ones are refused. Default: 64.",
    transform: Taking.whole(1...10_000))
  var calls = 64

  @Option(
    name: .customLong("connect-within"),
    help: "End a call that has not connected within this many seconds. Default: 120.",
    transform: Taking.seconds(1...86_400))
  var connectSeconds = 120.0

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  /// The faults that one option selects: a single fault, or those of a preset.
  struct RelayFaults: Sendable {
    var all: [RelayFault]
  }

  private static let faultReader: Taking.Reader<RelayFaults> = { word in
    do throws(SignalingRefusal) {
      return RelayFaults(all: try RelayFault.list(parsing: word))
    } catch {
      throw Taking.Refusal(error.reason)
    }
  }

  /// The maximum number of distinct notices to print.
  private static let noticesMaximum = 1000

  func validate() throws {
    try signaling.check(upstream: upstream)
  }

  func run() async throws {
    var settings = RelayService.Settings()
    settings.rules = try signaling.rules()
    settings.callsMaximum = calls
    settings.connectionLimit = .seconds(connectSeconds)
    settings.near = paths.session.peerConfiguration
    settings.far = paths.session.peerConfiguration
    let given = fault.flatMap(\.all)
    let watched = try faultFile.map { try FaultFile($0) }
    let path = try RecordOptions.newTakePath(paths.out, prefix: "relay", paths.overwrite)
    let stop = StopSignal()
    let session = try openSession(paths.sessionOptions(take: path))
    let relay = RelayService(session, settings)
    let said = Mutex<Set<String>>([])
    let proxy: ProxyServer
    do throws(HTTPError) {
      proxy = try await ProxyServer.listen(
        listening.settings(upstream: upstream, authorities: signaling.authorities),
        notice: { sentence in
          // Pages retry, so each notice is printed only once.
          let isNew = said.withLock { said in
            said.count < Self.noticesMaximum && said.insert(sentence).inserted
          }
          if isNew { printError(sentence) }
        }, rewrite: { await relay.rewrite($0) })
    } catch {
      _ = try? await relay.finish()
      discard(path)
      throw CommandFailure(.inputOutput, error.reason)
    }
    await relay.calls.set(given + (watched?.faults ?? []))
    printError("the relay to \(upstream) is \(proxy.url): give it to the application instead")
    printError("the take holds keys and media of the calls; Ctrl-C ends the recording")
    await stop.wait(seconds: paths.session.seconds) {
      guard var file = watched else { return await Self.never() }
      while (try? await Task.sleep(for: .seconds(1))) != nil {
        switch file.news() {
        case .faults(let faults)?: await relay.calls.set(given + faults)
        case .refused(let reason)?: printError(reason)
        case nil: break
        }
      }
    }
    await proxy.shutdown()
    try await conclude(relay, path)
  }

  /// Waits until the task is cancelled.
  private static func never() async {
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    for await _ in stream {}
    withExtendedLifetime(continuation) {}
  }

  private func conclude(_ relay: RelayService, _ path: String) async throws {
    let count = await relay.calls.callCount
    let (summary, unseen): (TakeSummary?, UInt64)
    do throws(TapeError) {
      (summary, unseen) = try await relay.finish()
    } catch {
      throw CommandFailure(.inputOutput, error.description)
    }
    guard let summary else { return }
    if unseen > 0 {
      printError(
        "\(unseen) packets arrived too fast to store for both ends; they are stored for the legs")
    }
    var report = RecordingReport()
    report.add(summary, [], media: counted(count, "call"))
    try report.show(json: json)
  }
}

// MARK: - RelaySignalingOptions

/// Options for the signaling with the server behind a relay.
struct RelaySignalingOptions: ParsableArguments {
  @Option(
    help: "Trust these certificates in PEM instead of the system's for the server.",
    completion: .file(), transform: Taking.path)
  var authorities: String?

  @Option(
    name: .customLong("sdp-rules"),
    help: """
      A file with the places of descriptions and candidates in messages, as a JSON list: \
      [{"description": "body.offer", "type": "kind", "encoding": "base64"}, {"candidate": \
      "body.ice.*", "mid": "section"}]. Places are names of members; * stands for any member and \
      any element of a list.
      """,
    completion: .file(), transform: Taking.path)
  var rulesFile: String?

  /// Throws unless the options suit the server's address.
  func check(upstream: String) throws {
    do throws(HTTPError) {
      try ProxyServer.check(upstream: upstream)
    } catch {
      throw ValidationError("--upstream \(error.reason).")
    }
    let isSecure = ["https", "wss"].contains { upstream.lowercased().hasPrefix($0 + "://") }
    guard authorities == nil || isSecure else {
      throw ValidationError("--authorities is for a server with TLS: leave it out.")
    }
  }

  func rules() throws -> SDPRules {
    guard let rulesFile else { return SDPRules() }
    let text = try FaultFile.text(of: rulesFile)
    do throws(SignalingRefusal) {
      return try SDPRules(parsing: text)
    } catch {
      throw CommandFailure(.usage, "\(FileBytes.name(of: rulesFile)): \(error.reason)")
    }
  }
}

// MARK: - RelayPathOptions

/// Options for a relay's take and its legs' connections.
struct RelayPathOptions: ParsableArguments {
  @Option(
    name: .shortAndLong, help: "The take to write. Default: a name with the time.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @OptionGroup var session: SessionRecordingOptions

  @OptionGroup var ring: RingOptions

  @OptionGroup var overwrite: OverwriteOption

  func validate() throws {
    if let out, TakeNames.isFolder(out) {
      throw ValidationError("--out \(out): a relay writes all calls into one take, so name a file.")
    }
  }

  func sessionOptions(take: String) -> Session.Options {
    session.options(take: take, ring: ring.plan(session.importSettings))
  }
}

// MARK: - RelayListenOptions

/// Options for a relay's listening address and for who may connect to it.
///
/// There is no token, because the application would not send one.
struct RelayListenOptions: ParsableArguments {
  @OptionGroup var address: ServerOptions

  @Option(
    name: .customLong("allow-host"),
    help: """
      Another host name by which callers may address the relay, without a port; may be given \
      several times. Loopback names and the name given to --listen are always allowed.
      """,
    transform: Taking.value(HostChoice.wanted))
  var allowedHosts: [HostChoice] = []

  @Option(
    name: [.customLong("allow-origin"), .customLong("origin")],
    help: """
      An origin whose pages may call, like https://app.example; may be given several times. \
      Default: the relay's own and the server's.
      """,
    transform: Taking.value(OriginChoice.wanted))
  var allowedOrigins: [OriginChoice] = []

  func settings(upstream: String, authorities: String?) -> ProxyServer.Settings {
    var settings = ProxyServer.Settings(upstream: upstream)
    settings.host = address.listen.host
    settings.port = address.listen.port
    settings.hosts = allowedHosts.map(\.name)
    settings.origins = allowedOrigins.map(\.text)
    settings.authorities = authorities
    settings.identity = address.identity
    return settings
  }
}

// MARK: - FaultFile

/// A file with faults that is read again when it changes.
private struct FaultFile {
  /// The content of a changed file.
  enum News {
    case faults([RelayFault])
    /// The content is invalid, for this reason; the previous faults stay.
    case refused(String)
  }

  private let path: String
  private var content: String
  private(set) var faults: [RelayFault]

  private static let lengthMaximum = 64 << 10

  init(_ path: String) throws {
    self.path = path
    content = try FaultFile.text(of: path)
    do throws(SignalingRefusal) {
      faults = try FaultFile.faults(in: content)
    } catch {
      throw CommandFailure(.usage, "\(FileBytes.name(of: path)): \(error.reason)")
    }
  }

  /// Returns the content if the file has changed since the last call, otherwise nil.
  mutating func news() -> News? {
    guard let text = try? FaultFile.text(of: path), text != content else { return nil }
    content = text
    do throws(SignalingRefusal) {
      faults = try FaultFile.faults(in: text)
      return .faults(faults)
    } catch {
      return .refused(
        "\(FileBytes.name(of: path)): \(error.reason); the previous faults stay in effect")
    }
  }

  private static func faults(in text: String) throws(SignalingRefusal) -> [RelayFault] {
    var all: [RelayFault] = []
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.drop { $0 == " " }
      guard !words.isEmpty, !words.hasPrefix("#") else { continue }
      all += try RelayFault.list(parsing: String(words))
    }
    return all
  }

  /// Returns the text of a file with at most `lengthMaximum` bytes.
  static func text(of path: String) throws -> String {
    switch FileBytes.open(path) {
    case .failure(let code):
      throw CommandFailure(.noSuchFile, "\(FileBytes.name(of: path)): it cannot be read: \(code)")
    case .success(let descriptor):
      let bytes = FileDescriptor(descriptor).read(atMost: lengthMaximum + 1, from: 0)
      guard bytes.count <= lengthMaximum else {
        throw CommandFailure(
          .usage, "\(FileBytes.name(of: path)): it is longer than \(lengthMaximum) bytes")
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
}
