/// Bytes in hexadecimal; after `limit` bytes their count stands for the rest.
package func hexadecimal(_ bytes: some Collection<UInt8>, limit: Int = .max) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes.prefix(limit) {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  let hex = String(decoding: text, as: UTF8.self)
  return bytes.count > limit ? "\(hex)... (\(bytes.count) bytes)" : hex
}
