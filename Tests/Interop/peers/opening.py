"""Starts the peer of a call.

Separate from the package itself, which the peers' programs import too: they run where fewer
packages are installed.
"""

from peers.chromium import Chromium
from peers.child import ChildPeer
from peers.firefox import Firefox
from peers.janus import Janus


async def open_peer(call, folder, relay=None):
    """Starts the peer of a call, with a relay if the call needs one; its logs are written to
    `folder`."""
    match call.peer:
        case "chromium":
            return await Chromium.open(folder, call, relay)
        case "firefox":
            return await Firefox.open(folder, call)
        case "gstreamer":
            return await ChildPeer.open(
                "gstreamer_peer.py", folder, python="/usr/bin/python3", arguments=[call.codec]
            )
        case name if name.startswith("janus-"):
            return await Janus.open(call, folder)
        case name:
            codecs = [call.codec] + [call.audio] * (call.audio != "opus")
            return await ChildPeer.open(f"{name}_peer.py", folder, arguments=codecs)
