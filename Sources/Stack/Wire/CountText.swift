/// A number with its noun: `1 call`, `2 calls`, `0 calls`.
/// - Parameter plural: the plural if it is not the noun with an `s`.
package func counted(
  _ count: some BinaryInteger, _ noun: String, _ plural: String? = nil
) -> String {
  count == 1 ? "1 \(noun)" : "\(count) \(plural ?? noun + "s")"
}
