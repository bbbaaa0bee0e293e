/** The kinds of settings: how the text of a variable becomes a value, and what is refused. */

import { isIP } from 'node:net';
import { z } from 'zod';
import { isTamperProofUrl } from './hosts.ts';

/** A setting that is `true`, `false`, `1` or `0`, as a boolean; `fallback` if it is not set. */
export const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'], { error: 'expected true or false' })
    .transform((text) => text === 'true' || text === '1')
    .default(fallback);

/** A setting that is a whole number in `min..max`, both included; `fallback` if it is not set. */
export const integer = (fallback: number, min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/, `expected a whole number in decimal digits, ${min}..${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}`)
    .default(fallback);

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * A setting that is a duration: `6` or `6h` (hours), `30m` (minutes) or `1d` (days). Its value is in ms, in
 * `minMs..maxMs`; undefined if it is not set.
 * @param expected message for a value of another form or out of bounds
 */
export const duration = (minMs: number, maxMs: number, expected: string) =>
  z
    .string()
    .regex(/^\d{1,6}[mhd]?$/, expected)
    .transform((text) => Number.parseInt(text, 10) * UNIT_MS[(/[mhd]$/.exec(text)?.[0] ?? 'h') as keyof typeof UNIT_MS])
    .refine((ms) => ms >= minMs && ms <= maxMs, expected)
    .optional();

/** Writes a duration of whole minutes (ms) as a setting states it, in its largest unit: `1d`, `6h`, `90m`. */
export function durationText(ms: number): string {
  const unit = (['d', 'h', 'm'] as const).find((name) => ms % UNIT_MS[name] === 0) ?? 'm';
  return `${ms / UNIT_MS[unit]}${unit}`;
}

/** A setting that is a number in 0..1, both included; `fallback` if it is not set. */
export const fraction = (fallback: number) => bounded(z.coerce.number(), 0, 1).default(fallback);

/**
 * A setting that is an http or https URL without credentials: those would appear wherever URLs are printed, and `fetch`
 * refuses them. It has no default.
 */
export const serviceUrl = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected http://host or https://host' })
    .refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url), 'expected no name or password');

/** A setting that is the address of a PostgreSQL database. It has no default. */
export const databaseUrl = () =>
  z.url({ protocol: /^postgres(ql)?$/, error: 'expected postgres://user:password@host:port/database' });

/**
 * A setting that is the URL of a server that decides who is admitted, such as an issuer of tokens: https, or http on a
 * loopback host. It has no default.
 */
export const tamperProofUrl = () =>
  z.string().refine(isTamperProofUrl, 'expected https://host, or http:// and a loopback host, without a password');

/** A setting that names a claim of tokens; undefined if it is not set. */
export const claimName = () => z.string().max(200, 'expected at most 200 characters').optional();

/** A setting that is the key of another server, which gets it in a header; undefined if it is not set. */
export const providerKey = () =>
  z
    .string()
    .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII, as a header takes nothing else')
    .optional();

/** Restricts the schema of a number to `min..max`, both included. */
export const bounded = (number: z.ZodCoercedNumber, min: number, max: number) =>
  number.refine((value) => value >= min && value <= max, `expected ${min}..${max}`);

/**
 * A setting that lists IP addresses and networks (`10.0.0.0/8`), comma-separated; empty by default. Its value is the
 * whole text, which `listOf` splits.
 */
export const addressList = () =>
  z
    .string()
    .default('')
    .refine(
      (text) => listOf(text).every(isNetwork),
      'expected addresses such as 10.0.0.1 or networks such as 10.0.0.0/8, comma-separated',
    );

/** Splits a comma-separated setting into its values; trims each and leaves out empty ones. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((value) => value.trim())
    .filter(Boolean);
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const most = isIP(address) === 6 ? 128 : 32;
  return (
    isIP(address) !== 0 && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  );
}
