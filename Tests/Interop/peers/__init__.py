"""The peers that Retake is called with, behind one interface.

    offer()          the peer's offer, complete with candidates
    accept(sdp)      takes Retake's answer
    answer(sdp)      takes Retake's offer and gives the peer's answer
    report()         a Report of the call so far
    close()          ends the call and the peer
"""

from peers.chromium import Chromium
from peers.child import ChildPeer
from peers.firefox import Firefox


async def open_peer(call, folder):
    """Starts the peer of a call; its logs go to `folder`."""
    match call.peer:
        case "chromium":
            return await Chromium.open(folder, call)
        case "firefox":
            return await Firefox.open(folder)
        case name:
            return await ChildPeer.open(f"{name}_peer.py", folder)
