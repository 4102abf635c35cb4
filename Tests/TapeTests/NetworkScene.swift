import Foundation
import ICE
import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Tape
import Wire

/// A short call between two peers with one fault in its signaling, its setup or its network, or
/// with something harmless that looks like it.
enum NetworkScene: String, CaseIterable {
  // Scenes without faults.
  case good, wideBottleneck, littleJitter, shortStop, openRelay, slowAnswer, renegotiated
  case rightCredentials, lossWithRepair, shortSilence
  // Faults of signaling.
  case noAnswer, lateAnswer, refusedDescription, storm, openRestart, rejectedSection
  case unwantedMedia, remappedPayloadType, doubledLines, secondAnswer
  // Faults of setup.
  case wrongFingerprint, lostFlights, deadAtFirst, wrongPassword, turnRefuses, turnIsGone
  case unknownName, behindNATs, noWay, noCandidates, relayOnly
  // Faults of the network.
  case narrowBottleneck, jitter, duplicates, lossWithoutRepair, heavyLoss, deadPath, deadOneWay
  case checksLost, oneStreamLost, reportsLost, ownStop, peerStop, heldUp, longerWay, churn
  case replayed, dataBehindLoss, skewedClock, reordered

  func record(in folder: TakeFolder) throws -> String {
    let path = folder.file("\(rawValue).take")
    let recorded = try RecordedVirtualCall(
      path: path, seed: 34, links: [LinkSettings(), LinkSettings()],
      labels: ["caller", "callee"], configurations: configurations)
    if let runSetup = setup { runSetup(recorded) } else { runNetwork(recorded) }
    _ = try recorded.finish()
    return path
  }

  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let camera = MediaSource.pattern(width: 96, height: 64, framesPerSecond: 15)
  private static let server = SocketAddress("203.0.113.1:3478")

  private var configurations: [PeerConfiguration] {
    var configuration = PeerConfiguration()
    switch self {
    case .wrongPassword, .turnRefuses, .turnIsGone, .rightCredentials, .relayOnly, .openRelay:
      configuration.iceServers = [
        ICEServerConfiguration(
          urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user",
          credential: self == .wrongPassword ? "guess" : "password")
      ]
      if self == .relayOnly || self == .openRelay { configuration.iceTransportPolicy = .relay }
    case .unknownName: configuration.iceAddressPrivacy = .names
    default: break
    }
    return [configuration, configuration]
  }

  // MARK: Signaling and setup

  private var setup: ((RecordedVirtualCall) -> Void)? {
    switch self {
    case .good, .wideBottleneck, .littleJitter, .shortStop, .lossWithRepair, .shortSilence,
      .narrowBottleneck, .jitter, .duplicates, .lossWithoutRepair, .heavyLoss, .deadPath,
      .deadOneWay, .checksLost, .oneStreamLost, .reportsLost, .ownStop, .peerStop, .heldUp,
      .longerWay, .churn, .replayed, .dataBehindLoss, .skewedClock, .reordered:
      nil
    case .noAnswer, .lateAnswer, .slowAnswer, .refusedDescription, .storm, .renegotiated,
      .openRestart, .secondAnswer:
      { self.runSignaling($0) }
    default: { self.runSetup($0) }
    }
  }

  private func runSignaling(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    call.addMedia(audio: Self.tone)
    switch self {
    case .noAnswer:
      call.call(0, .setLocalDescription(nil))
      recorded.run(for: .seconds(3))
    case .lateAnswer, .slowAnswer:
      call.negotiate(gatheringTime: .milliseconds(self == .lateAnswer ? 1_600 : 200))
      recorded.run(for: .seconds(1))
    case .refusedDescription:
      call.negotiate()
      recorded.run(for: .seconds(1))
      call.call(0, .setRemoteDescription(SessionDescription(type: .offer, sdp: "v=1\r\n")))
      recorded.run(for: .seconds(1))
    case .storm, .renegotiated:
      for _ in 0..<(self == .storm ? 9 : 3) {
        call.negotiate()
        recorded.run(for: .milliseconds(300))
      }
    case .openRestart:
      call.negotiate()
      recorded.run(for: .seconds(1))
      call.call(0, .restartICE)
      call.call(0, .setLocalDescription(nil))
      recorded.run(for: .seconds(3))
    case .secondAnswer:
      call.negotiate()
      guard case .description(let answer) = call.call(1, .localDescription) else { return }
      call.call(0, .setRemoteDescription(answer))
      recorded.run(for: .seconds(1))
    default: break
    }
  }

