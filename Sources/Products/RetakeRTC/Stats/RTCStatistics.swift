public import Foundation
import Live
import Peer
package import Stats

/// One object of a report, with its W3C members by name.
public final class RTCStatistics: Sendable, CustomStringConvertible {
  /// The identifier, the same in every report.
  public let id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public let type: String
  // swift-format-ignore: AlwaysUseLowerCamelCase
  /// Unix time of the sample in microseconds.
  public let timestamp_us: Double
  private let members: [StatsMember]

  init(_ object: StatsObject) {
    id = object.id
    type = object.type
    timestamp_us = object.timestamp * 1000
    members = object.members
  }

  /// The members: strings, numbers, and dictionaries of them.
  public var values: [String: NSObject] { dictionary(members) }

  /// The object as JSON.
  public var description: String {
    StatsObject(id: id, type: type, timestamp: timestamp_us / 1000, members: members).json
  }
}

/// A report of everything, or of one sender or receiver.
public final class RTCStatisticsReport: Sendable, CustomStringConvertible {
  /// The objects by their `id`.
  public let statistics: [String: RTCStatistics]
  // swift-format-ignore: AlwaysUseLowerCamelCase
  /// Unix time of the report in microseconds; 0 without objects.
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

// Statistics of a connection.
extension RTCPeerConnection {
  /// Returns the current statistics of everything.
  public func statistics(
    completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(nil, completionHandler)
  }

  /// Returns the statistics of a sender, with everything that they refer to.
  public func statistics(
    for sender: RTCRtpSender, completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(.sender(transceiver: sender.transceiver), completionHandler)
  }

  /// Returns the statistics of a receiver, with everything that they refer to.
  public func statistics(
    for receiver: RTCRtpReceiver,
    completionHandler: @escaping (RTCStatisticsReport) -> Void
  ) {
    report(.receiver(transceiver: receiver.transceiver), completionHandler)
  }

  /// Returns the current statistics of everything.
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
