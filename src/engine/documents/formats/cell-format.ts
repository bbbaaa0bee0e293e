import { childNamed, childrenNamed, type XmlElement } from '../xml.ts';

/** How a number is shown, as far as it changes what the number means. */
export type CellFormat = 'general' | 'percent' | 'date' | 'duration';

/** The format of each cell style, in their order. */
export function cellFormats(styles: XmlElement | undefined): CellFormat[] {
  const own = childNamed(styles, 'numFmts');
  const codes = new Map(
    (own === undefined ? [] : childrenNamed(own, 'numFmt')).map(({ attributes }) => [
      Number(attributes.get('numFmtId')),
      attributes.get('formatCode') ?? '',
    ]),
  );
  const list = childNamed(styles, 'cellXfs');
  return (list === undefined ? [] : childrenNamed(list, 'xf')).map(({ attributes }) => {
    const id = Number(attributes.get('numFmtId') ?? 0);
    const code = codes.get(id);
    return code === undefined ? builtInFormat(id) : formatOfCode(code);
  });
}

function builtInFormat(id: number): CellFormat {
  if (id === 9 || id === 10) return 'percent';
  if (id === 46) return 'duration';
  const isDate = (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58);
  return isDate ? 'date' : 'general';
}

function formatOfCode(code: string): CellFormat {
  const [positive = ''] = code.split(';', 1);
  const bare = positive.replace(/"[^"]*"|\\.|_.|\*./g, '');
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'duration';
  const symbols = bare.replace(/\[[^\]]*\]/g, '');
  if (/[ymdhs]/i.test(symbols) && !/general/i.test(symbols)) return 'date';
  return symbols.includes('%') ? 'percent' : 'general';
}

const DAY_MS = 86_400_000;
/** Day 0 of either calendar. Excel takes 1900 for a leap year, so that days before March of it are off by one. */
const EPOCH_1900 = Date.UTC(1899, 11, 30);
const EPOCH_1904 = Date.UTC(1904, 0, 1);
/** 9999-12-31. */
const DAYS_MOST = 2_958_466;

/** Dates as YYYY-MM-DD, HH:MM or both; numbers with the 15 digits that Excel keeps. What is no number is shown as it is. */
export function formatNumber(value: string, format: CellFormat, is1904: boolean): string {
  const number = Number(value);
  if (value === '' || !Number.isFinite(number)) return value;
  if (format === 'percent') return `${round(number * 100)}%`;
  if (format === 'duration') return formatDuration(Math.round(number * 86_400));
  if (format === 'date' && number >= 0 && number < DAYS_MOST) return formatDate(number, is1904);
  return /^-?\d+$/.test(value) ? value : round(number);
}

function round(number: number): string {
  return String(Number(number.toPrecision(15)));
}

function formatDate(days: number, is1904: boolean): string {
  // Seconds are what files keep of a time: 0.1 seconds come from rounding.
  const instant = Math.round((days * DAY_MS) / 1000) * 1000 + (is1904 ? EPOCH_1904 : EPOCH_1900);
  const [date = '', time = ''] = new Date(instant).toISOString().slice(0, 19).split('T');
  const clock = time.endsWith(':00') ? time.slice(0, 5) : time;
  if (days < 1 && !is1904) return clock;
  return clock === '00:00' ? date : `${date} ${clock}`;
}

function formatDuration(seconds: number): string {
  const size = Math.abs(seconds);
  const two = (part: number) => String(Math.floor(part) % 60).padStart(2, '0');
  return `${seconds < 0 ? '-' : ''}${Math.floor(size / 3600)}:${two(size / 60)}:${two(size)}`;
}
