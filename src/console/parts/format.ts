/** How numbers and times are written. Times are shown in the time zone of the browser. */

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' });
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const COUNT = new Intl.NumberFormat('en');

const UNITS = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** Writes a number as in English, with a comma between thousands. */
export const count = (value: number) => COUNT.format(value);
/** Writes the day and time of a Unix time (ms) in the time zone of the browser. */
export const dateTime = (at: number) => DATE.format(at);
/** Writes the day of a Unix time (ms) in the time zone of the browser. */
export const day = (at: number) => DAY.format(at);
/** Two digits after the point, as scores are compared. */
export const fixed = (value: number, digits = 2) => value.toFixed(digits);
/** Writes a share of 0 to 1 in per cent, without decimals. */
export const percent = (value: number) => `${Math.round(value * 100)} %`;
/** Short form of an id: its last eight characters, as the first ones are its time. */
export const shortId = (id: string) => `…${id.slice(-8)}`;

/** Says how long ago a time was, or in how long it will be. */
export function ago(at: number, now = Date.now()): string {
  const unit = UNITS.find(([, ms]) => Math.abs(at - now) >= ms);
  return unit === undefined ? 'just now' : AGO.format(Math.trunc((at - now) / unit[1]), unit[0]);
}

/** Writes a duration with the unit that suits it. */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${(ms / 3_600_000).toFixed(1)} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

/** Writes a number of bytes as B, kB, MB or GB, of 1,000 each. */
export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${(value / 1_000).toFixed(1)} kB`;
  if (value < 1_000_000_000) return `${(value / 1_000_000).toFixed(1)} MB`;
  return `${(value / 1_000_000_000).toFixed(2)} GB`;
}

/** Writes a time for an input of the type `datetime-local`. */
export function localTime(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
