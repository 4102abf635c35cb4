// Samples a connection's statistics: at a regular interval, when a state changes, and more often
// while it connects.
import { measured } from "./cost.js";
import { changes, objectsOf } from "./deltas.js";

/** The interval between samples while a connection is connecting, in milliseconds. */
const connectingInterval = 200;

export class Sampler {
  /**
   * @param {{
   *   read: () => Promise<any>, report: (value: any) => void, isFull: () => boolean,
   *   missed: () => void, later: (work: () => void, milliseconds: number) => any,
   *   isConnecting: () => boolean, interval: number,
   * }} surroundings
   */
  constructor(surroundings) {
    this.surroundings = surroundings;
    /** @type {Statistics | null} */
    this.last = null;
    this.isReading = false;
    this.isWantedAgain = false;
    this.isOver = false;
    this.isDue = false;
    /** @type {(() => void)[]} */
    this.waiting = [];
  }

  begin() {
    this.arrange();
  }

  /** Forgets the last report, because the recorder has lost it. */
  forget() {
    this.last = null;
  }

  arrange() {
    if (this.isDue || this.isOver) return;
    this.isDue = true;
    const { isConnecting, interval, later } = this.surroundings;
    later(() => measured(() => {
      this.isDue = false;
      this.sample();
      this.arrange();
    }), isConnecting() ? Math.min(connectingInterval, interval) : interval);
  }

  /** Reads statistics; if a read is in progress, schedules another to follow it. */
  sample() {
    if (this.isOver) return;
    if (this.surroundings.isFull()) {
      this.surroundings.missed();
      return;
    }
    if (this.isReading) {
      this.isWantedAgain = true;
      return;
    }
    this.isReading = true;
    const done = (/** @type {any} */ report) => measured(() => {
      this.isReading = false;
      if (report) this.handle(report);
      const isWantedAgain = this.isWantedAgain;
      this.isWantedAgain = false;
      if (isWantedAgain) this.sample();
      else for (const each of this.waiting.splice(0)) each();
    });
    this.surroundings.read().then(done, () => done(null));
  }

  /** Resolves once statistics read from now on have been reported. */
  fresh() {
    if (this.isOver) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiting.push(() => resolve(undefined));
      this.sample();
      if (!this.isReading) for (const each of this.waiting.splice(0)) each();
    });
  }

  /** @param {any} report */
  handle(report) {
    const now = objectsOf(report);
    const value = changes(this.last, now);
    this.last = now;
    if (Object.keys(value.objects).length > 0) this.surroundings.report(value);
  }

  /** Reads statistics for the last time. */
  end() {
    this.sample();
    this.isOver = true;
    this.isWantedAgain = false;
  }
}
