"""Prints the table at the end of a run."""

_HEADINGS = [
    "peer", "offers", "peer's DTLS", "SRTP", "audio in/out", "video in/out", "codec",
    "data", "replays",
    "verdict",
]


def show(outcomes):
    """Prints a row per call; frames are those that Retake received and sent."""
    rows = [_HEADINGS] + [_row(outcome) for outcome in outcomes]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _data(outcome):
    if outcome.take.repeated:
        return f"{outcome.take.channels} channels, {outcome.take.repeated} messages"
    return (outcome.report.data_echo or "-").removeprefix("hello from ")


def _row(outcome):
    call, report, frames = outcome.call, outcome.report, outcome.take.frames
    offers = {"peer": call.peer, "retake": "retake", "page": "retake's page"}[call.offerer]
    offers += f" ({', '.join(call.remarks)})" if call.remarks else ""
    return [
        call.peer,
        offers,
        # Some peers do not report the DTLS version, so the take's is shown; both ends use the same.
        f"{report.dtls_version or outcome.take.dtls_version or '-'} {report.dtls_role}".strip(),
        report.srtp_profile or "-",
        f"{frames['in', 'audio']}/{frames['out', 'audio']}",
        f"{frames['in', 'video']}/{frames['out', 'video']}",
        "+".join(sorted(outcome.take.codecs)) or "-",
        _data(outcome),
        f"{outcome.replays[0]} of {outcome.replays[1]}",
        "failed" if outcome.problems else "ok",
    ]
