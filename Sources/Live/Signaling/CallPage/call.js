// The page from which browsers call Retake: it shows received media and exchanges messages.
const $ = id => document.getElementById(id);
const video = id => /** @type {HTMLVideoElement} */ ($(id));
const button = id => /** @type {HTMLButtonElement} */ ($(id));
const text = /** @type {HTMLInputElement} */ ($('text'));
const options = new URLSearchParams(location.search || location.hash.slice(1));
const auto = options.has('auto') || location.hash.startsWith('#auto');
const wait = ms => new Promise(done => setTimeout(done, ms));
let current = null;

const pass = options.has('token') ? { Authorization: 'Bearer ' + options.get('token') } : {};

/*
 * Exchange the token in the page's address for a cookie, which no script can read and no history
 * keeps.
 */
const entered = !pass.Authorization ? Promise.resolve()
  : fetch('cookie', { method: 'POST', headers: { ...pass } }).then(response => {
    if (!response.ok) return;
    delete pass.Authorization;
    const rest = new URLSearchParams(options);
    rest.delete('token');
    history.replaceState(null, '', location.pathname
      + (`${rest}` ? (location.search ? '?' : '#') + rest : ''));
  }).catch(() => {});

async function request(path, body) {
  await entered;
  const response = await fetch(path, { method: 'POST', keepalive: path === 'bye',
    headers: { 'Content-Type': 'application/json', ...pass }, body: JSON.stringify(body || {}) });
  const result = await response.json();
  if (!response.ok) throw new Error(result.error || result.detail || response.statusText);
  return result;
}

async function get(path) {
  await entered;
  const response = await fetch(path, { headers: pass });
  if (response.ok) return response;
  const result = await response.json().catch(() => ({}));
  throw new Error(result.error || result.detail || response.statusText);
}
const of = id => '?id=' + encodeURIComponent(id);
const baseName = path => path.replace(/\/+$/, '').split('/').pop();

/* Shows where calls are recorded, or where one was. */
function showRecording(text, file, ...more) {
  const name = document.createElement('b');
  name.textContent = file || '';
  $('recording').replaceChildren(text, ...(file ? [name] : []), '.', ...more);
}

async function showDestination(call) {
  try {
    const list = await (await get('calls' + (call ? of(call.id) : ''))).json();
    if (current !== call) return;
    const own = call && list.calls.find(entry => entry.id === call.id);
    if (own) {
      call.take = baseName(own.take);
      showRecording('Recording this call into ', call.take);
    } else if (!call && list.recording) {
      showRecording('Calls from this page are recorded, with audio, video, messages and '
        + 'addresses, into ', list.recording);
    }
  } catch { /* What stands there says that calls are recorded. */ }
}

/* Links to the page of a call's take. */
function linkToPage(call) {
  const link = document.createElement('a');
  link.id = 'take';
  link.href = 'page' + of(call.id);
  link.target = '_blank';
  link.textContent = 'Open the take';
  /* A link carries no token, so if a token is needed the page is fetched. */
  if (pass.Authorization) link.onclick = event => {
    event.preventDefault();
    fetchPage(call.id).then(text => {
      link.href = URL.createObjectURL(new Blob([text], { type: 'text/html' }));
      link.onclick = null;
      link.click();
    }).catch(error => $('message').textContent = String(error.message || error));
  };
  showRecording('This call was recorded into ', call.take || 'a take', ' ', link);
}

const fetchPage = async id => (await get('page' + of(id))).text();

/* Resolves once all candidates are known, or after two seconds. */
function gathered(pc) {
  if (pc.iceGatheringState === 'complete') return Promise.resolve();
  return Promise.race([wait(2000), new Promise(done =>
    pc.addEventListener('icegatheringstatechange', () => {
      if (pc.iceGatheringState === 'complete') done();
    }))]);
}

async function dump(pc) {
  const list = [];
  (await pc.getStats()).forEach(entry => list.push({ ...entry }));
  return list;
}

function watch(call) {
  const pc = call.pc;
  const echoed = new MediaStream();
  const started = performance.now();
  for (const [name, event] of [['signaling', 'signalingstatechange'],
      ['iceGathering', 'icegatheringstatechange'],
      ['iceConnection', 'iceconnectionstatechange'],
      ['connection', 'connectionstatechange']]) {
    pc.addEventListener(event, () => {
      call.states.push({ machine: name, state: pc[name + 'State'],
        at: Math.round(performance.now() - started) });
      showStates(pc, call.roundTrip);
    });
  }
  pc.addEventListener('track', event => {
    call.tracks.push(event.track.kind);
    echoed.addTrack(event.track);
    const echo = video('echo');
    if (echo.srcObject !== echoed) echo.srcObject = echoed;
    echo.play().catch(() => {});
  });
  pc.addEventListener('connectionstatechange', () => {
    if (pc.connectionState === 'failed') finish('The connection failed.');
  });
  showStates(pc);
}

