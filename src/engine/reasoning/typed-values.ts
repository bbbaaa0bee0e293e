/** Finds numbers, times, dates and codes in a plain statement. */
import type { PlainWord } from './plain-statement.ts';

/** A value with a type. It is compared only with values of the same type. */
export interface TypedValue {
  /**
   * Type of the value, such as `weekday`, `duration` or `version`; for a number with a unit, `number of` and the unit.
   */
  readonly type: string;
  /** The value in a canonical form, so that different spellings of one value are equal. */
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
const CLOCK = /^\d{1,2}[:.]\d{2}$/u;
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
  if (CLOCK.test(text) && !isVersioned(words, start)) return made('clock', text.replace('.', ':').padStart(5, '0'));
  const number = numberOf(text) ?? dayOf(text);
  if (number === null) return null;
  if (next !== undefined && next.isName && MONTHS.includes(next.text)) return made('date', `${next.text} ${number}`, 2);
  if (next !== undefined && /^(?:am|pm|a\.m|p\.m)$/u.test(next.text))
    return made('clock', `${String(number).padStart(2, '0')}:00 ${next.text[0]}`, 2);
  if (isVersioned(words, start)) return made('version', text);
  if (next === undefined) return made('number', String(number));
  const seconds = Object.hasOwn(SECONDS, next.text) ? SECONDS[next.text]! : undefined;
  return seconds === undefined
    ? made(`number of ${next.text}`, String(number), 2)
    : made('duration', String(number * seconds), 2);
}

function isVersioned(words: readonly PlainWord[], place: number): boolean {
  return place > 0 && words[place - 1]!.isName && NUMBER.test(words[place]!.text);
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
