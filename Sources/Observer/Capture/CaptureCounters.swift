/// What became of the frames of a capture: nothing is dropped without being counted.
package struct CaptureCounters: Hashable, Sendable {
  package var frames: UInt64 = 0
  package var frameBytes: UInt64 = 0
  /// Frames whose date no take can have (before 1823 or after 2116), which go on from the frame
  /// before.
  package var framesOutsideOfTime: UInt64 = 0
  /// Packets of other protocols than UDP and TCP, and in layers that are not opened.
  package var unread = UnreadLayers()
  /// Packets that stood in tunnels which were opened: GRE, VXLAN, GTP-U, ...
  package var tunneled: UInt64 = 0
  /// Frames whose headers contradict themselves, or are cut off.
  package var malformed: UInt64 = 0
  /// Datagrams and segments of which the capture has only the beginning (snap length).
  package var truncated: UInt64 = 0
  package var fragments: UInt64 = 0
  /// Datagrams put together of fragments.
  package var reassembled: UInt64 = 0
  /// Fragments of datagrams that stayed incomplete, overlapped, or were too many.
  package var fragmentsDropped: UInt64 = 0
  /// Packets that were captured once more: on another interface, a mirror port.
  package var duplicates: UInt64 = 0
  package var datagrams: UInt64 = 0
  /// Datagrams that segmentation or receive offload had joined, and what they were split into.
  package var joinedDatagrams: UInt64 = 0
  package var splitDatagrams: UInt64 = 0
  package var segments: UInt64 = 0
  /// Bytes of TCP streams that the capture does not have.
  package var streamBytesLost: UInt64 = 0
  /// Records that are damaged, and the bytes that are left out for it.
  package var damagedRecords: UInt64 = 0
  package var damagedBytes: UInt64 = 0
  /// Bytes at the end of the capture that begin a record whose rest is missing.
  package var cutBytes: UInt64 = 0
  /// Whether the compressed data end before they are complete.
  package var hasIncompleteCompression = false
  /// TCP streams that were given up because there were too many.
  package var streamsDropped: UInt64 = 0

  package init() {}
}
