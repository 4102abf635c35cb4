// All that is public, so that an application needs this module alone.
@_exported public import AudioSession
@_exported public import ICE
@_exported public import JSEP
@_exported public import Live
@_exported public import Media
@_exported public import MediaFiles
@_exported public import Peer
@_exported public import Room
@_exported public import RoomClient
@_exported public import SCTP
@_exported public import SDP
@_exported public import Secure
@_exported public import Signaling
@_exported public import Stats
@_exported public import Tape
@_exported public import Wire
