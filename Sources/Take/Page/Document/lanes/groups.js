// All groups of lanes, ordered from the connection to its media.
import { audioGroup } from "./audio.js";
import { dataGroup } from "./channels.js";
import { connectionGroup } from "./connection.js";
import { coverageGroups } from "./coverage.js";
import { onPrepared } from "./curves.js";
import { audioGroups, interruptionCard, routeCard, silenceCard } from "./devices.js";
import { signalingGroup } from "./messages.js";
import { roomCard, roomGroups } from "./rooms.js";
import { speakerGroup } from "./speakers.js";
import { isOfAudio, isOfRoom, machineStates, stateLane } from "./states.js";
import { videoGroup } from "./video.js";
import { take } from "../take/take.js";

/** Machines of unknown kinds. */
function otherGroups(states) {
  const others = states.filter((each) => !isOfAudio(each) && !isOfRoom(each));
  if (!others.length) return [];
  return [{
    id: "machine", name: take.actors.find(({ kind }) => kind !== "observer")?.label || "Machines",
    note: "its states", peers: [], kind: "machine",
    lanes: others.map(({ machine, list }) => stateLane(machine, list)),
  }];
}

/** The groups of machines that are not peers, and of gaps in coverage. */
function machineGroups() {
  const states = machineStates();
  return [...roomGroups(states), ...audioGroups(states), ...otherGroups(states),
    ...coverageGroups()];
}

/** Cards about rooms and audio sessions. */
export const machineCards = () =>
  [roomCard(), interruptionCard(), routeCard(), silenceCard()].filter(Boolean);

/** The number of flows in a room that are initially unfolded. */
const flowsShown = 8;

/** Flows: video, then audio; in a room, participant by participant. */
function mediaGroups(redrawn) {
  const groups = take.flows.map((flow) =>
    (flow.kind === "video" ? videoGroup(flow, redrawn) : audioGroup(flow)));
  groups.sort((a, b) => (a.flow.person ?? -1) - (b.flow.person ?? -1));
  groups.forEach((group, index) => {
    group.isFolded = group.flow.person !== undefined && index >= flowsShown;
  });
  return groups;
}

/** All groups of the take, from the connection to its media. */
export function allGroups(redrawn) {
  onPrepared(redrawn);
  const groups = [
    ...signalingGroup(),
    ...take.peers.map(connectionGroup).filter(({ lanes }) => lanes.length),
    ...mediaGroups(redrawn),
    ...speakerGroup(),
    ...take.peers.flatMap(dataGroup),
  ];
  const machines = machineGroups();
  // Participants precede their media; gaps in coverage come last.
  const isFirst = ({ kind }) => kind === "room" || (kind === "audio" && !take.flows.length);
  groups.splice(groups.findIndex(({ kind }) => kind !== "signaling") >>> 0, 0,
    ...machines.filter(isFirst));
  groups.push(...machines.filter((group) => !isFirst(group)));
  for (const group of groups) {
    group.lanes.forEach((lane, index) => {
      lane.id = `${group.id}.${lane.label.replace(/[^\w]+/g, "-")}${index}`;
      lane.group = group;
    });
  }
  return groups;
}
