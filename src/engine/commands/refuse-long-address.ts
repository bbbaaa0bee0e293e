import { EngineError } from '../errors.ts';
import { MAX_ADDRESS_BYTES } from '../store/documents.ts';

/** @throws EngineError `invalid` if a page without an external id could not be found by its user and its URL */
export function refuseLongAddress(page: {
  readonly userId: string;
  readonly externalId: string | null;
  readonly url: string;
}): void {
  if (page.externalId !== null || page.url === '') return;
  const most = MAX_ADDRESS_BYTES;
  const bytes = Buffer.byteLength(page.userId) + Buffer.byteLength(page.url);
  if (bytes > most)
    throw new EngineError(
      'invalid',
      `url: with user_id it has ${bytes} bytes, and at most ${most} are allowed without an external_id: give one`,
    );
}
