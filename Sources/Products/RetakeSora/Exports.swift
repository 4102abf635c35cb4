// An application that imports the SDK uses types of AVFoundation, CoreMedia and ReplayKit beside
// it: their stand-ins come along.
@_exported public import RetakeRTC
