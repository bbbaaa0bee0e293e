/** Finds numbers, times, dates and codes in a plain statement. */
import type { PlainWord } from './plain-statement.ts';

/** A value with a type. It is compared only with values of the same type. */
export interface TypedValue {
  /**
   * Type of the value, such as `weekday`, `duration` or `version`; for a number with a unit, `number of` and the unit.
   */
  readonly type: string;
  /**
   * The value in a canonical form, which is equal for different spellings of one value. A time is in the 24-hour clock;
   * after a time that may be in the morning or in the afternoon, such as 3:30, stands a `?`.
   */
  readonly value: string;
  /** Index of the value's first word in the statement; `end` is the index of the first word after the value. */
  readonly start: number;
  readonly end: number;
}

const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const WEEKDAYS = new Set('monday tuesday wednesday thursday friday saturday sunday'.split(' '));
const MONTHS = 'january february march april may june july august september october november december'.split(' ');
const SECONDS: Readonly<Record<string, number>> = {
  ms: 0.001,
  s: 1,
  second: 1,
  seconds: 1,
  minute: 60,
  minutes: 60,
  min: 60,
  hour: 3600,
  hours: 3600,
  day: 86_400,
  days: 86_400,
};

const NUMBER = /^\d+(?:\.\d+)?$/u;
/** Matches a time of the day: its hours in group 1, its minutes in group 2, and `am` or `pm` in group 3. */
const CLOCK = /^(\d{1,2})(?:[:.](\d{2}))?(am|pm|a\.m|p\.m)?$/u;
const HALF_OF_DAY = /^(?:am|pm|a\.m|p\.m)$/u;
const CODE = /^(?=.*\d)[\p{L}\d]+(?:-[\p{L}\d]+)+$|^[^\s@]+@[^\s@]+\.[^\s@]+$/u;

/**
 * Finds the typed values of a statement, in order, without overlaps. A plain number after a name counts as a version of
 * the named thing.
 */
export function typedValues(words: readonly PlainWord[]): TypedValue[] {
  const values: TypedValue[] = [];
  for (let place = 0; place < words.length;) {
    const value = valueAt(words, place);
    if (value === null) place += 1;
    else {
      values.push(value);
      place = value.end;
    }
  }
  return values;
}

function valueAt(words: readonly PlainWord[], start: number): TypedValue | null {
  const { text, isName } = words[start]!;
  const next = words[start + 1];
  const made = (type: string, value: string, length = 1) => ({ type, value, start, end: start + length });
  if (WEEKDAYS.has(text)) return made('weekday', text);
  if (MONTHS.includes(text) && isName) {
    const day = dayOf(next?.text);
    return day === null ? made('month', text) : made('date', `${text} ${day}`, 2);
  }
  if (CODE.test(text)) return made('code', text);
  const time = clockAt(words, start);
  if (time !== null) return made('clock', time.value, time.length);
  const number = numberOf(text) ?? dayOf(text);
  if (number === null) return null;
  if (next !== undefined && next.isName && MONTHS.includes(next.text)) return made('date', `${next.text} ${number}`, 2);
  if (isVersioned(words, start)) return made('version', text);
  if (next === undefined) return made('number', String(number));
  const seconds = Object.hasOwn(SECONDS, next.text) ? SECONDS[next.text]! : undefined;
  return seconds === undefined
    ? made(`number of ${next.text}`, String(number), 2)
    : made('duration', String(number * seconds), 2);
}

/**
 * Reads the time of the day that begins at the word `start`; null if there is none. `value` is as in `TypedValue`, and
 * `length` is the number of words.
 */
function clockAt(
  words: readonly PlainWord[],
  start: number,
): { readonly value: string; readonly length: number } | null {
  const { text } = words[start]!;
  const [, hours, minutes, suffix] = CLOCK.exec(text) ?? [];
  if (hours === undefined) return null;
  const next = words[start + 1]?.text ?? '';
  const half = suffix ?? (HALF_OF_DAY.test(next) ? next : undefined);
  if (half === undefined && (minutes === undefined || isVersioned(words, start))) return null;
  const hour = Number(hours);
  const shown = (of: number) => `${String(of).padStart(2, '0')}:${minutes ?? '00'}`;
  if (half !== undefined) {
    const value = shown((hour % 12) + (half.startsWith('p') ? 12 : 0));
    return { value, length: suffix === undefined ? 2 : 1 };
  }
  // What is written with a dot may be a price or a weight, too.
  const isOpen = text.includes(':') && hour >= 1 && hour <= 12 && !hours.startsWith('0');
  return { value: `${shown(hour)}${isOpen ? '?' : ''}`, length: 1 };
}

/** Tells whether two values have the same type and cannot be the same value. */
export function areDifferent(one: TypedValue, other: TypedValue): boolean {
  if (one.type !== other.type) return false;
  if (!one.value.endsWith('?') && !other.value.endsWith('?')) return one.value !== other.value;
  const inHalfDay = ({ value }: TypedValue) => `${Number(value.slice(0, 2)) % 12}${value.slice(2, 5)}`;
  return inHalfDay(one) !== inHalfDay(other);
}

/** Tells whether a number follows the name of a thing, so that it is a version of it. */
function isVersioned(words: readonly PlainWord[], place: number): boolean {
  const before = words[place - 1];
  if (before === undefined || !before.isName || !NUMBER.test(words[place]!.text)) return false;
  return !WEEKDAYS.has(before.text) && !MONTHS.includes(before.text);
}

function numberOf(text: string): number | null {
  if (NUMBER.test(text)) return Number(text);
  const place = NUMBERS.indexOf(text);
  return place < 0 ? null : place;
}

function dayOf(text: string | undefined): number | null {
  const day = Number(/^(\d{1,2})(?:st|nd|rd|th)?$/u.exec(text ?? '')?.[1] ?? 0);
  return day >= 1 && day <= 31 ? day : null;
}
