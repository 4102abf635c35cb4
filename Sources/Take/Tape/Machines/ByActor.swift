/// Something about each actor of a take, by its number.
///
/// Every step asks for it. Actors are counted from 1, so nearly all have a place in an array; but a
/// file may claim any number.
package struct ByActor<Element> {
  @usableFromInline
  var low: [Element?] = []
  @usableFromInline
  var high: [UInt32: Element] = [:]

  @inlinable @inline(__always)
  package init() {}

  @inlinable @inline(__always)
  package subscript(actor: UInt32) -> Element? {
    get {
      let place = Int(actor)
      if place < low.count { return low[place] }
      return high.isEmpty ? nil : high[actor]
    }
    set {
      let place = Int(actor)
      // A crowd may have more; those take a little longer.
      guard place < 4_096 else { return high[actor] = newValue }
      if place >= low.count {
        guard newValue != nil else { return }
        low += repeatElement(nil, count: place + 1 - low.count)
      }
      low[place] = newValue
    }
  }
}
