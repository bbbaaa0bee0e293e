/**
 * Finds the dates that a text names, in English, German, Chinese and ISO 8601, and relative dates such as `last week`,
 * `gestern` or `上个月`.
 */

const DAY_MS = 24 * 3_600_000;

/**
 * A date in a question or in the text of a memory: a day, a month, or a range of times (Unix ms, `to` exclusive) for a
 * relative date. `month` is 1..12, `day` 1..31. If the text names no year, `year` is undefined and the date stands for
 * every year.
 */
export type NamedDate =
  | { readonly kind: 'day'; readonly year: number | undefined; readonly month: number; readonly day: number }
  | { readonly kind: 'month'; readonly year: number | undefined; readonly month: number }
  | { readonly kind: 'range'; readonly from: number; readonly to: number };

/** Greatest number of dates that are taken from a text. */
const MAX_DATES = 4;
/** Length of the beginning of a text that is searched for dates, in UTF-16 code units. */
const MAX_CHARACTERS = 2_000;

/**
 * Lists the dates in the first 2,000 UTF-16 code units of a text, at most 4, in the order of `PATTERNS`, not of the
 * text. Names of months count only with a capital, since `may` and `march` are verbs, and without a day or a year only
 * after a word such as `in` or `last`. Words that name a day do not give a month as well.
 * @param now time of the question, Unix ms, to which relative dates such as `yesterday` refer; days are those of UTC
 */
export function datesIn(text: string, now: number): NamedDate[] {
  const dates: NamedDate[] = [];
  let rest = text.slice(0, MAX_CHARACTERS);
  for (const { pattern, read } of PATTERNS) {
    rest = rest.replace(pattern, (...found) => {
      const date = read(found.at(-1) as Readonly<Record<string, string | undefined>>, now);
      if (date === undefined) return found[0];
      dates.push(date);
      return ' ';
    });
  }
  return dates.slice(0, MAX_DATES);
}

interface Pattern {
  readonly pattern: RegExp;
  /**
   * Returns the date for the named groups of a match; undefined if the month is not 1..12 or the day not 1..31. 30
   * February is accepted. `now` is the time of the question, Unix ms.
   */
  readonly read: (groups: Readonly<Record<string, string | undefined>>, now: number) => NamedDate | undefined;
}

const MONTHS: ReadonlyMap<string, number> = new Map(
  [
    ['January', 'Januar', 'Jänner', 'Jan'],
    ['February', 'Februar', 'Feb'],
    ['March', 'März', 'Mar'],
    ['April', 'Apr'],
    ['May', 'Mai'],
    ['June', 'Juni', 'Jun'],
    ['July', 'Juli', 'Jul'],
    ['August', 'Aug'],
    ['September', 'Sept', 'Sep'],
    ['October', 'Oktober', 'Oct', 'Okt'],
    ['November', 'Nov'],
    ['December', 'Dezember', 'Dec', 'Dez'],
  ].flatMap((names, place) => names.map((name): [string, number] => [name, place + 1])),
);
const NAME = `(?<name>${[...MONTHS.keys()].sort((a, b) => b.length - a.length).join('|')})\\b\\.?`;
const YEAR = String.raw`(?<year>(?:19|20)\d\d)(?!\d)`;
const BEFORE_MONTH = '[Ii][nm]|[Oo]f|[Dd]uring|[Ss]ince|[Ss]eit|[Ll]ast|[Tt]his|[Ee]arly|[Ll]ate|[Mm]id';
/** Comes before a number that is a place in a text: `Section 3.4.` is no third of April. */
const PLACE = String.raw`(?:§|\b(?:[Ss]ections?|[Cc]hapters?|[Cc]lauses?|[Pp]arts?|[Aa]bschnitt|[Kk]apitel))\s?`;
const DAY = String.raw`(?<![\d.])(?<day>[0-3]?\d)`;

