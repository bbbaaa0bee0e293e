import type { Response } from 'express';
import { EngineError, type Memory } from '../../engine/index.ts';

/** Sets the header `ETag` of a reply that was not begun to the version of a memory. */
export function setVersionTag(response: Response, memory: Memory): void {
  response.setHeader('etag', `"${memory.version}"`);
}

/**
 * Reads the header `If-Match`, which may be a version with or without quotes.
 * @returns the expected version; undefined if the header is absent or `*`, so that any version will do
 * @throws EngineError `invalid` for a value that cannot be an ETag of this API
 */
export function expectedVersion(header: string | undefined): number | undefined {
  if (header === undefined || header === '*') return undefined;
  const version = /^(?:"(\d{1,10})"|(\d{1,10}))$/.exec(header);
  if (version === null)
    throw new EngineError(
      'invalid',
      'If-Match: expected one ETag as a reply gave it, such as "3", without W/ and not in a list; or *',
    );
  return Number(version[1] ?? version[2]);
}
