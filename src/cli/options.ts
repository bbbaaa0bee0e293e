/** Options that several commands share, and parsers of their values. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  CUTS,
  DAY_MS,
  DEFAULT_K,
  INCLUDED,
  PROFILES,
  QUERY_LIMITS,
  QUEUE_NAMES,
  type QueueName,
  SECTORS,
  SIMILARITIES,
} from '../engine/for-options.ts';
import { parseIsoTime } from './iso-time.ts';

/** Declares a command that sends requests to a running server, with the options `--url` and `--key`. */
export function overHttp(parent: Command, name: string, options: { isDefault?: boolean } = {}): Command {
  return parent
    .command(name, options)
    .option('--url <url>', 'the server (default: CAIRN_URL, or http://127.0.0.1 at OM_PORT)')
    .option('--key <key>', 'its key (default: CAIRN_API_KEY or OM_API_KEY)');
}

/** Declares a command that sends a query to a running server, with the options of a query. */
export function asking(parent: Command, name: string): Command {
  return overHttp(parent, name)
    .option('--user <id>', 'only the memories of this user')
    .option('-k, --k <count>', `most memories to return (default: ${DEFAULT_K})`, integer(1, QUERY_LIMITS.k))
    .addOption(new Option('--profile <name>', 'formula that scores memories').choices(PROFILES))
    .option('--min-score <score>', 'leave out memories with a lower score', fraction)
    .addOption(new Option('--cut <way>', 'cut the answer to what belongs together (default: none)').choices(CUTS))
    .option('--as-of <time>', 'answer for an earlier time, such as 2026-01-31', parseTime)
    .addOption(
      new Option('--similarity <measure>', 'relative to the best memory (the default), or absolute').choices(
        SIMILARITIES,
      ),
    )
    .addOption(new Option('--include <kind>', 'let memories that lost a contradiction take part').choices(INCLUDED))
    .option('--deep', 'include superseded, contradicted and archived memories');
}

/** Declares a command that opens the file of one tenant, with the option `--tenant`. */
export function onTenant(parent: Command, name: string, options: { isDefault?: boolean } = {}): Command {
  return parent.command(name, options).option('--tenant <id>', 'the tenant (default: the default tenant)');
}

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/**
 * Parses names that are separated by commas, such as `a,b`.
 * @throws InvalidArgumentError for an empty name
 */
export function names(text: string): readonly string[] {
  const named = text.split(',').map((name) => name.trim());
  if (named.every((name) => name !== '')) return named;
  throw new InvalidArgumentError('expected names such as a,b');
}

/** Makes the parser of a whole number from `min` to `max`, which throws InvalidArgumentError for any other text. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a number in ${min}..${max}`);
  };
}

/**
 * Parses a number from 0 to 1.
 * @throws InvalidArgumentError for any other text
 */
export function fraction(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('expected a number in 0..1');
}

/**
 * Parses rates of decay per day (0 to 10): a single one for all sectors, such as 0.01, or some by sector, as in
 * `episodic=0.03,semantic=0.01`.
 * @throws InvalidArgumentError for any other text
 */
export function parseRates(text: string): number | Record<string, number> {
  if (!text.includes('=')) return rate(text);
  return Object.fromEntries(
    text.split(',').map((entry) => {
      const [sector = '', value = ''] = entry.split('=').map((part) => part.trim());
      if (!(SECTORS as readonly string[]).includes(sector))
        throw new InvalidArgumentError(`expected some of ${SECTORS.join(', ')}, each with its rate`);
      return [sector, rate(value)];
    }),
  );
}

function rate(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 10) return value;
  throw new InvalidArgumentError('expected a rate per day in 0..10');
}

/** Parses a time: digits become a number of Unix ms; any other text is returned as it is, for the server to check. */
function parseTime(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: DAY_MS };

/**
 * Parses a time. Digits are Unix ms; a number of hours or days, such as 12h or 7d, means that long ago and becomes Unix
 * ms; any other text is returned as it is, for the server to check.
 */
export function parsePast(text: string): number | string {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  return unit === undefined ? parseTime(text) : Date.now() - Number(count) * UNIT_MS[unit]!;
}

/**
 * Parses a JSON object.
 * @throws InvalidArgumentError for any other text
 */
export function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Malformed JSON is refused below.
  }
  throw new InvalidArgumentError('expected a JSON object such as {"source":"chat"}');
}

/**
 * Parses names of queues, separated by commas.
 * @throws InvalidArgumentError for an unknown name
 */
export function parseQueues(text: string): QueueName[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => (QUEUE_NAMES as readonly string[]).includes(name))) return names as QueueName[];
  throw new InvalidArgumentError(`expected some of ${QUEUE_NAMES.join(', ')}, separated by commas`);
}

/**
 * Parses the greatest number of jobs at the same time, from 1 to 99.
 * @throws InvalidArgumentError for any other text
 */
export function parseConcurrency(text: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected 1..99');
}

/**
 * Parses a future day such as 2030-01-31, or a number of days from now such as 30d. It may be a time of ISO 8601, too.
 * @returns Unix ms
 * @throws InvalidArgumentError for a day that is not in the future or that its month does not have, and for any other
 *   text
 */
export function parseDay(text: string): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at = days === undefined ? parseIsoTime(text) : Date.now() + Number(days) * DAY_MS;
  if (at > Date.now()) return at;
  throw new InvalidArgumentError('expected a day to come, such as 2030-01-31 or 30d');
}