/**
 * The kinds of date expression that are recognised. A part of the text that matches one kind is not compared with later
 * ones.
 */
const PATTERNS: readonly Pattern[] = [
  {
    pattern: /(?<!\d)(?<year>(?:19|20)\d\d)-(?<month>[01]\d)(?:-(?<day>[0-3]\d))?(?![\d-])/g,
    read: ({ year, month, day }) => dateOf(year, Number(month), day),
  },
  {
    pattern: new RegExp(`(?<!${PLACE})${DAY}\\.(?<month>[01]?\\d)\\.(?:\\s?${YEAR})?(?![\\d.])`, 'g'),
    read: ({ year, month, day }) => dateOf(year, Number(month), day),
  },
  {
    pattern: /(?:(?<year>(?:19|20)\d\d)年)?(?<!\d)(?<month>1?\d)月(?:(?<day>[0-3]?\d)[日号號])?(?!\d)/g,
    read: ({ year, month, day }) => dateOf(year, Number(month), day),
  },
  {
    pattern: new RegExp(`${DAY}(?:st|nd|rd|th|\\.)?\\s+(?:of\\s+)?${NAME}(?:,?\\s+${YEAR})?`, 'g'),
    read: ({ year, name, day }) => dateOf(year, MONTHS.get(name!)!, day),
  },
  {
    pattern: new RegExp(`\\b${NAME}\\s+(?<day>[0-3]?\\d)(?:st|nd|rd|th)?(?!\\d)(?:,?\\s+${YEAR})?`, 'g'),
    read: ({ year, name, day }) => dateOf(year, MONTHS.get(name!)!, day),
  },
  // A month at the beginning may be a name or a verb: `May I …`, `April asked …`.
  {
    pattern: new RegExp(`\\b(?:${BEFORE_MONTH})\\s+${NAME}(?:,?\\s+${YEAR})?`, 'g'),
    read: ({ year, name }) => dateOf(year, MONTHS.get(name!)!, undefined),
  },
  {
    pattern: new RegExp(`\\b${NAME},?\\s+${YEAR}`, 'g'),
    read: ({ year, name }) => dateOf(year, MONTHS.get(name!)!, undefined),
  },
  { pattern: /\byesterday\b|\bgestern\b|昨天|昨日/giu, read: (_, now) => daysFrom(now, -1, 0) },
  { pattern: /\btoday\b|\bheute\b|今天|今日(?!头条)/giu, read: (_, now) => daysFrom(now, 0, 1) },
  // Chinese puts no blanks between words: 上 may end 晚上 or 马上, and 本 may end 日本.
  {
    pattern: /\blast week\b|\bletzten? Woche\b|\bvorige Woche\b|(?<![晚早线马路网桌身])上个?(?:周|星期|礼拜)/giu,
    read: (_, now) => week(now, -1),
  },
  {
    pattern: /\bthis week\b|\bdiese[rn]? Woche\b|(?:这|(?<!日)本)个?(?:周|星期|礼拜)/giu,
    read: (_, now) => week(now, 0),
  },
  {
    pattern: /\blast month\b|\b(?:letzten|vorigen) Monat\b|(?<![晚早线马路网桌身])上个?月/giu,
    read: (_, now) => month(now, -1),
  },
  { pattern: /\bthis month\b|\bdiese[nm] Monat\b|(?:这个?|(?<!日)本)月/giu, read: (_, now) => month(now, 0) },
  { pattern: /\blast year\b|\b(?:letztes|voriges) Jahr\b|去年/giu, read: (_, now) => year(now, -1) },
];

function dateOf(year: string | undefined, month: number, day: string | undefined): NamedDate | undefined {
  const named = { year: year === undefined ? undefined : Number(year), month };
  if (month < 1 || month > 12) return undefined;
  if (day === undefined) return { kind: 'month', ...named };
  return Number(day) < 1 || Number(day) > 31 ? undefined : { kind: 'day', ...named, day: Number(day) };
}

function startOfDay(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}