  private func runSetup(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    call.addMedia(
      audio: Self.tone,
      videoFrames: self == .unwantedMedia || self == .rejectedSection
        ? Self.camera : nil)
    var gathering = Interval.zero
    switch self {
    case .lostFlights: loseHandshake(call, until: .milliseconds(1_200))
    case .deadAtFirst: filter(call) { _, _ in false }
    case .noWay: filter(call) { _, _ in false }
    case .wrongPassword, .rightCredentials, .relayOnly, .openRelay, .turnRefuses:
      call.network.server = Self.server.map { VirtualTURNServer(address: $0) }
      if self == .turnRefuses {
        call.network.server?.refusal = STUNErrorCode(code: 486, reason: "Allocation Quota Reached")
      }
      gathering = .milliseconds(300)
    case .turnIsGone: gathering = .milliseconds(100)
    case .behindNATs:
      for peer in 0..<2 {
        call.network.hide(
          peer, at: [IPAddress(ipv4: 0x0a00_0001 + UInt32(peer))],
          behind: VirtualNAT(.portRestricted, address: IPAddress(ipv4: 0xcb00_7165 + UInt32(peer))))
      }
    default: break
    }
    call.negotiate(gatheringTime: gathering) { edited($0) }
    if self == .deadAtFirst {
      recorded.run(for: .milliseconds(5_800))
      call.network.box = nil
    }
    recorded.run(for: .milliseconds(length))
  }

  private var length: Int64 {
    switch self {
    case .behindNATs, .noWay, .unknownName, .noCandidates: 6_500
    case .turnIsGone: 12_000
    case .deadAtFirst: 6_000
    default: 2_500
    }
  }

  /// Returns a description as its recipient receives it.
  private func edited(_ sdp: String) -> String {
    var lines = sdp.components(separatedBy: "\r\n")
    switch self {
    case .wrongFingerprint:
      lines = lines.map {
        $0.hasPrefix("a=fingerprint:") && sdp.contains("a=setup:actpass")
          ? String($0.dropLast(2)) + ($0.hasSuffix("00") ? "11" : "00") : $0
      }
    case .unknownName:
      lines = lines.map { $0.replacing(".local ", with: "0.local ") }
    case .noCandidates: lines.removeAll { $0.hasPrefix("a=candidate") }
    case .rejectedSection where !sdp.contains("a=setup:actpass"):
      lines = lines.map { line in
        guard line.hasPrefix("m=video ") else { return line }
        return "m=video 0 " + line.dropFirst(8).drop { $0 != " " }.dropFirst()
      }
    case .unwantedMedia where !sdp.contains("a=setup:actpass"):
      let video = lines.firstIndex { $0.hasPrefix("m=video") } ?? lines.endIndex
      for index in lines.indices[video...] where lines[index] == "a=sendrecv" {
        lines[index] = "a=inactive"
      }
    case .remappedPayloadType where !sdp.contains("a=setup:actpass"):
      lines = lines.map { $0.replacing("111", with: "114") }
    case .doubledLines:
      lines = lines.flatMap { $0.hasPrefix("a=rtpmap:111") ? [$0, $0] : [$0] }
    default: break
    }
    return lines.joined(separator: "\r\n")
  }

  /// Drops both ends' handshake packets for a time.
  private func loseHandshake(_ call: VirtualCall, until interval: Interval) {
    let end = call.now + interval
    filter(call) { [weak call] bytes, _ in
      guard let call, call.now < end, let first = bytes.first else { return true }
      return !(20..<64).contains(first)
    }
  }

  // MARK: Network

  private func runNetwork(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    if self == .skewedClock {
      call.addMedia(audio: .application, from: [0])
    } else {
      call.addMedia(audio: Self.tone, videoFrames: hasVideo ? Self.camera : nil)
    }
    if self == .dataBehindLoss || self == .good {
      call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    }
    call.negotiate { self == .lossWithoutRepair ? Self.withoutRepair($0) : $0 }
    recorded.run(for: .milliseconds(1_000))
    spoil(recorded)
  }

  private var hasVideo: Bool {
    switch self {
    case .good, .narrowBottleneck, .wideBottleneck, .lossWithoutRepair, .lossWithRepair,
      .heavyLoss, .oneStreamLost, .jitter, .littleJitter:
      true
    default: false
    }
  }

  private func spoil(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    switch self {
    case .narrowBottleneck, .wideBottleneck:
      call.network.links[0].bitsPerSecond = self == .narrowBottleneck ? 90_000 : 4_000_000
      call.network.links[0].queueLimit = .milliseconds(600)
      recorded.run(for: .seconds(5))
    case .jitter, .littleJitter:
      call.network.links[0].jitter = .milliseconds(self == .jitter ? 120 : 8)
      recorded.run(for: .seconds(5))
    case .reordered:
      call.network.links[0].jitter = .milliseconds(65)
      recorded.run(for: .seconds(4))
    case .duplicates:
      call.network.links[0].duplicatesPerMille = 80
      recorded.run(for: .seconds(3))
    case .lossWithoutRepair, .lossWithRepair:
      call.network.links[0].lossPerMille = 60
      recorded.run(for: .seconds(4))
    case .heavyLoss:
      call.network.links[0].lossPerMille = 250
      recorded.run(for: .seconds(4))
    default: interrupt(recorded)
    }
  }

