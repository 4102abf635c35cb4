import FoundationEssentials

/// Encodes a value as JSON, with keys in alphabetical order.
func encodedJSON(_ value: some Encodable) -> String {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  // Strings, numbers and their structures always have a JSON form.
  guard let data = try? encoder.encode(value) else { return "null" }
  return String(decoding: data, as: UTF8.self)
}

/// Decodes a value from JSON; nil if the text is invalid or has another shape.
func decodedJSON<Value: Decodable>(_ type: Value.Type, from body: [UInt8]) -> Value? {
  try? JSONDecoder().decode(type, from: Data(body))
}
