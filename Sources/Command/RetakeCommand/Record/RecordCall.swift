import ArgumentParser
import CallRecording
import FoundationEssentials
import Live
import Peer
import SDP
import Signaling
import Synchronization
import Wire

/// The parent of all commands that record.
struct Record: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Record a live session into a take.",
    discussion: """
      Examples:
        retake record demo --seconds 10
        retake record serve --listen 127.0.0.1:8080 --out calls/
        retake record call http://127.0.0.1:8081/offer --seconds 30
        retake record whip https://live.example/whip --token SECRET
        retake record whep https://live.example/whep --token SECRET
        retake record janus ws://127.0.0.1:8188 --room 1234 --publish pattern
        retake record sora wss://sora.example/signaling \\
          --channel test --publish pattern
        retake record room ws://127.0.0.1:8080/rooms --room talk --publish pattern
        retake record pcap -i any --keys keys.log --out call.take
        retake record page --origin https://app.example --out calls/
        retake record relay --upstream https://sfu.example --out call.take
      """,
    subcommands: [
      RecordDemo.self, RecordServe.self, RecordCall.self, RecordWHIP.self, RecordWHEP.self,
      RecordJanus.self, RecordSora.self, RecordRoom.self, RecordPcap.self, RecordPage.self,
      RecordRelay.self,
    ])
}

// MARK: - RecordCall

/// Calls a peer that answers offers over HTTP.
struct RecordCall: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "call",
    abstract: "Call a peer: POST an offer to it and record the call.",
    discussion: """
      The offer is posted as JSON {"sdp", "type"}; the reply must be {"sdp", "type"}. A URL \
      without a path means /offer.

      Examples:
        retake record call http://127.0.0.1:8081/offer --seconds 30 --out call.take
        retake record call http://127.0.0.1:8081/offer \\
          --send clip.h264 --send clip.wav
        retake record call http://127.0.0.1:8081/offer --send microphone,camera --play
        retake record call http://127.0.0.1:8081/offer --ring 60s --on finding:high
      """)

  @Argument(help: "Where to POST the offer.", transform: Taking.url(["http"]))
  var url: String

  @OptionGroup var options: RecordOptions

  @OptionGroup var sending: SendOptions
  @OptionGroup var playing: PlayOption

  func run() async throws {
    let plan = try SendPlan(
      sending, plays: playing.play, default: .pattern, preferring: options.videoCodec)
    let target = try Self.target(url)
    let path = try options.newTakePath(prefix: "call")
    let stop = StopSignal()
    let session = try openSession(options.sessionOptions(take: path, ring: options.ringPlan()))
    let connection = session.makePeer(
      label: "retake", role: "caller", configuration: options.peerConfiguration)
    let failures = SendFailures.onTerminal()
    let peer = CallPeer(
      connection, in: session, sending: plan,
      devices: plan.devices.isEmpty ? nil : LocalDevices(plan.devices, telling: failures),
      transport: "http", preferring: options.videoCodec,
      telling: failures)
    let exchanged = Mutex(false)
    var failure: CommandFailure?
    do {
      let answered: Void? = try await stop.interrupting {
        let offer = try await peer.offer()
        let (answer, _) = try await Self.exchange(offer, target)
        exchanged.withLock { $0 = true }
        do {
          try await peer.accept(answer)
        } catch let refusal as CallRefusal {
          throw CommandFailure(.inputOutput, "\(target): \(refusal.reason)")
        }
      }
      if answered != nil {
        let progress = Progress("recording", seconds: options.session.seconds)
        await stop.wait(seconds: options.session.seconds) {
          await withTaskGroup(of: Void.self) { group in
            group.addTask { await peer.waitUntilGone() }
            group.addTask { await progress.run { peer.progress } }
            _ = await group.next()
            group.cancelAll()
          }
        }
        progress.clear()
      }
    } catch let error as PeerError {
      failure = CommandFailure(.inputOutput, "\(target): the call failed: \(error.message)")
    } catch let error as CommandFailure {
      failure = error
    }
    let media = peer.mediaSummary
    peer.endDevices()
    let summary = try await finish(session, path)
    if let failure {
      if !exchanged.withLock({ $0 }) { discard(path) }
      throw failure
    }
    var report = RecordingReport()
    report.add(summary, [RecordingReport.Peer(connection)], media: media)
    try report.conclude(with: failures, json: options.json)
  }

  /// Returns the URL to post offers to, adding the path `/offer` if the URL has none; throws unless
  /// the URL is `http://` with a host.
  static func target(_ url: String) throws -> String {
    guard let parts = URLComponents(string: url), parts.scheme == "http", parts.host != nil else {
      throw CommandFailure(.usage, "\(url) is not an http:// address of a peer")
    }
    return parts.path.isEmpty || parts.path == "/"
      ? url.trimming { $0 == "/" } + "/offer" : url
  }

  /// Posts an offer and returns the answer, with the peer's identifier for the call if there is
  /// one.
  ///
  /// - Parameter call: the identifier from an earlier answer, for an offer that changes the call.
  static func exchange(
    _ offer: SessionDescription, _ target: String, call: String? = nil
  ) async throws -> (answer: SessionDescription, call: String?) {
    let body: Data
    let response: HTTPResponse
    do {
      body = try JSONEncoder().encode(CallBody(id: call, sdp: offer.sdp, type: offer.type))
      response = try await HTTPClient().post(target, json: String(decoding: body, as: UTF8.self))
    } catch let error as HTTPError {
      throw CommandFailure(.inputOutput, error.reason)
    }
    guard (200..<300).contains(response.status) else {
      throw CommandFailure(
        .inputOutput,
        "\(target) answered with status \(response.status): \(response.text.prefix(200))")
    }
    guard
      let reply = try? JSONDecoder().decode(CallBody.self, from: Data(response.body)),
      reply.type == .answer
    else {
      throw CommandFailure(.inputOutput, "\(target) did not answer with JSON that has sdp and type")
    }
    return (SessionDescription(type: .answer, sdp: reply.sdp), reply.id)
  }

  /// The JSON body with which descriptions are exchanged.
  private struct CallBody: Codable {
    var id: String?
    var sdp: String
    var type: SDPType
  }
}