/* Shows a data channel's messages; a first greeting is sent automatically. */
function open(call, channel) {
  call.channel = channel;
  channel.binaryType = 'arraybuffer';
  const enable = () => text.disabled = button('send').disabled = channel.readyState !== 'open';
  const opened = () => { enable(); send(call, 'hello from the page'); };
  if (channel.readyState === 'open') opened(); else channel.onopen = opened;
  channel.onclose = enable;
  channel.onmessage = event => addMessage(call, 'in', event.data);
}

function send(call, message) {
  if (call?.channel?.readyState !== 'open') return;
  call.channel.send(message);
  addMessage(call, 'out', message);
}

function addMessage(call, direction, data) {
  const text = typeof data === 'string' ? data : data.byteLength + ' bytes';
  call.messages.push({ direction, text });
  const line = document.createElement('li');
  line.className = direction;
  for (const [kind, content] of [['time', new Date().toLocaleTimeString()],
      ['b', direction === 'in' ? 'Retake' : 'you'], ['span', text]]) {
    const part = document.createElement(kind);
    part.textContent = content;
    line.append(part);
  }
  $('log').append(line);
  while ($('log').children.length > 200) $('log').firstChild.remove();
  line.scrollIntoView({ block: 'nearest' });
}

async function begin(settings = {}) {
  if (current) throw new Error('a call is already in progress');
  const call = current = { pc: new RTCPeerConnection(settings.configuration || {}), id: null,
    stream: null, states: [], tracks: [], messages: [], channel: null, before: {}, timer: 0 };
  button('call').disabled = true;
  button('hangup').disabled = false;
  $('message').textContent = '';
  $('log').replaceChildren();
  document.body.classList.add('live');
  try {
    watch(call);
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: settings.audio === false ? false
        : { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
      video: settings.video === false ? false
        : { width: settings.width || 640, height: settings.height || 480 } });
    call.stream = stream;
    video('own').srcObject = stream;
    const offerer = settings.offerer || 'browser';
    const add = () => stream.getTracks().forEach(track => call.pc.addTrack(track, stream));
    if (offerer === 'retake') {
      const offer = await request('mkoffer');
      call.id = offer.id;
      call.pc.ondatachannel = event => open(call, event.channel);
      await call.pc.setRemoteDescription({ type: 'offer', sdp: offer.sdp });
      add();
      await call.pc.setLocalDescription(await call.pc.createAnswer());
      await gathered(call.pc);
      await request('answer', { id: offer.id, type: 'answer',
        sdp: call.pc.localDescription.sdp });
    } else {
      add();
      open(call, call.pc.createDataChannel('page'));
      await call.pc.setLocalDescription(await call.pc.createOffer());
      await gathered(call.pc);
      const answer = await request('offer', { type: 'offer',
        sdp: call.pc.localDescription.sdp });
      call.id = answer.id;
      await call.pc.setRemoteDescription({ type: 'answer', sdp: answer.sdp });
    }
    call.timer = setInterval(() => showStats(call), 1000);
    showDestination(call);
  } catch (error) {
    finish(String(error.message || error));
    throw error;
  }
  return call;
}

function finish(message) {
  const call = current;
  if (!call) return;
  current = null;
  clearInterval(call.timer);
  call.pc.close();
  if (call.stream) call.stream.getTracks().forEach(track => track.stop());
  if (call.id) request('bye', { id: call.id }).catch(() => {}).then(() => {
    if (!current) linkToPage(call);
  });
  video('own').srcObject = video('echo').srcObject = null;
  button('call').disabled = false;
  button('hangup').disabled = text.disabled = button('send').disabled = true;
  document.body.classList.remove('live');
  showStates(call.pc);
  $('message').textContent = message || '';
}

function showStates(pc, roundTrip) {
  $('states').replaceChildren(...[['signaling', pc.signalingState],
      ['ICE gathering', pc.iceGatheringState], ['ICE', pc.iceConnectionState],
      ['connection', pc.connectionState],
      ...(roundTrip === undefined ? []
        : [['round trip', (roundTrip * 1000).toFixed(1) + ' ms']])].map(([name, state]) => {
    const item = document.createElement('li');
    const value = document.createElement('b');
    value.textContent = state;
    if (state === 'connected' || state === 'completed') item.className = 'good';
    item.append(name + ' ', value);
    return item;
  }));
}

