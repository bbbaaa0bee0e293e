/**
 * Checks and error messages for URLs that callers have registered and that the server calls later, such as webhooks.
 */

import net from 'node:net';
import type { Network } from '../config.ts';
import { DocumentError } from '../documents/document-error.ts';
import { isPublicAddress } from '../documents/public-address.ts';
import { EngineError } from '../errors.ts';
import { isAmong } from './guarded-connector.ts';

/** Greatest length of a registered URL, in characters. */
const MAX_URL = 2_048;

/**
 * What a URL is used for: the networks that it may be in although they are not public, and what error messages about it
 * say.
 */
interface GuardedUse {
  /** Subject of the error messages about the URL, such as `webhook`. */
  readonly subject: string;
  /** A valid URL as an example. */
  readonly example: string;
  /** Networks that may be called although they are not public. */
  readonly allowed: readonly Network[];
  /** Name of the setting from which `allowed` comes. */
  readonly setting: string;
}

/**
 * Checks a URL before it is stored: at most 2,048 characters, without user name, password and fragment. An address must
 * be public, with https at port 443, or in an allowed network, with http or https at any port. A host name is not
 * resolved here, but at each connection; http and other ports are taken for it if any network is allowed.
 * @throws EngineError `invalid`
 */
export function checkGuardedUrl(text: string, { subject, example, allowed, setting }: GuardedUse): URL {
  const url = URL.parse(text);
  const refuse = (message: string) => new EngineError('invalid', `${subject}: ${message}`);
  if (url === null || text.length > MAX_URL)
    throw refuse(`expected a URL of at most ${MAX_URL} characters, such as ${example}`);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refuse('expected a URL with https');
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw refuse('leave user name, password and fragment out of the URL');
  if (!isOrdinary(url) && allowed.length === 0)
    throw refuse(`only https at port 443 is allowed; ${setting} names networks where more is`);
  const host = hostOf(url);
  if (net.isIP(host) !== 0 && !isAmong(host, allowed) && !(isOrdinary(url) && isPublicAddress(host)))
    throw refuse(`this address is not allowed; ${setting} names networks that are`);
  return url;
}

/** Tells whether a URL has https and its default port, as calls to the public internet must have. */
export const isOrdinary = ({ protocol, port }: URL) => protocol === 'https:' && port === '';
const hostOf = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '');

/**
 * Describes the error of a call: a DocumentError by its message, any other error by its code or name alone, since
 * messages of system errors contain host names and addresses.
 */
export function failureOf(error: unknown): string {
  if (error instanceof DocumentError) return error.message;
  const { code, name } = (error instanceof AggregateError ? error.errors[0] : error) as NodeJS.ErrnoException;
  return `no reply (${code ?? name})`;
}
