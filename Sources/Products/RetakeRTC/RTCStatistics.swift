public import Foundation
import Live
import Peer
package import Stats
import Wire

/// One object in a report, with its W3C members by name.
public final class RTCStatistics: Sendable, CustomStringConvertible {
  /// The object's identifier, which is the same in every report.
  public let id: String
  /// The object's type: `inbound-rtp`, `candidate-pair`, ...
  public let type: String
  // swift-format-ignore: AlwaysUseLowerCamelCase
  /// When the object was sampled, as Unix time in microseconds.
  public let timestamp_us: Double
  private let members: [StatsMember]

  init(_ object: StatsObject) {
    id = object.id
    type = object.type
    timestamp_us = object.timestamp * 1000
    members = object.members
  }

  /// The members: strings, numbers, and dictionaries of these.
  public var values: [String: NSObject] { dictionary(members) }

  /// The object as JSON.
  public var description: String {
    StatsObject(id: id, type: type, timestamp: timestamp_us / 1000, members: members).json
  }
}

/// A report on a whole connection, or on one sender or receiver.
public final class RTCStatisticsReport: Sendable, CustomStringConvertible {
  /// The objects by their `id`.
  public let statistics: [String: RTCStatistics]
  // swift-format-ignore: AlwaysUseLowerCamelCase
  /// The latest time at which an object was sampled, as Unix time in microseconds; 0 if the report
  /// is empty.
  public let timestamp_us: Double

  package init(_ report: StatsReport) {
    statistics = Dictionary(report.objects.map { ($0.id, RTCStatistics($0)) }) { first, _ in first }
    timestamp_us = (report.objects.map(\.timestamp).max() ?? 0) * 1000
  }

  /// The objects as JSON, in the order of their `id`.
  public var description: String {
    "[" + statistics.sorted { $0.key < $1.key }.map(\.value.description).joined(separator: ",")
      + "]"
  }
}

private func dictionary(_ members: [StatsMember]) -> [String: NSObject] {
  Dictionary(members.map { ($0.name, object($0.value)) }) { first, _ in first }
}

private func object(_ value: StatsValue) -> NSObject {
  switch value {
  case .integer(let value): NSNumber(value: value)
  case .number(let value): NSNumber(value: value)
  case .text(let value): NSString(string: value)
  case .flag(let value): NSNumber(value: value)
  case .record(let members):
    NSDictionary(
      objects: members.map { object($0.value) }, forKeys: members.map { NSString(string: $0.name) })
  }
}

extension RTCPeerConnection {
  /// Returns the current statistics of the whole connection.
  public func statistics(
    completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(nil, completionHandler)
  }

  /// Returns a sender's statistics, with all objects they refer to.
  public func statistics(
    for sender: RTCRtpSender, completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(.sender(transceiver: sender.transceiver), completionHandler)
  }

  /// Returns a receiver's statistics, with all objects they refer to.
  public func statistics(
    for receiver: RTCRtpReceiver,
    completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(.receiver(transceiver: receiver.transceiver), completionHandler)
  }

  /// Returns the current statistics of the whole connection.
  public func statistics() async -> RTCStatisticsReport {
    await withCheckedContinuation { continuation in
      statistics { continuation.resume(returning: $0) }
    }
  }

  private func report(
    _ selector: StatsSelector?,
    _ completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    let told = Handed(completionHandler)
    connection.perform(.getStats(of: selector)) { [factory] reply in
      let report: StatsReport = if case .stats(let report) = reply { report } else { StatsReport() }
      factory.queue.async { told.value(RTCStatisticsReport(report)) }
    }
  }
}

// MARK: - RTCLegacyStatsReport

/// The detail level of legacy statistics, numbered as in the Objective-C header; no effect here.
public enum RTCStatsOutputLevel: Int, Sendable {
  /// The statistics that applications need.
  case standard
  /// Statistics for debugging as well.
  case debug
}

