"""A private network, so that no call's traffic leaves the machine or meets another call's."""

import os
import shutil
import subprocess
import sys

# Set in the process that runs inside the namespace: the address to use in place of a real
# interface's.
INSIDE = "RETAKE_INTEROP_INSIDE"
# Set by a user who prefers the machine's own network to a namespace.
REFUSED = "RETAKE_INTEROP_NO_NETNS"
# Without camera permission a browser gathers no loopback address, and mDNS needs an interface with
# multicast. This address belongs to a veth pair with both ends in the namespace.
ADDRESS = "10.99.0.1"
_UP = [
    ["link", "set", "lo", "up"],
    ["link", "add", "retake0", "type", "veth", "peer", "name", "retake1"],
    ["address", "add", f"{ADDRESS}/24", "dev", "retake0"],
    ["link", "set", "retake0", "up"],
    ["link", "set", "retake1", "up"],
    ["route", "add", "default", "dev", "retake0"],
]


def address():
    """Returns the private network's address besides 127.0.0.1; None outside of one."""
    return os.environ.get(INSIDE)


def enter():
    """Restarts this program inside a private network if the system allows it.

    Returns inside of it, or outside with the reason.
    """
    if address():
        _raise_interfaces()
        return
    if os.environ.get(REFUSED):
        print(f"network: the machine's own, because {REFUSED} is set")
        return
    unshare = _allowed_unshare()
    if unshare is None:
        print("network: the machine's own, because unshare is not permitted here")
        return
    environment = dict(os.environ, **{INSIDE: ADDRESS})
    sys.stdout.flush()
    os.execvpe(unshare[0], [*unshare, sys.executable, *sys.argv], environment)


def _allowed_unshare():
    """Returns the command that creates a network namespace: as root, or as root of a user
    namespace."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return None
    for command in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        trial = subprocess.run([*command, "true"], capture_output=True, check=False)
        if trial.returncode == 0:
            return command
    return None


def _raise_interfaces():
    for command in _UP:
        subprocess.run(["ip", *command], check=True)
