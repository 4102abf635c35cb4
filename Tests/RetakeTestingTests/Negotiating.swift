import Retake
import Testing

/// Exchanges an offer and its answer between two connections in the process, including all
/// candidates.
func negotiate(_ caller: PeerConnection, _ callee: PeerConnection) async throws {
  try await caller.setLocalDescription()
  try await caller.waitForGatheringComplete(timeout: .seconds(120))
  try await callee.setRemoteDescription(try #require(try await caller.localDescription))
  try await callee.setLocalDescription()
  try await callee.waitForGatheringComplete(timeout: .seconds(120))
  try await caller.setRemoteDescription(try #require(try await callee.localDescription))
}
