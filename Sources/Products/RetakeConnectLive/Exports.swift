// An application that imports the SDK uses types of AVFoundation, CoreMedia and ReplayKit too, so
// their replacements are exported.
@_exported public import RetakeRTC
