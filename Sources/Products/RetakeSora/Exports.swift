// An application that imports the SDK also uses types from AVFoundation, CoreMedia and ReplayKit,
// so their replacements are exported.
@_exported public import RetakeRTC
