// The lanes of data channels.
import { spansOf } from "./curves.js";
import { ink } from "./draw.js";
import { spanLane, tickLane } from "./kinds.js";
import { byteCount, counted, possessive } from "../shared/words.js";
import { once } from "../take/columns.js";
import { peerName, seriesOf, take } from "../take/take.js";

/** The number of channels shown before all are requested. */
const channelsShown = 6;

export function dataGroup({ peer }) {
  const channels = take.channelList.filter((channel) => channel.peer === peer);
  if (!channels.length) return [];
  const messages = seriesOf("messages", { peer });
  const busy = (channel) => messages.filter((series) => series.channel === channel)
    .reduce((sum, series) => sum + series.count, 0);
  const ranked = channels.map((channel) => ({ ...channel, count: busy(channel.channel) }))
    .sort((a, b) => b.count - a.count || a.channel - b.channel);
  const lanes = ranked.map((channel, index) => channelLane(peer, channel, messages, index));
  const used = ranked.filter(({ count }) => count > 0).length;
  return [{
    id: `data${peer}`, name: `${possessive(peerName(peer))} data`, peers: [peer], kind: "data",
    note: `${counted(channels.length, "channel")}, ${used} with messages, by activity`, lanes,
  }];
}

function channelLane(peer, channel, messages, index) {
  const label = channel.label || `channel ${channel.channel}`;
  const more = { isExtra: index >= channelsShown, query: "messages", tone: "data" };
  const own = messages.filter((series) => series.channel === channel.channel);
  const lists = own.map((series) => once(series.derived, "messages", () => {
    const size = series.column("value");
    return {
      at: series.at, tone: series.direction === "out" ? "data" : "data-text", name: "message",
      height: (place) => 4 + Math.min(3 * Math.log10(size[place] + 1), 10),
      text: (place) =>
        `${series.direction === "out" ? "sent" : "received"} ${byteCount(size[place])}`,
    };
  }));
  const open = spansOf("channels", (row) => row[0] === peer && Number(row[1]) === channel.channel,
    (text) => (text === "open" ? "data" : "wait"));
  if (!lists.length) {
    return spanLane(label, open.map((span) => ({ ...span,
      text: span.text === "open" ? "open, no message" : `${span.text}, never opened` })), more);
  }
  const lane = tickLane(label, lists, more);
  const { draw } = lane;
  lane.draw = (view) => {
    for (const { from, to } of open) {
      view.context.fillStyle = ink["data-back"];
      view.context.fillRect(view.x(from), view.height - 3, view.x(to) - view.x(from), 2);
    }
    draw(view);
  };
  return lane;
}
