import { EngineError } from '../errors.ts';

/**
 * Greatest number of bytes of a user's id and the URL of a page together, for a page without an external id. Such a
 * page is found by both, and an entry of an index in PostgreSQL has at most 2,704 bytes.
 */
const MOST_BYTES = 2_600;

/** @throws EngineError `invalid` if a page without an external id could not be found by its user and its URL */
export function refuseLongAddress(page: {
  readonly userId: string;
  readonly externalId: string | null;
  readonly url: string;
}): void {
  if (page.externalId !== null || page.url === '') return;
  const bytes = Buffer.byteLength(page.userId) + Buffer.byteLength(page.url);
  if (bytes > MOST_BYTES)
    throw new EngineError(
      'invalid',
      `url: with user_id it has ${bytes} bytes, and at most ${MOST_BYTES} are allowed without an external_id: give one`,
    );
}
