"""The script that pages of several calls share: it negotiates a connection over a WebSocket."""

# Defines `join`, for the beginning of a page's function. It opens a WebSocket and a connection
# whose descriptions and candidates go over it, plays what is received, and adds a microphone and
# a camera. `prepare` gets the connection before anything can arrive.
JOIN = """
  const join = async (address, wanted, prepare = () => {}) => {
    const socket = new WebSocket(address);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("no WebSocket at " + address));
    });
    const connection = new RTCPeerConnection();
    prepare(connection, socket);
    connection.onicecandidate = ({candidate}) =>
      candidate && socket.send(JSON.stringify({ice: candidate.toJSON()}));
    connection.ontrack = ({streams, track}) => {
      const element = document.createElement(track.kind);
      element.autoplay = true;
      element.muted = track.kind === "video";
      element.srcObject = streams[0] ?? new MediaStream([track]);
      document.body.append(element);
    };
    const waiting = [];
    socket.onmessage = async ({data}) => {
      const {jsep, ice} = JSON.parse(data);
      if (ice) {
        if (connection.remoteDescription) await connection.addIceCandidate(ice);
        else waiting.push(ice);
        return;
      }
      await connection.setRemoteDescription(jsep);
      for (const each of waiting.splice(0)) await connection.addIceCandidate(each);
      if (jsep.type !== "offer") return;
      await connection.setLocalDescription();
      socket.send(JSON.stringify({jsep: connection.localDescription}));
    };
    const media = await navigator.mediaDevices.getUserMedia(wanted);
    for (const track of media.getTracks()) connection.addTrack(track, media);
    return {socket, connection};
  };
"""
