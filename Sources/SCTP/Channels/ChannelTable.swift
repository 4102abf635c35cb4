/// The data channels of an association, found by place, by number and by stream.
struct ChannelTable {
  private var slots: [Channel] = []
  private var free: [Int] = []
  private var byNumber: [(number: DataChannelNumber, place: Int)] = []
  private var byStream: [Int32] = []
  /// The number of the next channel.
  private(set) var next: DataChannelNumber

  init(next: DataChannelNumber) { self.next = next }

  var count: Int { byNumber.count }

  /// The places of all channels, oldest channel first.
  var places: [Int] { byNumber.map(\.place) }

  /// The channel at a place, which is used again after the channel was removed.
  @inline(__always) subscript(place: Int) -> Channel {
    get { slots[place] }
    _modify { yield &slots[place] }
  }

  /// Adds a channel.
  mutating func add(_ options: DataChannelInit, state: DataChannelState) -> Int {
    let channel = Channel(number: next, options: options, state: state)
    let place = free.popLast() ?? slots.count
    if place == slots.count { slots.append(channel) } else { slots[place] = channel }
    byNumber.append((next, place))
    next = DataChannelNumber(next.rawValue &+ 1)
    return place
  }

  /// Gives a channel its stream.
  mutating func assign(_ stream: UInt16, to place: Int) {
    let index = Int(stream)
    if index >= byStream.count {
      byStream.append(contentsOf: repeatElement(-1, count: index + 1 - byStream.count))
    }
    byStream[index] = Int32(place)
    slots[place].options.id = stream
  }

  /// Removes a channel.
  mutating func remove(_ place: Int) {
    guard let index = index(of: slots[place].number) else { return }
    if let stream = slots[place].options.id, self.place(ofStream: stream) == place {
      byStream[Int(stream)] = -1
    }
    slots[place] = Channel(number: slots[place].number, options: DataChannelInit(), state: .closed)
    free.append(place)
    byNumber.remove(at: index)
  }

  /// The place of the channel that has a stream.
  func place(ofStream stream: UInt16) -> Int? {
    guard Int(stream) < byStream.count, byStream[Int(stream)] >= 0 else { return nil }
    return Int(byStream[Int(stream)])
  }

  /// The place of a channel.
  func place(of number: DataChannelNumber) -> Int? { index(of: number).map { byNumber[$0].place } }

  /// The lowest free stream of a parity below a bound.
  func freeStream(isEven: Bool, below bound: Int) -> UInt16? {
    for stream in stride(from: isEven ? 0 : 1, to: min(bound, 65535), by: 2)
    where place(ofStream: UInt16(stream)) == nil {
      return UInt16(stream)
    }
    return nil
  }

  private func index(of number: DataChannelNumber) -> Int? {
    var low = 0
    var high = byNumber.count
    while low < high {
      let middle = (low + high) / 2
      if byNumber[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < byNumber.count && byNumber[low].number == number ? low : nil
  }
}