/// One object from the statistics API that preceded the standard, with the names used there.
///
/// It is converted from standard objects, so values that they lack are missing here too.
public final class RTCLegacyStatsReport: Sendable, CustomStringConvertible {
  /// When the object was sampled, as Unix time in milliseconds.
  public let timestamp: Double
  /// The object's type: `ssrc`, `googCandidatePair`, `localcandidate` or `remotecandidate`.
  public let type: String
  /// The object's identifier, which is the same in every report.
  public let reportId: String
  /// The values by name, all as text.
  public let values: [String: String]

  fileprivate init(_ object: StatsObject, type: String, id: String, _ values: [String: String]) {
    timestamp = object.timestamp
    self.type = type
    reportId = id
    self.values = values
  }

  /// The values, sorted by name.
  public var description: String {
    let text = values.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    return "\(type) \(reportId) [\(text.joined(separator: ", "))]"
  }
}

extension RTCPeerConnection {
  /// Returns the legacy statistics of the whole connection or of one track.
  public func stats(
    for mediaStreamTrack: RTCMediaStreamTrack?, statsOutputLevel: RTCStatsOutputLevel,
    completionHandler: @escaping ([RTCLegacyStatsReport]) -> Void
  ) {
    let told = Handed(completionHandler)
    var selector: StatsSelector?
    if let mediaStreamTrack {
      selector = self.selector(of: mediaStreamTrack)
      guard selector != nil else { return callBack { told.value([]) } }
    }
    connection.perform(.getStats(of: selector)) { [factory] reply in
      let report: StatsReport = if case .stats(let report) = reply { report } else { StatsReport() }
      factory.queue.async { told.value(LegacyStats(report).reports) }
    }
  }

  /// Returns the selector for one of this connection's tracks; nil for other tracks.
  private func selector(of track: RTCMediaStreamTrack) -> StatsSelector? {
    let core = track.core
    if let inlet = core.inlet, inlet.connection === connection {
      return .receiver(transceiver: inlet.transceiver)
    }
    return core.outlets.first { $0.connection === connection }.map {
      .sender(transceiver: $0.transceiver)
    }
  }
}

/// Converts standard objects to legacy ones.
private struct LegacyStats {
  private let report: StatsReport

  init(_ report: StatsReport) { self.report = report }

  var reports: [RTCLegacyStatsReport] { report.objects.compactMap { legacy($0) } }

  private func legacy(_ object: StatsObject) -> RTCLegacyStatsReport? {
    switch object.type {
    case "outbound-rtp": stream(object, direction: "send")
    case "inbound-rtp": stream(object, direction: "recv")
    case "candidate-pair": pair(object)
    case "local-candidate": candidate(object, "localcandidate")
    case "remote-candidate": candidate(object, "remotecandidate")
    default: nil
    }
  }

  private func object(_ id: String?) -> StatsObject? {
    guard let id else { return nil }
    return report.objects.first { $0.id == id }
  }

  // MARK: Streams

  private static let sent = [
    "ssrc": "ssrc", "kind": "mediaType", "bytesSent": "bytesSent", "packetsSent": "packetsSent",
    "nackCount": "googNacksReceived", "pliCount": "googPlisReceived",
    "firCount": "googFirsReceived", "frameWidth": "googFrameWidthSent",
    "frameHeight": "googFrameHeightSent", "framesPerSecond": "googFrameRateSent",
    "framesEncoded": "framesEncoded", "qpSum": "qpSum", "transportId": "transportId",
  ]
  private static let received = [
    "ssrc": "ssrc", "kind": "mediaType", "bytesReceived": "bytesReceived",
    "packetsReceived": "packetsReceived", "packetsLost": "packetsLost",
    "nackCount": "googNacksSent", "pliCount": "googPlisSent", "firCount": "googFirsSent",
    "frameWidth": "googFrameWidthReceived", "frameHeight": "googFrameHeightReceived",
    "framesPerSecond": "googFrameRateReceived", "framesDecoded": "framesDecoded",
    "trackIdentifier": "googTrackId", "transportId": "transportId",
  ]

