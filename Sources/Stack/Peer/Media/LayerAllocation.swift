import Media

/// Divides a sender's bit rate among its simulcast layers: the lowest first, and nothing for those
/// that do not fit.
struct LayerAllocation {
  /// A layer that should be sent.
  struct Layer {
    /// The most that is useful, in bits per second.
    var target: UInt64
    /// Whether it is being sent; one that was paused resumes only when there is some more than it
    /// needs, so that it does not flap.
    var isSent: Bool

    /// Below this a layer is worse than the next lower one.
    var least: UInt64 { target / 4 }
    /// What the lower layers keep when another one is added.
    fileprivate var modest: UInt64 { target / 2 }
    /// What has to be left for adding it.
    fileprivate var wanted: UInt64 { isSent ? least : least + least / 10 }
  }

  /// Returns the bit rate of each layer; 0 pauses it.
  /// - Parameter layers: the lowest first, which is always sent.
  static func shares(of total: UInt64, _ layers: [Layer]) -> [UInt64] {
    var sent = 0
    var kept: UInt64 = 0
    for layer in layers {
      guard sent == 0 || kept + layer.wanted <= total else { break }
      sent += 1
      kept += layer.modest
    }
    var shares = [UInt64](repeating: 0, count: layers.count)
    var rest = total
    for index in 0..<sent {
      shares[index] = max(1, min(layers[index].least, rest))
      rest -= min(rest, shares[index])
    }
    for index in 0..<sent {
      let more = min(rest, layers[index].target - min(layers[index].target, shares[index]))
      shares[index] += more
      rest -= more
    }
    return shares
  }

  /// The useful bit rate of a frame size, in bits per second: about 200 kbit/s for 320 by 180, 670
  /// for 640 by 360, and 2500 for 1280 by 720.
  static func target(width: Int, height: Int, dividedBy factor: Double) -> UInt64 {
    let pixels = Double(max(width, 0)) * Double(max(height, 0)) / (factor * factor)
    return 45_000 + UInt64(min(pixels, 1e9) * 2.7)
  }

  /// The frame size assumed before the first frame.
  static let usualSize = (width: 1280, height: 720)
}
