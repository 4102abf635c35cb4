/// The version of Retake, as takes carry it.
public let retakeVersion = "0.1.0"
