"""The peers that Retake is called with, behind one interface.

    offer()          the peer's offer, complete with candidates
    accept(sdp)      takes Retake's answer
    answer(sdp)      takes Retake's offer and gives the peer's answer
    report()         a Report of the call so far
    close()          ends the call and the peer
"""
