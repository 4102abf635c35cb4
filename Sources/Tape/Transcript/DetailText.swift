package import Stats

/// A small JSON object with its members in the order given; absent ones are left out.
package struct DetailText {
  /// The object as text.
  package private(set) var json: String

  /// Creates an object from its members in order.
  package init(_ members: [(String, StatsValue?)]) {
    json =
      "{"
      + members.compactMap { name, value in value.map { "\(jsonString(name)):\($0.json)" } }
      .joined(separator: ",") + "}"
  }
}
