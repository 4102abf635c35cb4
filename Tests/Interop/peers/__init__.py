"""The peers that Retake is called with, behind one interface.

    offer()          the peer's offer, complete with candidates
    accept(sdp)      takes Retake's answer
    answer(sdp)      takes Retake's offer and gives the peer's answer
    report()         a Report of the call so far
    close()          ends the call and the peer
"""

from peers.chromium import Chromium
from peers.child import ChildPeer


async def open_peer(name, folder, receives_only=False):
    """Starts a peer; its logs go to `folder`."""
    if name == "chromium":
        return await Chromium.open(folder, receives_only=receives_only)
    return await ChildPeer.open(f"{name}_peer.py", folder)
