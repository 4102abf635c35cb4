import RTP
import Wire

/// Decides which layer of a received simulcast is shown: the largest one that arrives.
struct LayerChoice {
  /// What to do with a frame.
  enum Fate {
    case shown
    case passedOver
    /// Nothing is shown, and only a key frame of another layer can change that.
    case needsKey
  }

  /// The layer of a section that is shown.
  private struct Shown {
    var mid: String
    var ssrc: UInt32
    var pixels: Int
    var lastArrival: Instant
  }

  /// A layer without frames for this long is replaced by a smaller one.
  private static let patience = Interval.seconds(1)

  private var shown: [Shown] = []

  func shows(_ ssrc: UInt32, of mid: String) -> Bool {
    shown.first { $0.mid == mid }.map { $0.ssrc == ssrc } ?? true
  }

  /// Decides about a frame; one that is not of a simulcast is always shown.
  mutating func decide(_ frame: ReceivedFrame) -> Fate {
    guard frame.rid != nil else { return .shown }
    let place = shown.firstIndex { $0.mid == frame.mid }
    if let place, shown[place].ssrc == frame.ssrc {
      shown[place].lastArrival = frame.lastArrival
      if frame.isKey { shown[place].pixels = frame.pixels }
      return .shown
    }
    let isSilent =
      place.map { frame.lastArrival - shown[$0].lastArrival > LayerChoice.patience } ?? true
    guard frame.isKey else { return isSilent ? .needsKey : .passedOver }
    guard isSilent || place.map({ frame.pixels > shown[$0].pixels }) ?? true else {
      return .passedOver
    }
    let next = Shown(
      mid: frame.mid, ssrc: frame.ssrc, pixels: frame.pixels, lastArrival: frame.lastArrival)
    if let place { shown[place] = next } else { shown.append(next) }
    return .shown
  }

  /// Forgets sections that are no longer received.
  mutating func retain(_ mids: [String]) { shown.removeAll { !mids.contains($0.mid) } }
}

extension ReceivedFrame {
  /// The number of pixels, if the key frame states its size.
  fileprivate var pixels: Int { codedSize.map { $0.width * $0.height } ?? 0 }
}
