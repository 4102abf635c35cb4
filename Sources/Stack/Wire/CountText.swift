/// A number with its noun, as people write it: `1 call`, `2 calls`, `0 calls`.
///
/// - Parameter plural: the plural where an `s` at the end does not make it.
package func counted(
  _ count: some BinaryInteger, _ noun: String, _ plural: String? = nil
) -> String {
  count == 1 ? "1 \(noun)" : "\(count) \(plural ?? noun + "s")"
}
