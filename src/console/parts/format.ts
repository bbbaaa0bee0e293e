/** Formats numbers and times for display. Times are in the time zone of the browser. */

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

/** Formats a number in English notation, with a comma between thousands. */
export const count = (value: number) => COUNT.format(value);
/** Formats day and time of a Unix time (ms) in the time zone of the browser. */
export const dateTime = (at: number) => DATE.format(at);
/** Formats the day of a Unix time (ms) in the time zone of the browser. */
export const day = (at: number) => DAY.format(at);
/** Formats a number with two digits after the point, or with `digits`. */
export const fixed = (value: number, digits = 2) => value.toFixed(digits);
/** Formats a share of 0 to 1 as per cent, without decimals. */
export const percent = (value: number) => `${Math.round(value * 100)} %`;
/** Shortens an id to its last eight characters; its first ones encode a time and are alike for many ids. */
export const shortId = (id: string) => `…${id.slice(-8)}`;

/** Formats a time (Unix ms) relative to `now`, in the largest unit that fits; `just now` for less than a minute. */
export function ago(at: number, now = Date.now()): string {
  const unit = UNITS.find(([, ms]) => Math.abs(at - now) >= ms);
  return unit === undefined ? 'just now' : AGO.format(Math.trunc((at - now) / unit[1]), unit[0]);
}

/** Formats a duration (ms) in ms, s, min, h or days, whichever suits its length. */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${(ms / 3_600_000).toFixed(1)} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

/** Formats a number of bytes as B, kB, MB or GB, each 1,000 of the one before. */
export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${(value / 1_000).toFixed(1)} kB`;
  if (value < 1_000_000_000) return `${(value / 1_000_000).toFixed(1)} MB`;
  return `${(value / 1_000_000_000).toFixed(2)} GB`;
}

/** Formats a Unix time (ms) as the value of an input of type `datetime-local`, in the time zone of the browser. */
export function localTime(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
