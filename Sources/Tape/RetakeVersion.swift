/// The version of Retake, as takes carry it.
public let retakeVersion = "0.1.0"

/// The revision of the stack: it moves whenever the stack makes other outputs of the same inputs.
///
/// A take names the one that made it. The captures replay exactly under an unchanged revision, to
/// which a test sees: whoever changes an output raises this number, and says in the message why.
public let stackRevision: Int64 = 1
