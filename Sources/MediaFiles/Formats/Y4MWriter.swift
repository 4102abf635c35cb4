package import Media

/// Writes YUV4MPEG2: the header, then each picture.
package enum Y4MWriter {
  /// The stream header.
  package static func header(_ header: Y4MHeader) -> [UInt8] {
    let rate = "F\(header.rateNumerator):\(header.rateDenominator)"
    let line = "YUV4MPEG2 W\(header.width) H\(header.height) \(rate) Ip A1:1 C420jpeg\n"
    return Array(line.utf8)
  }

  /// One picture; a blank one is grey.
  package static func frame(_ picture: Picture) -> [UInt8] {
    let size = Picture.byteCount(width: picture.width, height: picture.height)
    var bytes = Array("FRAME\n".utf8)
    bytes.reserveCapacity(bytes.count + size)
    if picture.samples.isEmpty {
      bytes.append(contentsOf: repeatElement(128, count: size))
    } else {
      bytes.append(contentsOf: picture.samples)
    }
    return bytes
  }
}
