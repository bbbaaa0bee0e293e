/** The kinds of settings: how the text of a variable becomes a value, and what is refused. */

import { z } from 'zod';

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

/** A setting that is a number in 0..1, both included; `fallback` if it is not set. */
export const fraction = (fallback: number) => bounded(z.coerce.number(), 0, 1).default(fallback);

/**
 * A setting that is an http or https URL without credentials, which would appear wherever URLs are shown, and which
 * `fetch` refuses. It has no default.
 */
export const serviceUrl = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected http://host or https://host' })
    .refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url), 'expected no name or password');

/** A setting that is the key of another server, which gets it in a header; undefined if it is not set. */
export const providerKey = () =>
  z
    .string()
    .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII, as a header takes nothing else')
    .optional();

/** Restricts the schema of a number to `min..max`, both included. */
export const bounded = (number: z.ZodCoercedNumber, min: number, max: number) =>
  number.refine((value) => value >= min && value <= max, `expected ${min}..${max}`);