  private func stream(_ object: StatsObject, direction: String) -> RTCLegacyStatsReport {
    let isSent = direction == "send"
    var values = renamed(object, isSent ? Self.sent : Self.received)
    let codec = self.object(object.text("codecId"))?.text("mimeType")
    values["googCodecName"] = codec?.split(separator: "/").last.map(String.init)
    let remote = self.object(object.text("remoteId"))
    if isSent {
      values["packetsLost"] = remote?.text("packetsLost")
      values["googRtt"] = remote?.number("roundTripTime").map { whole($0 * 1000) }
      let source = self.object(object.text("mediaSourceId"))
      values["googTrackId"] = source?.text("trackIdentifier")
      values["audioInputLevel"] = source?.number("audioLevel").map { whole($0 * 32_767) }
    } else {
      values["googJitterReceived"] = object.number("jitter").map { whole($0 * 1000) }
      values["audioOutputLevel"] = object.number("audioLevel").map { whole($0 * 32_767) }
    }
    return RTCLegacyStatsReport(
      object, type: "ssrc", id: "ssrc_\(values["ssrc"] ?? "0")_\(direction)", values)
  }

  // MARK: Paths

  private func pair(_ object: StatsObject) -> RTCLegacyStatsReport {
    var values = renamed(
      object,
      [
        "bytesSent": "bytesSent", "bytesReceived": "bytesReceived", "packetsSent": "packetsSent",
        "requestsSent": "requestsSent", "responsesReceived": "responsesReceived",
        "localCandidateId": "localCandidateId", "remoteCandidateId": "remoteCandidateId",
        "transportId": "googChannelId",
      ])
    let works = object.text("state") == "succeeded"
    values["googWritable"] = "\(works)"
    values["googReadable"] = "\(works)"
    let transport = self.object(object.text("transportId"))
    values["googActiveConnection"] = "\(transport?.text("selectedCandidatePairId") == object.id)"
    values["googRtt"] = object.number("currentRoundTripTime").map { whole($0 * 1000) }
    for (side, name) in [("local", "Local"), ("remote", "Remote")] {
      guard let candidate = self.object(object.text("\(side)CandidateId")) else { continue }
      values["goog\(name)CandidateType"] = kind(of: candidate)
      values["goog\(name)Address"] =
        "\(candidate.text("address") ?? ""):\(candidate.text("port") ?? "")"
      values["googTransportType"] = candidate.text("protocol")
    }
    return RTCLegacyStatsReport(object, type: "googCandidatePair", id: object.id, values)
  }

  private func candidate(_ object: StatsObject, _ type: String) -> RTCLegacyStatsReport {
    var values = renamed(
      object,
      [
        "address": "ipAddress", "port": "portNumber", "protocol": "transport",
        "priority": "priority", "networkType": "networkType",
      ])
    values["candidateType"] = kind(of: object)
    return RTCLegacyStatsReport(object, type: type, id: object.id, values)
  }

  private func kind(of candidate: StatsObject) -> String? {
    switch candidate.text("candidateType") {
    case "host": "local"
    case "srflx": "stun"
    case "prflx": "peerreflexive"
    case "relay": "relayed"
    default: candidate.text("candidateType")
    }
  }

  private func renamed(_ object: StatsObject, _ names: [String: String]) -> [String: String] {
    Dictionary(
      object.members.compactMap { member in
        names[member.name].flatMap { name in member.value.text.map { (name, $0) } }
      }, uniquingKeysWith: { first, _ in first })
  }

  private func whole(_ value: Double) -> String { "\(Int64(clamping: value))" }
}

extension Int64 {
  fileprivate init(clamping value: Double) {
    self = Int64(saturating: value)
  }
}

extension StatsObject {
  fileprivate func text(_ name: String) -> String? { self[name]?.text }

  fileprivate func number(_ name: String) -> Double? {
    switch self[name] {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}

extension StatsValue {
  /// A simple value as text; nil for a dictionary.
  fileprivate var text: String? {
    switch self {
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .text(let value): value
    case .flag(let value): "\(value)"
    case .record: nil
    }
  }
}
