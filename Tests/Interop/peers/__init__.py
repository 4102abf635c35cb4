"""The peers that Retake calls, behind one interface.

    offer()          returns the peer's offer, complete with candidates
    accept(sdp)      applies Retake's answer
    answer(sdp)      applies Retake's offer and returns the peer's answer
    report()         returns a Report of the call so far
    close()          ends the call and the peer
"""
