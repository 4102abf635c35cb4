import Media

/// How the bit rate of a sender is shared among the layers of its simulcast: the lowest first, and
/// nothing for those that it does not carry.
struct LayerAllocation {
  /// A layer that is to be sent.
  struct Layer {
    /// What it is worth spending, in bits per second.
    var target: UInt64
    /// Whether it is sent now; one that is held back comes again only when there is some more than
    /// it needs, so that it does not come and go.
    var isSent: Bool

    /// Below this a layer is worse than the next lower one.
    var least: UInt64 { target / 4 }
    /// What the lower layers keep when another one is to be sent as well.
    fileprivate var modest: UInt64 { target / 2 }
    /// What has to be left for it.
    fileprivate var wanted: UInt64 { isSent ? least : least + least / 10 }
  }

  /// What each layer may spend, in bits per second; 0: it is held back.
  ///
  /// - Parameter layers: the lowest first; that one is sent in any case.
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

  /// What video frames of a size are worth spending, in bits per second: about 200 kbit/s for 320
  /// by 180, 670 for 640 by 360, and 2500 for 1280 by 720.
  static func target(width: Int, height: Int, dividedBy factor: Double) -> UInt64 {
    let pixels = Double(max(width, 0)) * Double(max(height, 0)) / (factor * factor)
    return 45_000 + UInt64(min(pixels, 1e9) * 2.7)
  }

  /// The size that video frames are taken to have before one came.
  static let usualSize = (width: 1280, height: 720)
}
