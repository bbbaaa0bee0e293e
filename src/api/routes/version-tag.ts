import type { Response } from 'express';
import { EngineError, type ExpectedItem, type Memory } from '../../engine/index.ts';

/** Sets the header `ETag` of a reply that was not begun: the version of a memory, a hyphen, and the memory's id. */
export function setVersionTag(response: Response, { version, id }: Memory): void {
  response.setHeader('etag', `"${version}-${id}"`);
}

/**
 * Reads the header `If-Match`: an ETag of this API, or a version alone, each with or without quotes.
 * @returns the expected version, and the expected id if the header has one; neither if the header is absent or `*`, so
 *   that anything will do
 * @throws EngineError `invalid` for a value that cannot be an ETag of this API
 */
export function expectedItem(header: string | undefined): ExpectedItem {
  if (header === undefined || header === '*') return {};
  const tag = /^(?:"([^"]*)"|([^"]*))$/.exec(header);
  const parts = /^(\d{1,10})(?:-([\w-]{1,64}))?$/.exec(tag?.[1] ?? tag?.[2] ?? '');
  if (parts === null)
    throw new EngineError(
      'invalid',
      'If-Match: expected one ETag as a reply gave it, or a version such as "3", without W/ and not in a list; or *',
    );
  return { ifVersion: Number(parts[1]), ifId: parts[2] };
}

/**
 * Reads the header `If-Match` of a request for the memory `id`, as `expectedItem` does.
 * @returns the expected version; undefined if any will do
 * @throws EngineError `invalid` as `expectedItem`; `conflict` if the ETag is that of another memory
 */
export function expectedVersion(header: string | undefined, id: string): number | undefined {
  const { ifVersion, ifId = id } = expectedItem(header);
  if (ifId !== id) throw new EngineError('conflict', 'If-Match: the ETag is that of another memory');
  return ifVersion;
}
