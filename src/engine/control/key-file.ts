/** The wrapped key of a tenant as a text file that is kept beside a backup. */

import { z } from 'zod';
import { EngineError } from '../errors.ts';
import { CIPHERS, type FileKey } from '../find-file-key.ts';
import { controlKeyOf, readDataKey, type KeySettings } from './data-keys.ts';
import { fingerprintOf, unwrapKey, wrapKey } from './wrapped-key.ts';

/**
 * Returns the wrapped data key of a tenant as a text to be kept beside a backup; the text is useless without the master
 * key. Returns null if the data folder is not encrypted.
 * @throws EngineError `not_found` if the tenant has no data key; `unprocessable` if a change of the key was
 *   interrupted, or another master key wrapped it
 */
export function exportWrappedKey(settings: KeySettings, tenant: string): string | null {
  const { masterKey } = settings;
  if (masterKey === null) return null;
  const { cipher, bytes } = readDataKey(settings, controlKeyOf(settings)!, tenant);
  const wrapped = wrapKey(masterKey, tenant, { cipher, bytes }).toString('base64');
  return `${JSON.stringify({ version: 1, tenant, cipher, master: fingerprintOf(masterKey), wrapped })}\n`;
}

/**
 * Unwraps the data key in a text that `exportWrappedKey` returned.
 * @throws EngineError `unprocessable` if the text is damaged, or another master key wrapped it
 */
export function importWrappedKey(masterKey: Uint8Array, text: string): FileKey {
  const parsed = WRAPPED.safeParse(parseJson(text));
  if (!parsed.success) throw new EngineError('unprocessable', 'the key file of the backup is damaged');
  const { tenant, cipher, master, wrapped } = parsed.data;
  const bytes = unwrapKey(masterKey, tenant, Buffer.from(wrapped, 'base64'));
  if (bytes !== undefined) return { cipher, bytes };
  throw new EngineError(
    'unprocessable',
    `the backup is sealed by the master key ${master}, and the one that is set is ${fingerprintOf(masterKey)}: give ` +
      'its key by --key-file',
  );
}

/**
 * Tells whether two texts that `exportWrappedKey` returned are of the same tenant and the same master key. False if
 * either is no such text.
 */
export function isOfSameTenant(text: string, other: string): boolean {
  const [a, b] = [text, other].map((each) => WRAPPED.safeParse(parseJson(each)).data);
  return a !== undefined && a.tenant === b?.tenant && a.master === b.master;
}

const WRAPPED = z.object({
  version: z.literal(1),
  tenant: z.string(),
  cipher: z.enum(CIPHERS),
  master: z.string().regex(/^[0-9a-f]{16}$/),
  wrapped: z.string(),
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
