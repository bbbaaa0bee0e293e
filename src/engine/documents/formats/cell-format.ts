import { DAY_MS } from '../../dynamics.ts';
import { childNamed, childrenNamed, type XmlElement } from '../xml.ts';

/**
 * How Excel displays the number in a cell, if the format changes its meaning: unchanged (`general`), times 100 with a
 * percent sign (`percent`), as a date, a time of day or both (`date`), or as hours, minutes and seconds (`duration`).
 */
export type CellFormat = 'general' | 'percent' | 'date' | 'duration';

/**
 * Returns the format of each cell style; cells refer to a style by its index in this list.
 * @param styles root element of the workbook's styles; undefined for none, which gives an empty list
 */
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

/** Greatest length of a format code, in characters: Excel's own limit. A longer code counts as `general`. */
const CODE_CHARACTERS = 255;

function formatOfCode(code: string): CellFormat {
  if (code.length > CODE_CHARACTERS) return 'general';
  const [positive = ''] = code.split(';', 1);
  const bare = positive.replace(/"[^"]*"|\\.|_.|\*./g, '');
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'duration';
  const symbols = bare.replace(/\[[^\]]*\]/g, '');
  if (/[ymdhs]/i.test(symbols) && !/general/i.test(symbols)) return 'date';
  return symbols.includes('%') ? 'percent' : 'general';
}

/**
 * The time that day number 0 stands for in the usual calendar, Unix ms. Excel wrongly treats 1900 as a leap year, so
 * days before March 1900 are off by one.
 */
const EPOCH_1900 = Date.UTC(1899, 11, 30);
/** The time that day number 0 stands for in workbooks that count days from 1904, Unix ms. */
const EPOCH_1904 = Date.UTC(1904, 0, 1);
/** First day number of each calendar that is no longer a valid date; the day before is 9999-12-31. */
const MAX_DAYS = { of1900: 2_958_466, of1904: 2_957_004 } as const;

/**
 * Formats the value of a number cell: percentages times 100 with a percent sign; dates as YYYY-MM-DD, HH:MM (below one
 * day) or both, with :SS unless the seconds are 0; durations as H:MM:SS. Other numbers, and dates outside of Excel's
 * range, get the 15 digits that Excel keeps, except that whole numbers stay as they are. A value that is not a number
 * is returned unchanged.
 * @param value text of the cell in the file
 * @param is1904 whether the workbook counts days from 1904
 */
export function formatNumber(value: string, format: CellFormat, is1904: boolean): string {
  const number = Number(value);
  if (value === '' || !Number.isFinite(number)) return value;
  if (format === 'percent') return `${round(number * 100)}%`;
  if (format === 'duration') return formatDuration(Math.round(number * 86_400));
  if (format === 'date' && number >= 0 && isDate(number, is1904)) return formatDate(number, is1904);
  return /^-?\d+$/.test(value) ? value : round(number);
}

function round(number: number): string {
  return String(Number(number.toPrecision(15)));
}

function isDate(days: number, is1904: boolean): boolean {
  return daysToMs(days) < (is1904 ? MAX_DAYS.of1904 : MAX_DAYS.of1900) * DAY_MS;
}

/**
 * Converts days to ms, rounded to full seconds: files keep times to the second, and smaller parts come from rounding.
 */
function daysToMs(days: number): number {
  return Math.round((days * DAY_MS) / 1000) * 1000;
}

function formatDate(days: number, is1904: boolean): string {
  const instant = daysToMs(days) + (is1904 ? EPOCH_1904 : EPOCH_1900);
  const [date = '', time = ''] = new Date(instant).toISOString().slice(0, 19).split('T');
  const clock = time.endsWith(':00') ? time.slice(0, 5) : time;
  if (days < 1) return clock;
  return clock === '00:00' ? date : `${date} ${clock}`;
}

function formatDuration(seconds: number): string {
  const size = Math.abs(seconds);
  const two = (part: number) => String(Math.floor(part) % 60).padStart(2, '0');
  return `${seconds < 0 ? '-' : ''}${Math.floor(size / 3600)}:${two(size / 60)}:${two(size)}`;
}
