import SCTP
import Stats

// W3C RTCDataChannelStats.
extension StatsCollector {
  /// The channels that are not closed, oldest first.
  func dataChannelStats() -> [StatsObject] {
    data.channels.map { channel in
      let association = data.association
      let options = association.options(of: channel.number) ?? channel.options
      let counters = association.counters(of: channel.number) ?? DataChannelCounters()
      var stats = builder("data-channel", names.id("D", "\(channel.number)"))
      stats.set("label", options.label)
      stats.set("protocol", options.protocol)
      stats.set("dataChannelIdentifier", options.id)
      stats.set("state", association.state(of: channel.number).rawValue)
      stats.set("messagesSent", counters.messagesSent)
      stats.set("bytesSent", counters.bytesSent)
      stats.set("messagesReceived", counters.messagesReceived)
      stats.set("bytesReceived", counters.bytesReceived)
      return stats.build()
    }
  }
}
