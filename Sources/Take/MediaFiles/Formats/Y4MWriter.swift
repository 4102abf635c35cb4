package import Media

/// Writes YUV4MPEG2: the header, then each video frame.
package enum Y4MWriter {
  /// The stream header.
  package static func header(_ header: Y4MHeader) -> [UInt8] {
    let rate = "F\(header.rateNumerator):\(header.rateDenominator)"
    let line = "YUV4MPEG2 W\(header.width) H\(header.height) \(rate) Ip A1:1 C420jpeg\n"
    return Array(line.utf8)
  }

  /// One video frame; a blank one is grey.
  package static func frame(_ videoFrame: I420Buffer) -> [UInt8] {
    let size = I420Buffer.byteCount(width: videoFrame.width, height: videoFrame.height)
    var bytes = Array("FRAME\n".utf8)
    bytes.reserveCapacity(bytes.count + size)
    if videoFrame.samples.isEmpty {
      bytes.append(contentsOf: repeatElement(128, count: size))
    } else {
      bytes.append(contentsOf: videoFrame.samples)
    }
    return bytes
  }
}
