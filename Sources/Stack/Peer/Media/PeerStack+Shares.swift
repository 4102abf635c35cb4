import JSEP
import Media
import Wire

// How the bit rate of a transport is divided.
extension PeerStack {
  /// Divides the transport's target among video senders, and each share among the sender's layers.
  func shareBitrate(of bundle: Bundle) {
    guard let total = bundle.videoBitrate else { return }
    let senders = videoSenders(of: bundle)
    guard !senders.isEmpty else { return }
    let shares = SenderTable.shares(of: total, limits: senders.map { limit(of: $0) })
    for (sender, share) in zip(senders, shares) {
      if tracks.sending[sender[0]].rid == nil {
        drive(sending: sender[0], .bitrate(share))
      } else {
        divide(share, among: sender)
      }
    }
  }

  /// The video senders that a transport carries: of each its track, or its layers with the lowest
  /// first, including paused ones.
  private func videoSenders(of bundle: Bundle) -> [[Int]] {
    var senders: [[Int]] = []
    for index in tracks.sending.indices where tracks.sending[index].kind == .video {
      let track = tracks.sending[index]
      guard let mid = track.stream.mid ?? track.stream.heldMID, bundles.carrying(mid) === bundle
      else { continue }
      if track.rid != nil,
        let place = senders.firstIndex(where: {
          tracks.sending[$0[0]].transceiver == track.transceiver
        })
      {
        senders[place].append(index)
      } else {
        senders.append([index])
      }
    }
    return senders.map { sender in sender.count < 2 ? sender : sender.sorted(by: isLower) }
  }

  /// Whether a layer is lower than another one: smaller, or with a lower limit.
  private func isLower(_ left: Int, _ right: Int) -> Bool {
    let (low, high) = (encoding(of: tracks.sending[left]), encoding(of: tracks.sending[right]))
    let (small, large) = (low.scaleResolutionDownBy ?? 1, high.scaleResolutionDownBy ?? 1)
    if small != large { return small > large }
    return (low.maxBitrate ?? .max, left) < (high.maxBitrate ?? .max, right)
  }

  /// The limit of a sender in bits per second; nil for none.
  private func limit(of sender: [Int]) -> UInt64? {
    let track = tracks.sending[sender[0]]
    guard track.rid != nil else { return encoding(of: track).maxBitrate }
    let sum = layers(of: sender).reduce(UInt64(0)) { sum, layer in
      let (sum, isTooMuch) = sum.addingReportingOverflow(layer.target)
      return isTooMuch ? .max : sum
    }
    let section = negotiation.sections.first { $0.transceiverID == track.transceiver }
    return min(sum, section?.sendBitrateLimit ?? .max)
  }

  private func layers(of sender: [Int]) -> [LayerAllocation.Layer] {
    let frames = sender.map { tracks.sending[$0].video.counters }.max { $0.width < $1.width }
    var size = (width: frames?.width ?? 0, height: frames?.height ?? 0)
    if size.width == 0 { size = LayerAllocation.usualSize }
    return sender.map { index in
      let encoding = encoding(of: tracks.sending[index])
      return LayerAllocation.Layer(
        target: encoding.maxBitrate
          ?? LayerAllocation.target(
            width: size.width, height: size.height,
            dividedBy: max(1, encoding.scaleResolutionDownBy ?? 1)),
        isSent: tracks.sending[index].isRunning)
    }
  }

  /// Divides a sender's share among its layers; those that do not fit are paused.
  private func divide(_ share: UInt64, among sender: [Int]) {
    let shares = LayerAllocation.shares(of: share, layers(of: sender))
    for (index, share) in zip(sender, shares) {
      guard share > 0 else {
        if tracks.sending[index].isRunning { drive(sending: index, .hold) }
        continue
      }
      if !tracks.sending[index].isRunning, let start = start(of: tracks.sending[index]) {
        drive(sending: index, .start(start))
      }
      drive(sending: index, .bitrate(share))
    }
  }
}