function daysFrom(now: number, from: number, to: number): NamedDate {
  const today = startOfDay(now);
  return { kind: 'range', from: today + from * DAY_MS, to: today + to * DAY_MS };
}

/**
 * Returns the week, from Monday (UTC), that is `weeks` weeks after the week of the question; before it, if the number
 * is negative.
 */
function week(now: number, weeks: number): NamedDate {
  const sinceMonday = (new Date(now).getUTCDay() + 6) % 7;
  return daysFrom(now, 7 * weeks - sinceMonday, 7 * (weeks + 1) - sinceMonday);
}

function month(now: number, months: number): NamedDate {
  const date = new Date(now);
  const at = (later: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later);
  return { kind: 'range', from: at(months), to: at(months + 1) };
}

function year(now: number, years: number): NamedDate {
  const at = (later: number) => Date.UTC(new Date(now).getUTCFullYear() + later, 0);
  return { kind: 'range', from: at(years), to: at(years + 1) };
}

/**
 * Tells whether two dates name the same day or month; if one of them has no year, any year counts as the same. If `one`
 * is a month, a day in this month as `other` counts, too, but a day as `one` never equals a month. A relative date
 * (`yesterday`) equals no date, since it depends on the day of its text.
 */
export function areSameDate(one: NamedDate, other: NamedDate): boolean {
  if (one.kind === 'range' || other.kind === 'range') return false;
  const isSameYear = one.year === undefined || other.year === undefined || one.year === other.year;
  if (!isSameYear || one.month !== other.month) return false;
  return one.kind === 'month' || (other.kind === 'day' && one.day === other.day);
}

/**
 * A time from this number of days before the start of a named day (UTC) on has the fit 1, since the day depends on the
 * time zone. The fit 1 ends `AFTER_DAY` days after that start.
 */
const BEFORE_DAY = 1;
const AFTER_DAY = 1.5;
/**
 * A time up to this number of days after the start of a named day has the fit `FIT_AFTER_DAY`, since people tell of an
 * event some days later.
 */
const REPORT_DAYS = 10;
const FIT_AFTER_DAY = 0.5;
/**
 * A time up to this number of days after the end of a named month has the fit `FIT_AFTER_MONTH`, since people tell of
 * an event some days later.
 */
const REPORT_DAYS_OF_MONTH = 20;
const FIT_AFTER_MONTH = 0.4;

/**
 * Returns how well a time fits a date, 0..1. It is 1 within a range, within a named month, and on a named day,
 * including one day before and half a day after it because of time zones. It is 0.5 up to 10 days after the start of a
 * named day and 0.4 in the 20 days after a named month, since people tell of an event some days later. It is 0 for any
 * other time. A date without a year is compared in every year.
 * @param time the time to compare, Unix ms
 */
export function fitOfDate(date: NamedDate, time: number): number {
  if (date.kind === 'range') return time >= date.from && time < date.to ? 1 : 0;
  // A date without a year may lie in the year of the time, or just before its beginning.
  const own = new Date(time).getUTCFullYear();
  const years = date.year === undefined ? [own - 1, own, own + 1] : [date.year];
  return Math.max(...years.map((year) => fitInYear(date, year, time)));
}

function fitInYear(date: Exclude<NamedDate, { kind: 'range' }>, year: number, time: number): number {
  if (date.kind === 'month') {
    const end = Date.UTC(year, date.month);
    if (time >= Date.UTC(year, date.month - 1) && time < end) return 1;
    return time >= end && time < end + REPORT_DAYS_OF_MONTH * DAY_MS ? FIT_AFTER_MONTH : 0;
  }
  const days = (time - Date.UTC(year, date.month - 1, date.day)) / DAY_MS;
  if (days >= -BEFORE_DAY && days <= AFTER_DAY) return 1;
  return days > AFTER_DAY && days <= REPORT_DAYS ? FIT_AFTER_DAY : 0;
}