async function showStats(call) {
  const all = await dump(call.pc);
  const rows = all.filter(s => s.type === 'inbound-rtp' || s.type === 'outbound-rtp');
  $('stats').replaceChildren(...rows.map(s => {
    const bytes = s.bytesReceived ?? s.bytesSent ?? 0;
    const before = call.before[s.id];
    const rate = before ? (bytes - before.bytes) * 8 / (s.timestamp - before.timestamp) : 0;
    call.before[s.id] = { bytes, timestamp: s.timestamp };
    const codec = all.find(c => c.id === s.codecId);
    const remote = all.find(c => c.id === s.remoteId)
      ?? all.find(c => c.localId === s.id && c.type.startsWith('remote-'));
    const source = all.find(c => c.id === s.mediaSourceId);
    const level = s.audioLevel ?? source?.audioLevel;
    const ms = seconds => seconds === undefined ? '' : (seconds * 1000).toFixed(1) + ' ms';
    const row = document.createElement('tr');
    for (const cell of [(s.type === 'inbound-rtp' ? 'received ' : 'sent ') + s.kind,
        codec ? codec.mimeType.split('/')[1] : '', rate.toFixed(0),
        s.packetsReceived ?? s.packetsSent ?? 0, s.packetsLost ?? remote?.packetsLost ?? '',
        ms(s.jitter ?? remote?.jitter), ms(remote?.roundTripTime), meter(level),
        s.framesDecoded ?? s.framesEncoded ?? '',
        s.frameWidth ? s.frameWidth + '×' + s.frameHeight : '']) {
      const data = document.createElement('td');
      data.append(cell);
      row.append(data);
    }
    return row;
  }));
  const transport = all.find(s => s.type === 'transport');
  const pair = all.find(s => s.id === transport?.selectedCandidatePairId)
    ?? all.find(s => s.type === 'candidate-pair' && s.nominated);
  if (current === call) {
    /* Firefox reports round trips only in remote reports. */
    call.roundTrip = pair?.currentRoundTripTime
      ?? all.find(s => s.roundTripTime !== undefined)?.roundTripTime;
    showStates(call.pc, call.roundTrip);
  }
}

/* Converts a level from 0 to 1 to a decibel scale, which matches hearing. */
function meter(level) {
  if (level === undefined) return '';
  const shown = document.createElement('meter');
  const decibels = level > 0 ? Math.max(-60, 20 * Math.log10(level)) : -60;
  Object.assign(shown, { min: -60, max: 0, value: decibels });
  shown.title = decibels.toFixed(0) + ' dBov';
  return shown;
}

async function connected(pc, milliseconds) {
  const end = performance.now() + milliseconds;
  while (pc.connectionState !== 'connected' && performance.now() < end) {
    if (pc.connectionState === 'failed' || pc.connectionState === 'closed') return false;
    await wait(20);
  }
  return pc.connectionState === 'connected';
}

window.retake = {
  /* Calls, stays connected for `seconds`, hangs up, and returns a report. */
  async call(settings = {}) {
    const call = await begin(settings);
    const isConnected = await connected(call.pc, 1000 * (settings.timeout || 10));
    if (isConnected) await wait(1000 * (settings.seconds ?? 5));
    const result = { id: call.id, connected: isConnected, states: call.states,
      tracks: call.tracks, messages: call.messages, offer: call.pc.localDescription?.sdp,
      answer: call.pc.remoteDescription?.sdp, stats: await dump(call.pc),
      video: { width: video('echo').videoWidth, height: video('echo').videoHeight } };
    if (!settings.keep) finish();
    return result;
  },
  begin, hangUp: finish,
  async stats() { return current ? dump(current.pc) : []; },
  async serverStats() { return (await get('stats' + (current?.id ? of(current.id) : ''))).json(); },
  /* Returns the page of a call's take, as HTML. */
  page: fetchPage,
};

const fromOptions = () => ({ offerer: options.get('offerer') || undefined,
  video: options.get('video') !== '0', audio: options.get('audio') !== '0' });
$('call').onclick = () => begin(fromOptions()).catch(() => {});
$('hangup').onclick = () => finish();
$('mute').onclick = () => {
  const echo = video('echo');
  echo.muted = !echo.muted;
  $('mute').textContent = echo.muted ? 'Unmute' : 'Mute';
};
$('talk').onsubmit = event => {
  event.preventDefault();
  if (text.value) send(current, text.value);
  text.value = '';
};
addEventListener('pagehide', () => {
  if (current?.id) request('bye', { id: current.id }).catch(() => {});
});
showDestination(null);
if (auto) begin(fromOptions()).catch(() => {});
