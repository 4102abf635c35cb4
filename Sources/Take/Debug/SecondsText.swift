import Replay

/// A time of a take, or a length, in seconds with three digits after the point.
func seconds(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 3) }