  /// Runs the scenes whose fault begins during the call.
  private func interrupt(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    func both(_ change: (inout LinkSettings) -> Void) {
      for peer in 0..<2 { change(&call.network.links[peer]) }
    }
    switch self {
    case .deadPath, .deadOneWay:
      both { $0.lossPerMille = 1000 }
      if self == .deadOneWay { call.network.links[1].lossPerMille = 0 }
      recorded.run(for: .milliseconds(3_000))
      both { $0.lossPerMille = 0 }
      recorded.run(for: .seconds(2))
    case .shortSilence:
      both { $0.lossPerMille = 1000 }
      recorded.run(for: .milliseconds(80))
      both { $0.lossPerMille = 0 }
      recorded.run(for: .seconds(2))
    case .churn:
      both { $0.lossPerMille = 1000 }
      recorded.run(for: .milliseconds(9_000))
      both { $0.lossPerMille = 0 }
      recorded.run(for: .seconds(4))
    case .checksLost:
      filter(call) { bytes, _ in (bytes.first ?? 255) > 3 }
      recorded.run(for: .seconds(40))
    case .oneStreamLost:
      // The SSRC of the first video stream that passes; all its packets are lost.
      var lost: ArraySlice<UInt8>?
      filter(call) { bytes, source in
        guard source.port == 40_000, bytes.count > 300, bytes[0] >= 128 else {
          return bytes.count < 12 || bytes[8..<12] != lost
        }
        lost = lost ?? bytes[8..<12]
        return bytes[8..<12] != lost
      }
      recorded.run(for: .seconds(9))
    case .reportsLost:
      filter(call) { bytes, _ in
        bytes.count < 2 || bytes[0] < 128 || !(192...223).contains(bytes[1])
      }
      recorded.run(for: .seconds(10))
    case .ownStop, .peerStop, .shortStop:
      let who = self == .peerStop ? 1 : 0
      for _ in 0..<2 {
        let length = Interval.milliseconds(self == .shortStop ? 40 : 400)
        call.stall(who, for: length)
        call.run(for: length)
        recorded.run(for: .seconds(1))
      }
    case .heldUp:
      // All packets of half a second arrive together at its end.
      let begin = call.now + .milliseconds(300)
      call.network.extraDelay = { [weak call] _, destination in
        guard let call, destination.port == 40_001, call.now >= begin,
          call.now < begin + .milliseconds(500)
        else { return .zero }
        return begin + .milliseconds(500) - call.now
      }
      recorded.run(for: .seconds(3))
    case .longerWay:
      both { $0.delay = .milliseconds(250) }
      recorded.run(for: .seconds(8))
    case .replayed: replay(recorded)
    case .dataBehindLoss, .good: sendData(recorded)
    case .skewedClock:
      for _ in 0..<820 {
        let samples = (0..<960).map { Int16($0 / 48 % 2 == 0 ? 8000 : -8000) }
        call.step(0, .captured(transceiver: 1, .audio(AudioBlock(samples: samples, channels: 1))))
        call.run(for: .microseconds(20_060))
      }
    default: break
    }
  }

  /// Lets a box on the path drop the packets that fail a test.
  private func filter(
    _ call: VirtualCall, _ passes: @escaping ([UInt8], _ source: SocketAddress) -> Bool
  ) {
    call.network.box = { source, _, bytes, _ in passes(bytes, source) ? [(bytes, .zero)] : [] }
  }

  /// Sends copies of the first 60 media packets again, long after the originals.
  private func replay(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    var kept: [[UInt8]] = []
    var source: SocketAddress?
    filter(call) { bytes, from in
      if bytes.count > 12, bytes[0] >= 128, !(192...223).contains(bytes[1]), from.port == 40_000,
        kept.count < 60
      {
        kept.append(bytes)
        source = from
      }
      return true
    }
    recorded.run(for: .milliseconds(1_500))
    call.network.box = nil
    guard let source, let target = SocketAddress("10.0.0.2:40001") else { return }
    for bytes in kept { call.network.inject(bytes, from: source, to: target, at: call.now) }
    recorded.run(for: .seconds(1))
  }

  private func sendData(_ recorded: RecordedVirtualCall) {
    let call = recorded.call
    if self == .dataBehindLoss { call.network.links[0].lossPerMille = 200 }
    for number in 0..<60 {
      call.send(
        0,
        DataMessage(channel: 0, isBinary: true, bytes: Array(repeating: UInt8(number), count: 900))
      )
      recorded.run(for: .milliseconds(50))
    }
  }

  /// Returns a description without retransmission and its feedback.
  private static func withoutRepair(_ sdp: String) -> String {
    var dropped: Set<Substring> = []
    var lines = sdp.components(separatedBy: "\r\n")
    for line in lines where line.hasPrefix("a=rtpmap:") && line.contains("rtx/") {
      dropped.insert(line.dropFirst(9).prefix { $0 != " " })
    }
    lines.removeAll { line in
      line.hasPrefix("a=rtcp-fb:") && line.hasSuffix(" nack")
        || dropped.contains { line.hasPrefix("a=rtpmap:\($0) ") || line.hasPrefix("a=fmtp:\($0) ") }
        || line.hasPrefix("a=ssrc-group:FID")
    }
    return lines.map { line in
      guard line.hasPrefix("m=video") else { return line }
      return line.split(separator: " ").enumerated()
        .filter { $0.offset < 3 || !dropped.contains($0.element) }
        .map(\.element).joined(separator: " ")
    }.joined(separator: "\r\n")
  }
}
