import FoundationEssentials

/// JSON with sorted keys and nothing optional about it.
package enum CanonicalJSON {
  /// The value as JSON, for people with indented lines; `null` for what cannot be encoded.
  package static func text(_ value: some Encodable, isIndented: Bool = false) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    // An application may ask for nonsense, and the take must hold what it asked for.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    // What is encoded here are plain values of this package; there is nothing that could fail.
    guard let data = try? encoder.encode(value) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  /// The value in the text; nil when the text does not hold one.
  package static func value<Result: Decodable>(_ type: Result.Type, from text: String) -> Result? {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try? decoder.decode(type, from: Data(text.utf8))
  }
}
