public import Media

/// Media in the order of time, ready to be sent.
public protocol TimedMedia: SendableMetatype {
  /// The next video frame or block and its time in nanoseconds from the first one; nil at the end.
  mutating func next() throws(MediaFileError) -> (media: MediaContent, nanoseconds: Int64)?
  /// The next video frame that a decoder can begin with, to be sent in the place of the one that
  /// `next` gave last; nil when there is none, or when any will do.
  mutating func nextKeyFrame() throws(MediaFileError) -> MediaContent?
}

extension TimedMedia {
  /// Nil: what is encoded only when it is sent can become a key frame then.
  public mutating func nextKeyFrame() -> MediaContent? { nil }
}
