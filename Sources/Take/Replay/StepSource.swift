import DequeModule
import Tape

/// The steps of a take in their order, of which some can be looked at before it is their turn.
final class StepSource {
  private let read: () throws(TapeFault) -> TapeChunk?
  private var ahead = Deque<TapeChunk>()
  /// How the take ended for whoever reads; nil while it continues.
  private var end: Result<Void, TapeFault>?
  /// Sees every chunk when it is read, before somebody gets it.
  var onlooker: ((TapeChunk) -> Void)?

  /// - Parameter read: gives the next steps; it is not asked any more once it gave none.
  init(_ read: @escaping () throws(TapeFault) -> TapeChunk?) { self.read = read }

  /// The next steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? {
    if ahead.isEmpty { pull() }
    if let chunk = ahead.popFirst() { return chunk }
    try end?.get()
    return nil
  }

  /// Reads on; false when there is nothing more to be looked at.
  func lookAhead() -> Bool {
    let count = ahead.count
    pull()
    return ahead.count > count
  }

  private func pull() {
    guard end == nil else { return }
    do throws(TapeFault) {
      guard let chunk = try read() else { return end = .success(()) }
      onlooker?(chunk)
      ahead.append(chunk)
    } catch {
      end = .failure(error)
    }
  }
}
